"""Sequences of different lengths as rows of a training: all steps in one tensor, padded on demand.

Shapes: N sequences, S steps of all together, B batch, T steps of the longest, C channels.
"""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor

from castalia.protocols import Rows

__all__ = ["SequenceRows"]


class SequenceRows(Rows):
    """Steps one after the other, (S, C), and how many each sequence has.

    A batch is a pair: steps (B, T, C), zero after the end, and lengths (B,).

    Examples
    --------
    >>> rows = SequenceRows(torch.arange(5.0)[:, None], torch.tensor([2, 3]))
    >>> x, lengths = rows.take(torch.tensor([0, 1]))
    >>> x[..., 0], lengths
    (tensor([[0., 1., 0.],
            [2., 3., 4.]]), tensor([2, 3]))
    """

    def __init__(self, steps: Tensor, lengths: Tensor, first: Tensor | None = None) -> None:
        self.steps, self.lengths = steps, lengths
        self.first = lengths.cumsum(0) - lengths if first is None else first
        self.nbytes = steps.nbytes

    def __len__(self) -> int:
        return len(self.first)

    def take(self, index: Tensor, width: int | None = None) -> tuple[Tensor, Tensor]:
        """Return some sequences, padded to the longest of them or to a width."""
        known: Any = self.lengths
        lengths, first = known.index_select(0, index), self.first.index_select(0, index)
        place = torch.arange(int(lengths.max()) if width is None else width, device=index.device)
        inside = place < lengths[:, None]  # (B, T)
        found = self.steps[torch.where(inside, first[:, None] + place, 0)]  # (B, T, C)
        return torch.where(inside[..., None], found, 0), lengths

    def to(self, device: Any) -> Self:
        """Return the same rows held on a device."""
        known: Any = self.lengths
        return type(self)(self.steps.to(device), known.to(device), self.first.to(device))
