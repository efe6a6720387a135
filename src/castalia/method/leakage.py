"""Columns that alone give the target away: copies of it, or values known only after it.

Each column predicts the target of held-out rows by its neighbours among the other rows: numbers by
interpolation, classes by the nearest value, words by their mean or commonest class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from castalia.data import Dataset
from castalia.method.task import Task

__all__ = ["find_leaks", "leak_words"]

SURE = 0.999  # R², or recall averaged over classes
LEAST = 30  # rows below which such a score may be chance
MOST = 5_000  # rows that are enough


def find_leaks(data: Dataset, columns: Sequence[str], task: Task) -> dict[str, float]:
    """Return the columns that alone predict the target, with the score of each.

    Examples
    --------
    >>> from castalia.data import read
    >>> from castalia.method.task import find_task
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> table = read(np.column_stack([2 * y + 1, np.arange(100) % 7, y]), target="x2")
    >>> list(find_leaks(table, ["x0", "x1"], find_task(table)))
    ['x0']
    """
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(task.y))[:MOST]
    if len(rows) < LEAST:
        return {}
    y, found = task.codes[rows], {}
    for name in columns:
        score = _score(_numbers(data.column(name))[rows], y, bool(len(task.classes)))
        if score >= SURE:
            found[name] = min(score, 1.0)
    return found


def leak_words(leaks: Mapping[str, float], target: str) -> list[str]:
    """Say which columns give the target away, and what to do."""
    return [
        f"Column `{name}` alone predicts `{target}` almost perfectly ({score:.4g} on rows held "
        f"out). Is it a copy of the target, or known only after it? Then every score below is "
        f"worthless: leave it out with --drop {name}."
        for name, score in leaks.items()
    ]


def _numbers(values: np.ndarray) -> np.ndarray:
    """Return a column as numbers, words by their place in the alphabet; missing ones are NaN."""
    if values.dtype == object:
        missing = np.array([v is None for v in values])
        codes = np.unique([str(v) for v in values], return_inverse=True)[1].astype(float)
        return np.where(missing, np.nan, codes)
    if values.dtype.kind == "M":
        return np.where(np.isnat(values), np.nan, values.astype("datetime64[s]").astype(float))
    return values.astype(float)


def _score(x: np.ndarray, y: np.ndarray, classes: bool) -> float:
    """Return how well each half of the rows is predicted from the other."""
    half, known = np.arange(len(x)) % 2 == 0, np.isfinite(x)
    said = np.full(len(y), -1.0 if classes else float(y.mean()))
    for train, test in ((half & known, ~half & known), (~half & known, half & known)):
        if train.sum() > 1:
            said[test] = _nearest(x[train], y[train], x[test], classes)
    if classes:
        return float(np.mean([np.mean(said[y == label] == label) for label in np.unique(y)]))
    return max(_r2(y, said), _r2(y, _line(x, y, half, known)))


def _nearest(x: np.ndarray, y: np.ndarray, asked: np.ndarray, classes: bool) -> np.ndarray:
    """Return the class of the nearest value, or the number between the two nearest ones."""
    values, place = np.unique(x, return_inverse=True)
    if not classes:
        return np.interp(asked, values, np.bincount(place, y) / np.bincount(place))
    counts = np.zeros((len(values), int(y.max()) + 1))
    np.add.at(counts, (place, y.astype(int)), 1)
    right = np.clip(np.searchsorted(values, asked), 1, max(len(values) - 1, 1)) % len(values)
    left = np.maximum(right - 1, 0)
    near = np.where(asked - values[left] <= values[right] - asked, left, right)
    return counts.argmax(axis=1)[near].astype(float)


def _line(x: np.ndarray, y: np.ndarray, half: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the predictions of straight lines, which know what lies beyond the other rows."""
    said = np.full(len(y), float(y.mean()))
    for train, test in ((half & known, ~half & known), (~half & known, half & known)):
        if train.sum() > 2 and np.ptp(x[train]) > 0:
            centre, scale = x[train].mean(), x[train].std()
            slope, level = np.polyfit((x[train] - centre) / scale, y[train], 1)
            said[test] = level + slope * (x[test] - centre) / scale
    return said


def _r2(y: np.ndarray, said: np.ndarray) -> float:
    return float(1 - np.square(y - said).sum() / np.square(y - y.mean()).sum())
