"""Curves of any length at the width of a screen: the range and the mean behind every pixel.

A short curve is read whole. A long one is scanned once, inside SQLite, into buckets of 2**k steps,
and extended from there as it grows; a view is made from the buckets, or, where they are wider than
a pixel of it, from a scan of the visible steps alone.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np

from castalia.train.runs import RunStore

__all__ = ["CurveViews", "Envelope", "coarsened", "elapsed"]

SHORT = 8_192  # points that are read whole
FINE = 16_384  # buckets of a long curve
KEPT = 64  # long curves whose buckets stay in memory
GLANCE = 32  # points of a bucket that a preview reads

_OF = "FROM metrics WHERE run = ? AND key = (SELECT id FROM keys WHERE name = ?)"
_INSIDE_OF = f"{_OF} AND step BETWEEN ? AND ?"
_LONGER = f"SELECT 1 {_INSIDE_OF} LIMIT 1 OFFSET ?"
_POINTS = f"SELECT step, epoch, value {_INSIDE_OF} ORDER BY step"
_BUCKET = "json_array(min(step), min(epoch), min(value), avg(value), max(value), count(value))"
_INSIDE = "FROM metrics WHERE run = :run AND key = :key AND step BETWEEN at AND at + :size - 1"
_GLANCE = f"FROM (SELECT step, epoch, value {_INSIDE} ORDER BY step LIMIT {GLANCE})"
_EACH = """
WITH RECURSIVE buckets (at) AS (
    SELECT :first UNION ALL SELECT at + :size FROM buckets WHERE at + :size <= :last
)
SELECT (SELECT {} {}) FROM buckets
"""
_SCAN, _PREVIEW = _EACH.format(_BUCKET, _INSIDE), _EACH.format(_BUCKET, _GLANCE)


@dataclass(frozen=True)
class Envelope:
    """A curve in buckets of steps.

    Attributes
    ----------
    step, epoch
        Where each bucket begins, (n,).
    low, mean, high
        Of its values; NaN where it has none.
    count
        How many numbers it holds.
    """

    step: np.ndarray
    epoch: np.ndarray
    low: np.ndarray
    mean: np.ndarray
    high: np.ndarray
    count: np.ndarray

    @classmethod
    def of_rows(cls, rows: list[list[float | None]]) -> Self:
        """Return the buckets that SQLite found; those without points are left out."""
        table = np.array([row for row in rows if row[0] is not None], dtype=np.float64)
        return cls(*table.reshape(-1, 6).T)

    @classmethod
    def of_points(cls, rows: list[tuple[Any, ...]]) -> Self:
        """Return points as buckets of one."""
        step, epoch, value = np.array(rows, dtype=np.float64).reshape(-1, 3).T
        return cls(step, epoch, value, value, value, (~np.isnan(value)).astype(np.float64))

    def __len__(self) -> int:
        return len(self.step)

    def between(self, first: float, last: float) -> Self:
        """Return the buckets, whole ones, that have the steps from the first to the last."""
        begin = max(np.searchsorted(self.step, first, side="right") - 1, 0)
        chosen = slice(begin, np.searchsorted(self.step, last, side="right"))
        return type(self)(*(getattr(self, each.name)[chosen] for each in fields(self)))

    def joined(self, other: Self) -> Self:
        """Return these buckets followed by others."""
        names = [each.name for each in fields(self)]
        return type(self)(*(np.concatenate([getattr(e, n) for e in (self, other)]) for n in names))


def coarsened(found: Envelope, group: np.ndarray) -> Envelope:
    """Merge neighbouring buckets that have the same number in ``group``.

    Examples
    --------
    >>> curve = Envelope.of_points([(0, 0, 3.0), (1, 0, 5.0), (2, 1, 1.0)])
    >>> both = coarsened(curve, np.array([0, 0, 1]))
    >>> both.low.tolist(), both.high.tolist(), both.mean.tolist()
    ([3.0, 1.0], [5.0, 1.0], [4.0, 1.0])
    """
    if not len(found):
        return found
    starts = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    count = np.add.reduceat(found.count, starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        known = np.where(found.count > 0, found.mean * found.count, 0.0)
        mean = np.add.reduceat(known, starts) / count
    low, high = np.fmin.reduceat(found.low, starts), np.fmax.reduceat(found.high, starts)
    return Envelope(found.step[starts], found.epoch[starts], low, mean, high, count)


class _Kept(NamedTuple):
    """Buckets of 2**shift steps, between the first and the last step that were there."""

    buckets: Envelope
    shift: int
    first: int
    last: int


class CurveViews:
    """Views of the curves of runs; remembers the buckets of long ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, str], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def view(
        self,
        store: RunStore,
        run: int,
        key: str,
        span: tuple[int, int] | None = None,
        width: int = 1_000,
        quick: bool = False,
    ) -> tuple[Envelope, bool]:
        """Return a curve in at most about ``width`` buckets, and whether it is exact.

        Parameters
        ----------
        store, run, key
            Where it is kept: store, number of the run, name of the metric.
        span
            First and last step to show; None: all. Buckets at the ends are whole, so a long curve
            may begin a little earlier and end a little later.
        width
            Buckets, such as pixels of a screen.
        quick
            Whether a preview of the first points of each bucket is enough where the curve is long
            and was not read before.
        """
        asked = span or (-(2**62), 2**62)
        if not store.select(_LONGER, (run, key, *asked, SHORT)):
            rows = store.select(_POINTS, (run, key, *asked))
            return _narrowed(Envelope.of_points(rows), width), True
        ends = self._ends(store, run, key)
        shown = (max(asked[0], ends[0]), min(asked[1], ends[1]))
        name = (str(store.path), run, key)
        number = self._number(store, key)
        shift = _shift(shown, width)
        if shift < _shift(ends, FINE):  # finer than what is kept
            return _scan(store, _SCAN, run, number, shown, shift), True
        if quick and name not in self._kept:
            return _scan(store, _PREVIEW, run, number, shown, shift), False
        with self._lock:
            kept = self._kept[name] = self._current(store, run, number, ends, self._kept.get(name))
            self._kept.move_to_end(name)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return _narrowed(kept.buckets.between(*shown), width), True

    @staticmethod
    def _number(store: RunStore, key: str) -> int:
        return int(store.select("SELECT id FROM keys WHERE name = ?", (key,))[0][0])

    @staticmethod
    def _ends(store: RunStore, run: int, key: str) -> tuple[int, int]:
        """Return the first and the last step: two seeks, no scan."""
        query = f"SELECT step {_OF} ORDER BY step"
        pairs = [store.select(f"{query} {way} LIMIT 1", (run, key)) for way in ("ASC", "DESC")]
        return int(pairs[0][0][0]), int(pairs[1][0][0])

    @staticmethod
    def _current(
        store: RunStore, run: int, number: int, ends: tuple[int, int], kept: _Kept | None
    ) -> _Kept:
        """Scan what is new since the last time; everything where the curve was cut back."""
        shift = _shift(ends, FINE)
        if kept is None or kept.first != ends[0] or kept.last > ends[1]:
            return _Kept(_scan(store, _SCAN, run, number, ends, shift), shift, *ends)
        if kept.last == ends[1]:
            return kept
        old = coarsened(kept.buckets, kept.buckets.step.astype(np.int64) >> shift)
        begin = (int(old.step[-1]) >> shift) << shift
        fresh = _scan(store, _SCAN, run, number, (begin, ends[1]), shift)
        return _Kept(old.between(ends[0], begin - 1).joined(fresh), shift, *ends)


def _shift(ends: tuple[int, int], most: int) -> int:
    """Return the k with which buckets of 2**k steps are at most about ``most``."""
    return max((ends[1] - ends[0]) // max(most, 1), 0).bit_length()


def _scan(
    store: RunStore, query: str, run: int, number: int, ends: tuple[int, int], shift: int
) -> Envelope:
    """Let SQLite summarise every bucket of 2**shift steps, in one query."""
    first = (ends[0] >> shift) << shift
    values = {"run": run, "key": number, "size": 1 << shift, "first": first, "last": ends[1]}
    rows = store.select(query, values)
    return Envelope.of_rows(json.loads(f"[{','.join(text for (text,) in rows)}]"))


def _narrowed(found: Envelope, width: int) -> Envelope:
    """Merge buckets so that about ``width`` of them cover the steps evenly."""
    if len(found) <= 2 * width:
        return found
    reach = found.step[-1] - found.step[0] + 1
    return coarsened(found, ((found.step - found.step[0]) * width // reach).astype(np.int64))


def elapsed(seconds: Envelope, step: np.ndarray) -> np.ndarray | None:
    """Return the seconds spent until each step, from a curve of seconds of epochs."""
    if not len(seconds):
        return None
    ends = np.cumsum(np.nan_to_num(seconds.mean) * np.maximum(seconds.count, 1))
    return np.interp(step, np.append(0, seconds.step), np.append(0.0, ends))
