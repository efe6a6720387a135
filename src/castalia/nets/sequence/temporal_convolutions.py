"""Temporal convolutional network: stacked dilated causal convolutions with residual paths.

y_t depends on x_(t-R+1..t), R = 1 + 2 (k - 1) (2^L - 1).
Shapes: B batch, T time, I inputs, H hidden.
Reference: 2018, Bai, Kolter, Koltun, An empirical evaluation of generic convolutional and recurrent
networks for sequence modeling, arXiv 1803.01271.
Departs from it: layer norm over channels instead of weight norm.
"""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["TCN"]


class CausalBlock(nn.Module):
    """Two causal convolutions of one dilation, each with norm, ReLU and dropout; added to x."""

    def __init__(self, hidden: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.pad = (kernel - 1) * dilation
        self.convs = nn.ModuleList(
            nn.Conv1d(hidden, hidden, kernel, dilation=dilation) for _ in range(2)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, H)
        """Return x plus what the convolutions make of it."""
        h = x
        for conv, norm in zip(self.convs, self.norms, strict=True):
            past = nn.functional.pad(h.transpose(1, 2), (self.pad, 0))  # (B, H, T + pad)
            h = self.dropout(norm(conv(past).transpose(1, 2)).relu())
        return x + h


class TCN(nn.Module):
    """Dilated causal convolutions: steps (B, T, I) to (B, T, H).

    Parameters
    ----------
    inputs
        Width of a step.
    hidden
        Channels of each block.
    depth
        Blocks; the dilation doubles from each to the next.
    kernel
        Taps of a convolution.
    dropout
        Probability after each convolution.

    Examples
    --------
    >>> import torch
    >>> net = TCN(2, hidden=8, depth=3, kernel=3)
    >>> net(torch.zeros(1, 20, 2)).shape, net.reach
    (torch.Size([1, 20, 8]), 29)
    """

    def __init__(
        self,
        inputs: int,
        *,
        hidden: int = 32,
        depth: int = 5,
        kernel: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.lift, self.outputs = nn.Linear(inputs, hidden), hidden
        blocks = (CausalBlock(hidden, kernel, 2**i, dropout) for i in range(depth))
        self.blocks = nn.Sequential(*blocks)
        self.reach = 1 + 2 * (kernel - 1) * (2**depth - 1)  # steps that an output depends on

    def forward(self, x: Tensor) -> Tensor:  # (B, T, I)
        """Return an output for each step, from it and those before."""
        return self.blocks(self.lift(x))
