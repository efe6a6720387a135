"""Which input positions an entry of a tensor depends on, along one axis of the input.

The axis is thought to go on beyond both ends, so that a window at the border is as wide as one in
the middle and a receptive field may be larger than the image. Positions are counted, not derived
from a formula: strides, dilations, branches and upsampling in any order give exact numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Reach", "TooNarrow", "merge"]

NOTHING = 1 << 40  # lo of an entry that depends on nothing; its hi is the negative


class TooNarrow(Exception):
    """The thought continuation of the axis was too short."""


@dataclass(frozen=True)
class Reach:
    """Intervals of input positions, for consecutive entries along an axis of a tensor.

    Attributes
    ----------
    size
        Positions of the input's axis.
    axis
        Axis of the tensor; None where every entry has the one interval there is.
    first
        Index of the first entry in ``lo`` and ``hi``; negative entries lie before the tensor.
    lo, hi
        First and last input position of each entry.
    bounded
        Whether nothing lies beyond the entries, as after pooling to a given size.
    """

    size: int
    axis: int | None
    first: int
    lo: np.ndarray
    hi: np.ndarray
    bounded: bool = False

    @staticmethod
    def start(size: int, axis: int, margin: int) -> Reach:
        """Return the reach of the input itself: every position sees itself."""
        at = np.arange(-margin, size + margin)
        return Reach(size, axis, -margin, at, at)

    def width(self, entries: int) -> int:
        """Return the receptive field: the widest interval of the tensor's entries."""
        lo, hi = self.within(entries)
        return max(0, int((hi - lo).max()) + 1)

    def within(self, entries: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the intervals of the entries that the tensor really has."""
        if self.axis is None:
            return self.lo, self.hi
        stop = entries - self.first
        if not self.bounded and (self.first > 0 or stop > len(self.lo)):
            raise TooNarrow
        part = slice(max(0, -self.first), max(0, stop))
        return self.lo[part], self.hi[part]

    def collapsed(self, entries: int, axis: int | None = None) -> Reach:
        """Return one interval over all entries; the image ends where it ends."""
        lo, hi = self.within(entries)
        return self.given(axis, [max(0, int(lo.min()))], [min(self.size - 1, int(hi.max()))])

    def given(self, axis: int | None, lo: ArrayLike, hi: ArrayLike) -> Reach:
        """Return intervals for entries from 0 on, with nothing around them."""
        return Reach(self.size, axis, 0, np.asarray(lo), np.asarray(hi), bounded=True)

    def moved(self, axis: int | None) -> Reach:
        """Return the same intervals along another axis of the tensor."""
        return replace(self, axis=axis)

    def gathered(self, entries: np.ndarray, sources: np.ndarray, used: np.ndarray) -> Reach:
        """Return the reach of new entries, (M,), each made from old ones, (M, K), where used."""
        at = sources - self.first
        inside = (at >= 0) & (at < len(self.lo))
        if self.bounded:
            used = used & inside
        else:
            whole = (inside | ~used).all(axis=1)
            entries, at, used = entries[whole], at[whole], used[whole]
        if not len(entries):
            raise TooNarrow
        at = at.clip(0, len(self.lo) - 1)
        lo = np.where(used, self.lo[at], NOTHING).min(axis=1)
        hi = np.where(used, self.hi[at], -NOTHING).max(axis=1)
        return replace(self, first=int(entries[0]), lo=lo, hi=hi)

    @property
    def last(self) -> int:
        """Index of the last entry."""
        return self.first + len(self.lo) - 1

    def windows(self, kernel: int, stride: int, padding: int, dilation: int) -> Reach:
        """Return the reach after a convolution or a pooling."""
        taps = dilation * np.arange(kernel)
        entries = np.arange(
            (self.first + padding - taps[-1]) // stride, (self.last + padding) // stride + 1
        )
        sources = entries[:, None] * stride - padding + taps
        return self.gathered(entries, sources, np.ones(sources.shape, bool))

    def spread(self, kernel: int, stride: int, padding: int, dilation: int) -> Reach:
        """Return the reach after a transposed convolution."""
        taps = dilation * np.arange(kernel)
        entries = np.arange(
            self.first * stride - padding, self.last * stride - padding + taps[-1] + 1
        )
        steps = entries[:, None] + padding - taps
        return self.gathered(entries, steps // stride, steps % stride == 0)

    def resized(self, old: int, new: int, *, linear: bool, corners: bool) -> Reach:
        """Return the reach after upsampling from so many entries to so many."""
        factor = new / old
        reaches = int(self.first * factor), int((self.last + 1) * factor)
        if corners:  # what lies beyond the ends has no place then
            reaches = 0, new
        entries = np.arange(*reaches)
        if not linear:
            sources = (entries * old // new)[:, None]
        else:
            at = entries * ((old - 1) / max(1, new - 1)) if corners else (entries + 0.5) / factor
            at = np.round(at if corners else at - 0.5, 9)
            sources = np.stack([np.floor(at), np.ceil(at)], axis=1).astype(int)
        found = self.gathered(entries, sources, np.ones(sources.shape, bool))
        return replace(found, bounded=True) if corners else found


def merge(reaches: Sequence[Reach]) -> Reach:
    """Return the reach of entries made from several tensors, all along one axis or along none."""
    if len(reaches) == 1:
        return reaches[0]
    along = [reach for reach in reaches if reach.axis is not None]
    single = [reach for reach in reaches if reach.axis is None]
    if not along:
        lo, hi = (min(int(r.lo[0]) for r in single), max(int(r.hi[0]) for r in single))
        return single[0].given(None, [lo], [hi])
    return reduce(_union, [*along, *single])


def _union(left: Reach, right: Reach) -> Reach:
    """Return intervals over both, for the entries that both have."""
    if right.axis is None:
        lo, hi = np.minimum(left.lo, right.lo[0]), np.maximum(left.hi, right.hi[0])
        return replace(left, lo=lo, hi=hi)
    first, last = max(left.first, right.first), min(left.last, right.last)
    if last < first:
        raise TooNarrow
    mine, other = (slice(first - r.first, last - r.first + 1) for r in (left, right))
    return replace(
        left,
        first=first,
        lo=np.minimum(left.lo[mine], right.lo[other]),
        hi=np.maximum(left.hi[mine], right.hi[other]),
        bounded=left.bounded or right.bounded,
    )
