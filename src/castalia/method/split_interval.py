"""How far a score could lie elsewhere: over test rows, splits and seeds together.

Every part of a fit has its own split and its own seed. The jackknife turns any score into one value
a row, whose spread gives the variance V over rows. Where J parts differ by more than their rows
explain, the rest E is the variance over splits and seeds. Training rows are shared, so more parts
help less than they seem to, which r corrects, the tested rows for each row trained on:

    variance = V + (1 / J + r) E.

Windows of time differ for good reasons, so there E is 0, and rows that follow each other are left
out together, as their errors are alike.
Reference: 2003, Nadeau, Bengio, Inference for the generalization error, Machine Learning 52.
Departs from it: test rows are not shared, so only E is corrected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from castalia.evaluate import METRICS, Interval
from castalia.evaluate import metric as metric_named

__all__ = ["RowsTested", "split_interval", "within"]

MOST = 400  # rows, or blocks of rows, that are left out in turn

Value = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class RowsTested:
    """The rows that were tested, part after part.

    Attributes
    ----------
    rows, part
        Number of each row and of the part that tested it, (n,).
    ratio
        Tested rows for each row trained on; 0 where nothing was split.
    when
        What puts all rows in order, where parts are windows of time.
    """

    rows: np.ndarray
    part: np.ndarray
    ratio: float = 0.0
    when: np.ndarray | None = None

    @classmethod
    def of(
        cls, tests: Sequence[np.ndarray], ratio: float = 0.0, when: np.ndarray | None = None
    ) -> RowsTested:
        """Return the rows of several test parts."""
        part = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
        return cls(np.concatenate(tests), part, ratio, when)


class Spread(NamedTuple):
    """Variance of the mean over rows, the excess of the parts, and what they rest on."""

    rows: float
    excess: float
    blocks: int
    parts: int


def split_interval(
    value: Value,
    tested: RowsTested,
    level: float = 0.95,
    counted: bool = False,
    basis: int | None = None,
) -> Interval:
    """Return a score with its interval over rows, splits and seeds.

    Parameters
    ----------
    value
        The score, or a difference of scores, of some of the tested rows by their positions.
    tested
        What was tested.
    level
        Probability that the interval holds the score of another split and seed.
    counted
        Whether rows are right or wrong: then two more rows count, one of each, so that a few rows
        that are all right do not make a score certain.
    basis
        Rows that such a score rests on; None: those tested. Where classes count alike, the rarest
        one decides.

    Examples
    --------
    >>> right = np.ones(24)
    >>> found = split_interval(lambda i: right[i].mean(), RowsTested.of([np.arange(24)]),
    ...                        counted=True)
    >>> print(round(found.low, 2), found.mean)
    0.88 1.0
    """
    every = np.arange(len(tested.rows))
    whole = value(every)
    distinct = len(np.unique(tested.rows))
    if distinct < 2 or not math.isfinite(whole):
        return Interval(whole, math.nan, math.nan, distinct)
    spread = _spread(value, tested, whole)
    rows = spread.rows + (2.0 / (basis or distinct) ** 2 if counted else 0.0)
    of_parts = spread.excess * (1 / spread.parts + tested.ratio)
    reach = _quantile(level, rows, of_parts, spread) * math.sqrt(rows + of_parts)
    return Interval(whole, whole - reach, whole + reach, distinct)


def within(found: Interval, metric: str) -> Interval:
    """Cut an interval to what a score can be: no share is above 1, and few scores are below 0."""
    known = metric_named(metric)
    signed = metric == "r2" or not (metric in METRICS or known.fraction)
    low = found.low if signed else max(found.low, 0.0)
    return replace(found, low=low, high=min(found.high, 1.0 if known.fraction else math.inf))


def _quantile(level: float, of_rows: float, of_parts: float, spread: Spread) -> float:
    """Return Student's t with as many degrees of freedom as the two variances have together."""
    weighed = of_rows**2 / (spread.blocks - 1) + of_parts**2 / max(spread.parts - 1, 1)
    free = (of_rows + of_parts) ** 2 / weighed if weighed > 0 else 1.0
    return float(stdtrit(free, (1 + level) / 2))


def _spread(value: Value, tested: RowsTested, whole: float) -> Spread:
    block = _blocks(tested)
    weight, pseudo = _pseudo_values(value, tested.part, block, whole)  # (J, B)
    by_part = (weight * pseudo).sum(axis=1) / weight.sum(axis=1)
    if tested.when is not None:
        pseudo = pseudo - by_part[:, None] + whole  # windows may differ
    share = weight.sum(axis=0)
    by_block = (weight * pseudo).sum(axis=0) / share
    n, parts = len(share), len(weight)
    if n < 2:
        return Spread(math.inf, 0.0, 2, parts)
    rows = float(n / (n - 1) * (share**2 * (by_block - whole) ** 2).sum())
    if parts == 1 or tested.when is not None:
        return Spread(rows, 0.0, n, parts)
    own = len(np.unique(tested.rows)) * parts / len(tested.rows)  # 1 where all test the same rows
    excess = max(0.0, float(by_part.var(ddof=1)) - rows * own)
    return Spread(rows, excess, n, parts)


def _blocks(tested: RowsTested) -> np.ndarray:
    """Number the rows, or blocks of them where they are many; none reaches over two parts."""
    distinct, first, place = np.unique(tested.rows, return_index=True, return_inverse=True)
    part, block = tested.part[first], np.empty(len(distinct), dtype=int)
    start, rng = 0, np.random.default_rng(0)
    for one in np.unique(part):
        mine = np.flatnonzero(part == one)
        if tested.when is None:  # rows may be sorted; blocks must not be
            turn, size = rng.permutation(len(mine)), -(-len(distinct) // MOST)
        else:
            turn = np.argsort(np.argsort(tested.when[distinct[mine]], kind="stable"))
            size = max(math.isqrt(len(mine)), -(-len(distinct) // MOST))
        block[mine] = start + turn // size
        start = int(block[mine].max()) + 1
    return block[place]


def _pseudo_values(
    value: Value, part: np.ndarray, block: np.ndarray, whole: float
) -> tuple[np.ndarray, np.ndarray]:
    """Leave out each block of each part in turn; return shares of the rows and values, (J, B)."""
    n, shape = len(part), (int(part.max()) + 1, int(block.max()) + 1)
    weight, pseudo = np.zeros(shape), np.full(shape, whole)
    places = part * shape[1] + block
    order = np.argsort(places, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(places[order])) + 1):
        rest = np.delete(np.arange(n), group)
        cell = part[group[0]], block[group[0]]
        weight[cell] = len(group) / n
        without = value(rest) if len(rest) else math.nan
        if math.isfinite(without):
            pseudo[cell] = whole + (n / len(group) - 1) * (whole - without)
    return weight, pseudo
