"""Recurrent networks that answer once for a sequence, or at every step.

A batch is steps (B, T, I), or a pair of steps and lengths (B,) where rows are padded; what is
padded changes no answer.
Shapes: B batch, T time, I inputs, H hidden, K outputs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nets.sequence.recurrent_stack import RecurrentStack, States
from castalia.nets.sequence.step_vectors import StepEmbedding
from castalia.utils.text import listing

__all__ = ["POOLS", "SequencePredictor", "StepPredictor", "pooled", "steps_and_lengths"]

POOLS = ("last", "mean", "max")


def steps_and_lengths(batch: Any) -> tuple[Tensor, Tensor | None]:
    """Take a batch apart; without padding there are no lengths."""
    return batch if isinstance(batch, tuple) else (batch, None)


def pooled(h: Tensor, lengths: Tensor | None, pool: str) -> Tensor:  # (B, T, H)
    """Return one vector a sequence, (B, H): the last, the mean or the largest of the real steps.

    >>> pooled(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([2]), "mean")
    tensor([[2.]])
    """
    if lengths is None:
        lengths = torch.full((len(h),), h.shape[1], device=h.device)
    if pool == "last":
        return h[torch.arange(len(h), device=h.device), lengths - 1]
    inside = (torch.arange(h.shape[1], device=h.device) < lengths[:, None])[..., None]  # (B, T, 1)
    if pool == "max":
        return torch.where(inside, h, -torch.inf).amax(dim=1)
    return torch.where(inside, h, 0.0).sum(dim=1) / lengths[:, None].to(h.dtype)


class SequencePredictor(nn.Module):
    """One answer a sequence: embed, recur, pool, and a linear layer.

    Parameters
    ----------
    embed
        What is read at a step.
    stack
        The recurrent layers.
    outputs
        Number of outputs.
    pool
        ``"last"`` state, or ``"mean"`` or ``"max"`` over the steps.
    dropout
        Probability before the linear layer.
    """

    def __init__(
        self,
        embed: StepEmbedding,
        stack: RecurrentStack,
        outputs: int,
        *,
        pool: str = "last",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if pool not in POOLS:
            raise InvalidParameter(
                f"SequencePredictor: `pool` must be {listing(POOLS)}; got {pool!r}."
            )
        self.embed, self.stack, self.pool = embed, stack, pool
        self.dropout, self.head = nn.Dropout(dropout), nn.Linear(stack.outputs, outputs)

    def forward(self, batch: Any) -> Tensor:
        """Return outputs, (B, K)."""
        return self.head(self.dropout(self.encode(batch)))

    def encode(self, batch: Any) -> Tensor:
        """Return one vector a sequence, (B, H)."""
        x, lengths = steps_and_lengths(batch)
        h, _ = self.stack(self.embed(x), lengths=lengths)
        if self.pool != "last" or not self.stack.bidirectional:
            return pooled(h, lengths, self.pool)
        forwards, backwards = h.chunk(
            2, dim=-1
        )  # from the end, the last state is at the first step
        return torch.cat([pooled(forwards, lengths, "last"), backwards[:, 0]], dim=-1)


class StepPredictor(nn.Module):
    """An answer at every step.

    Parameters
    ----------
    embed, stack, outputs, dropout
        As for ``SequencePredictor``.
    """

    def __init__(
        self, embed: StepEmbedding, stack: RecurrentStack, outputs: int, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.embed, self.stack = embed, stack
        self.dropout, self.head = nn.Dropout(dropout), nn.Linear(stack.outputs, outputs)

    def forward(self, batch: Any) -> Tensor:
        """Return outputs, (B, T, K)."""
        x, lengths = steps_and_lengths(batch)
        return self.carried(x, None, lengths)[0]

    def carried(
        self, x: Tensor, states: States | None, lengths: Tensor | None = None
    ) -> tuple[Tensor, States]:
        """Return outputs and the states, to go on from in the next call."""
        h, states = self.stack(self.dropout(self.embed(x)), states, lengths=lengths)
        return self.head(self.dropout(h)), states
