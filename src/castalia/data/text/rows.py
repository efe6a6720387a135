"""Token ids as rows of a training."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from castalia.data.batches import TensorRows

__all__ = ["TokenRows", "cut_blocks"]


class TokenRows(TensorRows):
    """Rows of token ids, (N, …), kept in four bytes each; a batch has the eight that torch wants.

    Examples
    --------
    >>> import torch
    >>> TokenRows(torch.tensor([[3, 1], [4, 1]], dtype=torch.int32)).take(torch.tensor([1]))
    tensor([[4, 1]])
    """

    def take(self, index: Tensor) -> Tensor:
        """Return the rows at these positions."""
        return self.x.index_select(0, index).long()

    def to(self, device: Any) -> TokenRows:
        """Return the same rows on a device."""
        return TokenRows(self.x.to(device))


def cut_blocks(stream: np.ndarray, length: int, stride: int | None = None) -> np.ndarray:
    """Cut a stream of ids into blocks of ``length`` inputs and one more, (N, length + 1).

    A block begins with the last id of the one before, so that each id but the first is the target
    of one place. Where the stream does not end with a block, one more is cut at its end and
    overlaps the one before. A stream shorter than a block is one short block.

    Parameters
    ----------
    stream
        Ids, (L,), at least two.
    length
        Inputs of a block.
    stride
        Ids between the beginnings of two blocks; None: ``length``.

    Examples
    --------
    >>> cut_blocks(np.arange(8), 3)
    array([[0, 1, 2, 3],
           [3, 4, 5, 6],
           [4, 5, 6, 7]], dtype=int32)
    """
    length = min(length, len(stream) - 1)
    last = len(stream) - 1 - length
    starts = np.arange(0, last + 1, stride or length)
    if starts[-1] != last:
        starts = np.append(starts, last)
    return stream.astype(np.int32)[starts[:, None] + np.arange(length + 1)]
