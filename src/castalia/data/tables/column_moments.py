"""Mean, spread and range of columns, gathered chunk by chunk.

Chunks are merged as Chan, Golub and LeVeque (1979) do, so nothing but one chunk is ever held, and
every column is summed on its own in a contiguous row: the result depends on the values and the
chunk borders only, never on where the chunks came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHUNK", "Moments", "spans"]

CHUNK = 65536  # rows; part of the meaning of every statistic, since it fixes the order of the sums

Floats = NDArray[np.float64]


def spans(rows: int, size: int = CHUNK) -> Iterator[slice]:
    """Yield the slices that cut ``rows`` into chunks.

    >>> list(spans(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


class Moments:
    """Weighted moments of ``columns`` columns; NaN is missing, and a row of weight 0 is absent.

    Attributes
    ----------
    weight, mean, minimum, maximum
        One number per column, over the values present.
    missing
        How many rows (of positive weight) lack a value, per column.
    infinite
        ``(row, column, value)`` of the first infinity met, or None; infinities enter no statistic.

    Examples
    --------
    >>> moments = Moments(1)
    >>> moments.add(np.array([[1.0, 2.0, 3.0]]))
    >>> float(moments.mean[0]), float(moments.minimum[0])
    (2.0, 1.0)
    """

    def __init__(self, columns: int) -> None:
        self.rows = 0
        self.weight, self.mean, self._squares = np.zeros((3, columns))
        self.minimum, self.maximum = np.full(columns, np.inf), np.full(columns, -np.inf)
        self.missing = np.zeros(columns, np.int64)
        self.infinite: tuple[int, int, float] | None = None

    @classmethod
    def beside(cls, parts: Sequence[Moments]) -> Moments:
        """Return the moments of groups of columns as those of one table, side by side."""
        if len(parts) == 1:
            return parts[0]
        whole = cls(0)
        whole.rows = parts[0].rows
        for name in ("weight", "mean", "_squares", "minimum", "maximum", "missing"):
            setattr(whole, name, np.concatenate([getattr(part, name) for part in parts]))
        starts = np.cumsum([0, *(len(part.mean) for part in parts)])
        found = [
            (row, int(start) + column, value)
            for start, part in zip(starts, parts, strict=False)
            if part.infinite is not None
            for row, column, value in [part.infinite]
        ]
        whole.infinite = min(found, default=None)
        return whole

    def add(self, block: Floats, weight: Floats | None = None) -> None:
        """Take in one chunk: ``block`` (columns, rows), contiguous; ``weight`` (rows,) or None."""
        if block.shape[1] == 0:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum(axis=1)
            # A finite sum proves that there is neither NaN nor infinity in the row.
            if weight is None and np.isfinite(total).all():
                self._add_whole(block, total)
            else:
                self._add_partial(block, weight)
        self.rows += block.shape[1]

    def _add_whole(self, block: Floats, total: Floats) -> None:
        count = np.full(len(block), float(block.shape[1]))
        mean = total / count
        off = block - mean[:, None]
        self._merge(count, mean, np.square(off, out=off).sum(axis=1))
        np.minimum(self.minimum, block.min(axis=1), out=self.minimum)
        np.maximum(self.maximum, block.max(axis=1), out=self.maximum)

    def _add_partial(self, block: Floats, weight: Floats | None) -> None:
        absent = np.isnan(block)
        endless = np.isinf(block)
        if endless.any():
            self._note_infinite(block, endless)
        here = (
            np.ones_like(block)
            if weight is None
            else np.repeat(weight[None, :], len(block), axis=0)
        )
        self.missing += (absent & (here > 0)).sum(axis=1)
        here[absent | endless] = 0.0
        values = np.where(here > 0, block, 0.0)
        count = here.sum(axis=1)
        mean = np.divide(
            (here * values).sum(axis=1), count, out=np.zeros(len(block)), where=count > 0
        )
        off = values - mean[:, None]
        self._merge(count, mean, (here * np.square(off)).sum(axis=1))
        self.minimum = np.minimum(self.minimum, np.where(here > 0, block, np.inf).min(axis=1))
        self.maximum = np.maximum(self.maximum, np.where(here > 0, block, -np.inf).max(axis=1))

    def _note_infinite(self, block: Floats, endless: NDArray[np.bool_]) -> None:
        if self.infinite is None:
            row = int(endless.any(axis=0).argmax())
            column = int(endless[:, row].argmax())
            self.infinite = (self.rows + row, column, float(block[column, row]))

    def _merge(self, count: Floats, mean: Floats, squares: Floats) -> None:
        both = self.weight + count
        share = np.divide(count, both, out=np.zeros_like(both), where=both > 0)
        gap = mean - self.mean
        self.mean = self.mean + gap * share
        self._squares = self._squares + squares + gap * gap * self.weight * share
        self.weight = both

    def centre(self) -> Floats:
        """Return the mean; exactly the value where there is only one, 0 where there is none."""
        mean = np.where(self.minimum == self.maximum, self.minimum, self.mean)
        return np.where(np.isfinite(mean) & (self.weight > 0), mean, 0.0)

    def spread(self) -> Floats:
        """Return the standard deviation (divisor: total weight); 0 for a single value."""
        with np.errstate(over="ignore", invalid="ignore"):
            variance = np.divide(
                self._squares, self.weight, out=np.zeros_like(self.weight), where=self.weight > 0
            )
            # Squares of numbers beyond 1e154 overflow; the range is then the only usable measure.
            wide = np.maximum(np.abs(self.minimum), np.abs(self.maximum))
        spread = np.where(np.isfinite(variance), np.sqrt(np.abs(variance)), wide)
        return np.where((self.weight > 0) & (self.minimum != self.maximum), spread, 0.0)
