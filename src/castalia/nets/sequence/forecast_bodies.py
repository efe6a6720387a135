"""Bodies of forecasts: from a window (B, L, C) to numbers (B, O).

Shapes: B batch, L context, C channels, H hidden, O outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from castalia.nets.sequence.recurrent_stack import RecurrentStack
from castalia.nets.sequence.temporal_convolutions import TCN
from castalia.nn import TransformerEncoderBlock

__all__ = ["FlatWindow", "LastState", "PatchEncoder"]


class FlatWindow(nn.Module):
    """All steps of a window at once, through a dense network: no memory beyond the window."""

    def __init__(self, dense: nn.Module) -> None:
        super().__init__()
        self.dense = dense

    def forward(self, z: Tensor) -> Tensor:  # (B, L, C)
        """Return outputs, (B, O)."""
        return self.dense(z.flatten(1))


class LastState(nn.Module):
    """Steps one after the other; the outputs are read off the last one."""

    def __init__(self, steps: RecurrentStack | TCN, outputs: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.steps, self.dropout = steps, nn.Dropout(dropout)
        self.head = nn.Linear(steps.outputs, outputs)

    def forward(self, z: Tensor) -> Tensor:  # (B, L, C)
        """Return outputs, (B, O)."""
        found = self.steps(z)
        h = found[0] if isinstance(found, tuple) else found  # (B, L, H)
        return self.head(self.dropout(h[:, -1]))


class PatchEncoder(nn.Module):
    """Patches of steps as tokens of a transformer encoder; all of them are read off together.

    Reference: 2023, Nie et al., A time series is worth 64 words, arXiv 2211.14730.

    Parameters
    ----------
    channels, context
        Channels and steps of a window.
    outputs
        Number of outputs.
    patch, stride
        Steps of a patch, and from one to the next; the last step is repeated to fill the last one.
    dim, heads, depth, dropout
        Of the encoder.

    Examples
    --------
    >>> PatchEncoder(1, 20, 5, patch=8, stride=4, dim=8, heads=2)(torch.zeros(2, 20, 1)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        channels: int,
        context: int,
        outputs: int,
        *,
        patch: int = 16,
        stride: int = 8,
        dim: int = 64,
        heads: int = 4,
        depth: int = 2,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.patch, self.stride = patch, stride
        self.extra = max(0, patch - context) or (-(context - patch)) % stride
        count = (context + self.extra - patch) // stride + 1
        self.lift = nn.Linear(channels * patch, dim)
        self.positions = nn.Parameter(0.02 * torch.randn(count, dim))
        blocks = (
            TransformerEncoderBlock(
                dim, heads, hidden=2 * dim, activation="gelu", dropout=dropout, pre_norm=True
            )
            for _ in range(depth)
        )
        self.encoder = nn.Sequential(*blocks, nn.LayerNorm(dim))
        self.dropout, self.head = nn.Dropout(dropout), nn.Linear(count * dim, outputs)

    def forward(self, z: Tensor) -> Tensor:  # (B, L, C)
        """Return outputs, (B, O)."""
        whole = torch.cat([z, z[:, -1:].expand(-1, self.extra, -1)], dim=1)
        patches = whole.unfold(1, self.patch, self.stride).flatten(2)  # (B, count, C patch)
        h = self.encoder(self.lift(patches) + self.positions)
        return self.head(self.dropout(h.flatten(1)))
