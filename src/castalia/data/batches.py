"""Encoded rows, and the order in which a training sees them.

Rows live in one tensor on the device, or on disk when they do not fit. Those in memory are shuffled
as a whole. A table on disk is cut into small blocks, the blocks are permuted, and each window of
blocks is shuffled through, so that a window is read at a time and yet is a sample of the whole
table. One that fits into a window is shuffled as a whole too: then a streamed training makes
exactly the batches of an in-memory one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from castalia.data.buckets import fixed_widths, grouped, packed, widths_of
from castalia.data.stream import DiskMatrix
from castalia.protocols import Batch, Rows
from castalia.utils.seeds import generator
from castalia.utils.tensor_trees import leaves, map_tree, move, take

__all__ = ["DiskRows", "Samples", "SparseRows", "TensorRows", "wide"]

BLOCK = 64  # rows: the fewer, the nearer a window is to a sample of rows
WINDOW = 16_384  # blocks
BYTES = 1 << 28  # most of a window
GAP = 64  # rows: reading over a narrower gap is cheaper than a second read


class TensorRows(Rows):
    """Rows in one tensor.

    Parameters
    ----------
    x
        Rows, (N, …), or (N, …, T) where they are padded.
    lengths
        How much of each padded row is real, (N,): a batch needs no more of T than the longest of
        its rows. None: all of it.

    Examples
    --------
    >>> TensorRows(torch.arange(6.0).reshape(3, 2)).take(torch.tensor([2, 0]))
    tensor([[4., 5.],
            [0., 1.]])
    """

    fixed = True

    def __init__(self, x: Tensor, lengths: Tensor | None = None) -> None:
        self.x, self.lengths = x, lengths
        self.shape, self.nbytes = tuple(x.shape[1:]), x.nbytes

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: Tensor, width: int | None = None) -> Tensor:
        """Return the rows at these positions."""
        rows = self.x.index_select(0, index)
        return rows if width is None else rows[..., :width]

    def to(self, device: Any) -> Self:
        """Return the same rows on a device."""
        return type(self)(self.x.to(device), move(self.lengths, device))


class SparseRows(Rows):
    """Rows of a scipy CSR matrix; a batch is made dense when it is taken.

    Parameters
    ----------
    matrix
        The rows.
    device
        Where batches are needed.
    encode
        What makes of a dense block of rows the inputs of a network; None: nothing need be done.
    width
        How many numbers an encoded row has; None: as many as the matrix has columns.
    """

    def __init__(
        self,
        matrix: Any,
        device: Any = "cpu",
        encode: Callable[[np.ndarray], np.ndarray] | None = None,
        width: int | None = None,
    ) -> None:
        self.matrix, self.device, self.encode = matrix, device, encode
        self.shape = (int(matrix.shape[1]) if width is None else width,)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def take(self, index: Tensor, width: int | None = None) -> Tensor:
        """Return the rows at these positions."""
        rows = self.matrix[index.cpu().numpy()].toarray()
        rows = rows if self.encode is None else self.encode(rows)
        return torch.from_numpy(rows).to(self.device)

    def to(self, device: Any) -> SparseRows:
        """Return the same rows, whose batches come on a device."""
        return SparseRows(self.matrix, device, self.encode, *self.shape)


class DiskRows(Rows):
    """Rows in a file, read a window at a time."""

    def __init__(self, matrix: DiskMatrix) -> None:
        self.matrix, self.shape = matrix, matrix.shape[1:]

    @property
    def window(self) -> int:
        """Rows that are held at a time: a number of whole blocks."""
        held = BYTES // max(8 * BLOCK * self.shape[0], 1)
        return BLOCK * max(1, min(WINDOW, held))

    def __len__(self) -> int:
        return len(self.matrix)

    def take(self, index: Tensor, width: int | None = None) -> Tensor:
        """Return the rows at these positions, which must ascend; a run without gaps is one read."""
        rows = index.cpu().numpy()
        cuts = np.flatnonzero(np.diff(rows) > GAP) + 1
        starts, stops = rows[np.append(0, cuts)], rows[np.append(cuts, 0) - 1] + 1
        ends = np.cumsum(stops - starts)  # of the runs, one after the other
        found = np.empty((ends[-1], *self.shape), self.matrix.dtype)
        for start, stop, end in zip(starts.tolist(), stops.tolist(), ends.tolist(), strict=True):
            self.matrix.fill(found[end - (stop - start) : end], start)
        if len(found) > len(rows):
            found = found[
                rows + np.repeat(ends - stops, np.diff(cuts, prepend=0, append=len(rows)))
            ]
        return torch.from_numpy(found)


@dataclass(frozen=True)
class Samples:
    """Inputs with their targets and weights, or a subset of them.

    Attributes
    ----------
    x
        Encoded inputs.
    y
        Targets, a tree of tensors with one row each, padded ones as ``TensorRows``, or None.
    weight
        Row weights, or None for all ones.
    rows
        Positions of the subset in ascending order, or None for all.
    ordered
        Whether a training takes the rows one after the other, never shuffled; they then need not
        ascend.
    lengths
        Of padded rows, how much of each is real, (N, 1), or of inputs and targets, (N, 2), as they
        say themselves; None: rows are not padded. Batches are then made of rows of like lengths and
        cut to the longest.
    tokens
        Most tokens of a batch, padding included, on each side; None: batches have as many rows.
    """

    x: Rows
    y: Any = None
    weight: Tensor | None = None
    rows: Tensor | None = None
    ordered: bool = False
    lengths: Tensor | None = None  # stays on the CPU, where batches are planned
    tokens: int | None = None

    def __post_init__(self) -> None:
        if self.lengths is None and self.x.lengths is not None:
            sides: list[Any] = [
                self.x.lengths,
                *([self.y.lengths] if isinstance(self.y, TensorRows) else []),
            ]
            object.__setattr__(self, "lengths", torch.stack(sides, dim=1).cpu())

    def __len__(self) -> int:
        return len(self.x) if self.rows is None else len(self.rows)

    @property
    def device(self) -> torch.device:
        """Where indices must be."""
        held = (part.x if isinstance(part, TensorRows) else part for part in (self.x, self.y))
        found = (leaf.device for leaf in leaves(tuple(held)) if isinstance(leaf, Tensor))
        return next(found, torch.device("cpu"))

    def subset(self, index: np.ndarray | Tensor) -> Samples:
        """Return the samples at these ascending positions without copying them."""
        chosen = torch.as_tensor(index)
        return replace(self, rows=chosen if self.rows is None else self.rows[chosen])

    def to(self, device: Any) -> Samples:
        """Return the same samples held on a device."""
        y, weight, rows = (move(part, device) for part in (self.y, self.weight, self.rows))
        return replace(self, x=self.x.to(device), y=y, weight=weight, rows=rows)

    def batch(self, index: Tensor, widths: tuple[int, ...] | None = None) -> Batch:
        """Return the batch at these absolute positions.

        Parameters
        ----------
        index
            Positions.
        widths
            Of inputs and targets, where rows are padded; None: those of the longest.
        """
        weight = take(self.weight, index)
        if self.lengths is None:
            return Batch(self.x.take(index), take(self.y, index), weight)
        widths = widths or tuple(self.lengths[index.cpu()].amax(dim=0).tolist())
        padded = isinstance(self.y, TensorRows)
        y = self.y.take(index, widths[1]) if padded else take(self.y, index)
        return Batch(self.x.take(index, widths[0]), y, weight, take(self.x.lengths, index))

    def n_batches(self, batch_size: int) -> int:
        """Number of batches in an epoch."""
        if self.tokens is not None and self.lengths is not None:
            return len(packed(self._row_lengths(), self.tokens, None)[1]) - 1
        if not isinstance(self.x, DiskRows):
            return -(-len(self) // batch_size)
        whole, rest = divmod(len(self), self.x.window)
        return whole * -(-self.x.window // batch_size) + -(-rest // batch_size)

    def batches(
        self, batch_size: int, seed: int | None, epoch: int, device: Any = "cpu"
    ) -> Iterator[tuple[Samples, Tensor, Sequence[int]]]:
        """Yield windows of samples, each with its order and where that is cut into batches.

        Parameters
        ----------
        batch_size
            Rows of a batch; not used where ``tokens`` bounds them.
        seed, epoch, device
            As for ``windows``.
        """
        if self.lengths is None or self.ordered:
            for samples, order in self.windows(seed, epoch, device):
                yield samples, order, range(0, len(order) + batch_size, batch_size)
            return
        source = None if seed is None else generator(seed, epoch)
        lengths = self._row_lengths()
        cuts: Sequence[int] = range(0, len(self) + batch_size, batch_size)
        if self.tokens is not None:
            order, cuts = packed(lengths, self.tokens, source)
        elif source is not None:
            order = grouped(lengths, batch_size, source)
        else:
            order = lengths.argsort(stable=True)
        order = order.to(device)
        yield self, order if self.rows is None else self.rows[order], cuts

    def _row_lengths(self) -> Tensor:
        """Length of each row by its longer side, (N,)."""
        lengths: Any = self.lengths
        return (lengths if self.rows is None else lengths[self.rows.cpu()]).amax(dim=1)

    def widths(
        self, order: Tensor, cuts: Sequence[int], *, few: bool
    ) -> list[tuple[int, ...]] | None:
        """Return how wide each batch must be on each side; None where rows are not padded."""
        if self.lengths is None:
            return None
        fixed = fixed_widths(self.lengths) if few else None
        return widths_of(self.lengths, order.cpu(), cuts, fixed)

    def windows(
        self, seed: int | None, epoch: int, device: Any = "cpu"
    ) -> Iterator[tuple[Samples, Tensor]]:
        """Yield windows of samples, each with the order in which to walk through it.

        Parameters
        ----------
        seed
            Seed of the shuffling, or None to keep the order of the rows.
        epoch
            Number of the epoch; each has its own order.
        device
            Where the batches are needed.
        """
        source = None if seed is None else generator(seed, epoch, device=device)
        if not isinstance(self.x, DiskRows):
            order = _order(len(self), source, device)
            yield self, order if self.rows is None else self.rows.to(order.device)[order]
            return
        blocks = _windows(len(self), self.x.window, source, device)
        for samples in _ahead(lambda found: self._load(found, device), blocks):
            yield samples, _order(len(samples), source, device)

    def _load(self, positions: Tensor, device: Any) -> Samples:
        """Read a window from disk."""
        found = positions if self.rows is None else self.rows[positions]
        y, weight = map_tree(lambda t: wide(t[found.to(t.device)]), (self.y, self.weight))
        return Samples(TensorRows(self.x.take(found)), y, weight).to(device)


def _order(size: int, source: torch.Generator | None, device: Any) -> Tensor:
    """Return the order in which rows are taken; without a source, their own."""
    if source is None:
        return torch.arange(size, device=device)
    return torch.randperm(size, generator=source, device=device)


def _windows(n: int, window: int, source: torch.Generator | None, device: Any) -> Iterator[Tensor]:
    """Yield the positions of each window, ascending: blocks drawn from all of the rows."""
    if n <= window:
        yield torch.arange(n)
        return
    # The short last block stays last, so that every epoch has the same number of batches.
    blocks = _order(n // BLOCK, source, device).cpu()
    blocks = torch.cat([blocks, blocks.new_tensor([n // BLOCK])]) if n % BLOCK else blocks
    for group in blocks.split(window // BLOCK):
        positions = group.sort().values[:, None] * BLOCK + torch.arange(BLOCK)
        yield positions.flatten()[positions.flatten() < n]


def _ahead(load: Callable[[Any], Any], items: Iterator[Any]) -> Iterator[Any]:
    """Yield what is loaded of each item; the next one is loaded meanwhile."""
    with ThreadPoolExecutor(1) as reader:
        coming = [reader.submit(load, item) for item in islice(items, 1)]
        while coming:
            found = coming.pop().result()
            coming += [reader.submit(load, item) for item in islice(items, 1)]
            yield found


def wide(tensor: Tensor) -> Tensor:
    """Return class numbers, which long tables hold in a few bytes, as losses want them."""
    small = not tensor.is_floating_point() and tensor.dtype not in (torch.bool, torch.int64)
    return tensor.long() if small else tensor
