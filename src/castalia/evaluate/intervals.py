"""Scores with their uncertainty: over seeds or folds, and over the rows of one test set."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate.sums import Sums, sums_of
from castalia.utils.renamed_arguments import renamed

__all__ = ["Interval", "Score", "bootstrap", "interval", "paired_difference"]

Score = str | Callable[[Any, Any], float]

# Rows times resamples held at once: 32 MB of counts.
_BLOCK = 2**22


@dataclass(frozen=True)
class Interval:
    """A score with the range it would fall in, were the experiment repeated.

    Attributes
    ----------
    mean
        The score itself: the mean over seeds, or the score on the whole test set.
    low, high
        The bounds; nan when they cannot be known.
    n
        How many seeds, folds or rows it rests on.

    Examples
    --------
    >>> str(Interval(0.95, 0.93, 0.97, 10))
    '0.95 [0.93, 0.97]'
    """

    mean: float
    low: float
    high: float
    n: int

    @property
    def known(self) -> bool:
        """Whether the bounds are numbers."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def excludes(self, value: float) -> bool:
        """Say whether a value lies outside the bounds; never when they are unknown."""
        return self.known and not self.low <= value <= self.high

    def __str__(self) -> str:
        bounds = f" [{self.low:.4g}, {self.high:.4g}]" if self.known else ""
        return f"{self.mean:.4g}{bounds}"


def interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Student's t interval of the mean over seeds or folds.

    Seeds are independent, so the interval has its level; folds share training rows, so over folds
    it is somewhat too narrow.

    Parameters
    ----------
    values
        One score per seed or fold. A single one gives nan bounds.
    level
        Probability that the interval holds the true mean, between 0 and 1.

    Examples
    --------
    >>> str(interval([0.90, 0.92, 0.94]))
    '0.92 [0.8703, 0.9697]'
    """
    _check_level("interval", level)
    scores = np.asarray(values, dtype=float).ravel()
    n = len(scores)
    if n == 0:
        raise InvalidData("interval: `values` must hold at least one score; got none.")
    mean = float(scores.mean())
    if n == 1:
        return Interval(mean, math.nan, math.nan, 1)
    from scipy.stats import t

    reach = float(t.ppf((1 + level) / 2, n - 1) * scores.std(ddof=1) / math.sqrt(n))
    return Interval(mean, mean - reach, mean + reach, n)


@renamed(prediction="y_pred")
def bootstrap(
    score: Score,
    y_true: Any,
    y_pred: Any,
    level: float = 0.95,
    rounds: int = 500,
    random_state: int = 0,
) -> Interval:
    """Percentile bootstrap of a score over the rows of a test set.

    Parameters
    ----------
    score
        A name (``"accuracy"``, ``"balanced_accuracy"``, ``"r2"``, ``"mse"``, ``"rmse"``,
        ``"mae"``) or a function of ``(y_true, y_pred)``. Names, and scikit-learn's functions
        of the same meaning, need no Python loop over resamples.
    y_true, y_pred
        One entry per row.
    level
        Probability mass between the bounds, between 0 and 1.
    rounds
        Number of resamples; more makes the bounds steadier.
    random_state
        Seed of the resampling.

    Examples
    --------
    >>> truth = [0, 1] * 50
    >>> answer = [0, 1] * 45 + [1, 0] * 5
    >>> found = bootstrap("accuracy", truth, answer)
    >>> round(found.mean, 2), found.low < 0.9 < found.high
    (0.9, True)
    """
    y, (a,) = _aligned("bootstrap", y_true, y_pred)
    whole, (draws,) = _resampled("bootstrap", score, y, [a], rounds, random_state)
    return _percentiles("bootstrap", whole[0], draws, level, len(y))


def paired_difference(
    score: Score,
    y_true: Any,
    a: Any,
    b: Any,
    level: float = 0.95,
    rounds: int = 500,
    random_state: int = 0,
) -> Interval:
    """Interval of ``score(a) - score(b)``, both scored on the same resamples.

    Because the rows are shared, it is much narrower than two separate intervals suggest.
    Parameters are those of `bootstrap`.

    Examples
    --------
    >>> truth = [0, 1] * 50
    >>> found = paired_difference("accuracy", truth, truth, [0] * 100)
    >>> round(found.mean, 2), found.excludes(0)
    (0.5, True)
    """
    y, sides = _aligned("paired_difference", y_true, a, b)
    whole, draws = _resampled("paired_difference", score, y, sides, rounds, random_state)
    difference = draws[0] - draws[1]
    return _percentiles("paired_difference", whole[0] - whole[1], difference, level, len(y))


def _check_level(owner: str, level: float) -> None:
    if not 0 < level < 1:
        raise InvalidParameter(f"{owner}: `level` must lie between 0 and 1; got {level!r}.")


def _aligned(owner: str, y_true: Any, *predictions: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """Turn everything into arrays with one entry per row."""
    y, arrays = np.asarray(y_true), [np.asanyarray(p) for p in predictions]
    if len(y) == 0:
        raise InvalidData(f"{owner}: `y_true` must hold at least one row; got none.")
    for array in arrays:
        if len(array) != len(y):
            raise ShapeMismatch(
                f"{owner}: predictions must have one entry per row of `y_true` ({len(y)}); "
                f"got {len(array)}."
            )
    return y, arrays


def _resampled(
    owner: str, score: Score, y: np.ndarray, sides: list[np.ndarray], rounds: int, seed: int
) -> tuple[list[float], list[np.ndarray]]:
    """Score each side on all rows and on every resample."""
    if rounds < 1:
        raise InvalidParameter(f"{owner}: `rounds` must be at least 1; got {rounds!r}.")
    sums = sums_of(score, owner)
    if sums is None:
        if isinstance(score, str):  # sums_of has refused unknown names
            raise InvalidParameter(f"{owner}: `score` must be a function; got {score!r}.")
        return _slow(score, y, sides, rounds, seed)
    return _fast(sums, y, sides, rounds, seed)


def _indices(rows: int, rounds: int, seed: int) -> Iterator[np.ndarray]:
    """Yield resampled row numbers, as many resamples at once as fit in a block."""
    rng, step = np.random.default_rng(seed), max(1, _BLOCK // rows)
    for start in range(0, rounds, step):
        yield rng.integers(0, rows, size=(min(step, rounds - start), rows))  # (R, n)


def _counts(index: np.ndarray) -> np.ndarray:
    """Count how often each row was drawn in each resample."""
    rounds, rows = index.shape
    flat = (index + np.arange(rounds)[:, None] * rows).ravel()
    return np.bincount(flat, minlength=rounds * rows).reshape(rounds, rows).astype(float)


def _fast(
    sums: Sums, y: np.ndarray, sides: list[np.ndarray], rounds: int, seed: int
) -> tuple[list[float], list[np.ndarray]]:
    parts = [sums.parts(y, side) for side in sides]  # each (n, m)
    whole = [float(sums.finish(p.sum(axis=0, keepdims=True))[0]) for p in parts]
    draws: list[list[np.ndarray]] = [[] for _ in sides]
    for index in _indices(len(y), rounds, seed):
        counts = _counts(index)
        for found, part in zip(draws, parts, strict=True):
            found.append(sums.finish(counts @ part))  # (R,)
    return whole, [np.concatenate(found) for found in draws]


def _slow(
    score: Callable[[Any, Any], float],
    y: np.ndarray,
    sides: list[np.ndarray],
    rounds: int,
    seed: int,
) -> tuple[list[float], list[np.ndarray]]:
    whole = [float(score(y, side)) for side in sides]
    draws: list[list[float]] = [[] for _ in sides]
    for index in _indices(len(y), rounds, seed):
        for rows in index:
            for found, side in zip(draws, sides, strict=True):
                found.append(_quietly(score, y[rows], side[rows]))
    return whole, [np.asarray(found) for found in draws]


def _quietly(score: Callable[[Any, Any], float], y: np.ndarray, side: np.ndarray) -> float:
    """Score one resample; one that lost a class entirely counts as unknown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(score(y, side))
        except ValueError:
            return math.nan


def _percentiles(owner: str, mean: float, draws: np.ndarray, level: float, n: int) -> Interval:
    _check_level(owner, level)
    draws = draws[np.isfinite(draws)]
    if n == 1 or len(draws) == 0:
        return Interval(mean, math.nan, math.nan, n)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(mean, float(low), float(high), n)
