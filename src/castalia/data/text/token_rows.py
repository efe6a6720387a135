"""Token ids as rows of a training."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from castalia.data.batches import TensorRows

__all__ = ["TokenRows", "block_starts", "cut_blocks", "real_lengths"]


class TokenRows(TensorRows):
    """Rows of token ids, (N, …, T), kept in four bytes each; a batch has the eight torch wants.

    Examples
    --------
    >>> TokenRows(torch.tensor([[3, 1], [4, 1]], dtype=torch.int32)).take(torch.tensor([1]))
    tensor([[4, 1]])
    """

    def __init__(self, x: Tensor, lengths: Tensor | None = None) -> None:
        super().__init__(x, lengths)
        self.shape = (1, *self.shape)

    def take(self, index: Tensor, width: int | None = None) -> Tensor:
        """Return the rows at these positions."""
        return super().take(index, width).long()


def real_lengths(ids: Tensor, padding: int) -> Tensor:
    """Return how far the real tokens of each row reach, at least 1, (N, …) of ids (N, …, T).

    >>> real_lengths(torch.tensor([[5, 6, 0], [7, 0, 0]]), 0)
    tensor([2, 1])
    """
    places = torch.arange(1, ids.shape[-1] + 1, dtype=torch.int32)
    return torch.where(ids != padding, places, 1).amax(dim=-1).long()


def cut_blocks(
    stream: np.ndarray, length: int, stride: int | None = None, *, rest: bool = True
) -> np.ndarray:
    """Cut a stream of ids into blocks of ``length`` inputs and one more, (N, length + 1).

    A block begins with the last id of the one before, so that each id but the first is the target
    of one place. A stream shorter than a block is one short block.

    Parameters
    ----------
    stream
        Ids, (L,), at least two.
    length
        Inputs of a block.
    stride
        Ids between the beginnings of two blocks; None: ``length``.
    rest
        Whether one more block is cut at the end of a stream that does not end with a block; it
        overlaps the one before. Otherwise that rest is left out.

    Examples
    --------
    >>> cut_blocks(np.arange(8), 3)
    array([[0, 1, 2, 3],
           [3, 4, 5, 6],
           [4, 5, 6, 7]], dtype=int32)
    """
    starts, length = block_starts(len(stream), length, stride, rest=rest)
    return stream.astype(np.int32)[starts[:, None] + np.arange(length + 1)]


def block_starts(
    size: int, length: int, stride: int | None = None, *, rest: bool = True
) -> tuple[np.ndarray, int]:
    """Return where the blocks of a stream of ``size`` ids begin, and how many inputs they have."""
    length = min(length, size - 1)
    last = size - 1 - length
    starts = np.arange(0, last + 1, stride or length)
    if rest and starts[-1] != last:
        starts = np.append(starts, last)
    return starts, length
