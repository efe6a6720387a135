"""Concept drift: whether rows still come from where they came from.

Columns: the Kolmogorov–Smirnov distance sup |F(x) - G(x)| of each, its p-values adjusted by Holm.
mmd: E k(x, x') + E k(y, y') - 2 E k(x, y), its law under no drift by permutations.  classifier: how
well old rows are distinguished from new ones on held-out rows, a binomial under no drift.  A
stream: the longest window is cut where the means of its halves differ by more than
e = sqrt(log(4 n / d) / (2 m)), 1/m = 1/n_0 + 1/n_1 (Hoeffding).
References: 2012, Gretton et al., A kernel two-sample test, JMLR 13. 2017, Lopez-Paz, Oquab,
Revisiting classifier two-sample tests, arXiv 1610.06545. 2007, Bifet, Gavaldà, Learning from
time-changing data with adaptive windowing, SDM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import binom, ks_2samp
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.validation import check_is_fitted

from castalia.base import DirectEstimator, Interval, OneOf, check_parameters
from castalia.base.input_checks import check_matrix
from castalia.errors import InvalidData
from castalia.utils.seeds import seed_from
from castalia.utils.text import listing

__all__ = ["AdaptiveWindow", "DriftDetector", "DriftReport", "holm", "mmd_test"]

FEWEST = 10  # rows on either side, below which no test is made
MOST = 1000  # rows of either side that kernels are computed for


@dataclass(frozen=True)
class DriftReport:
    """What a test found.

    Attributes
    ----------
    p_value
        How likely a difference as large is without drift.
    drifted
        Whether it is below the level.
    columns
        Adjusted p-value of each column by its name.
    level
        The level.
    """

    p_value: float
    drifted: bool
    columns: dict[str, float]
    level: float

    def __str__(self) -> str:
        if not self.drifted:
            return f"No drift: p = {self.p_value:.3g}."
        named = [name for name, p in self.columns.items() if p < self.level]
        where = f" in {listing(named, 'and')}" if named else ", in no single column"
        return f"Drift (p = {self.p_value:.3g}){where}."


def holm(p: np.ndarray) -> np.ndarray:
    """Return p-values of several tests, adjusted so that the chance of any false alarm is kept.

    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p)
    factors = np.arange(len(p), 0, -1)
    adjusted = np.minimum(np.maximum.accumulate(p[order] * factors), 1)
    return np.asarray(adjusted[np.argsort(order)])


def mmd_test(x: np.ndarray, y: np.ndarray, random: Any, permutations: int = 200) -> float:
    """Return the p-value of equal distributions, by a Gaussian kernel of median width."""
    joined = np.concatenate([x, y])
    far = cdist(joined, joined, "sqeuclidean")
    gram = np.exp(-far / np.median(far[far > 0])) if (far > 0).any() else np.ones_like(far)
    side = np.where(np.arange(len(joined)) < len(x), 1 / len(x), -1 / len(y))
    drawn = [random.permutation(side) for _ in range(permutations)]
    values = np.array([s @ gram @ s for s in [side, *drawn]])
    return float((values[1:] >= values[0] - 1e-12).sum() + 1) / (permutations + 1)


@dataclass(kw_only=True, eq=False, repr=False)
class DriftDetector(DirectEstimator):
    """Compares new rows with those a model was fitted to, and names the columns that changed.

    Parameters
    ----------
    method
        ``"columns"``: each column alone, quick and readable; ``"mmd"``: also changes of how columns
        go together; ``"classifier"``: the same by a classifier of old against new rows.
    level
        Chance of a false alarm in one test.
    estimator
        The classifier; None takes a forest.

    Attributes
    ----------
    reference_ : ndarray (n, D)
        The rows that others are compared with.
    feature_names_in_ : ndarray (D,)
        Names of the columns, where they have any.

    Shapes
    ------
    X: (n, D) numbers.  ``score_samples``: (n,).

    Notes
    -----
    Kernels are computed for at most 1,000 rows of either side. ``device`` does not count.

    References
    ----------
    2012, Gretton et al., A kernel two-sample test, JMLR 13. 2017, Lopez-Paz, Oquab, Revisiting
    classifier two-sample tests, arXiv 1610.06545.

    See Also
    --------
    OnlineLearning : goes on learning while rows arrive.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> detector = DriftDetector(random_state=0).fit(random.normal(size=(300, 2)))
    >>> str(detector.test(random.normal([0, 1], size=(300, 2)))).split(" in ")[1]
    '`x1`.'
    """

    method: Annotated[str, OneOf("columns", "mmd", "classifier")] = "columns"
    level: Annotated[float, Interval(0, 1, closed="neither")] = 0.01
    estimator: Any = None

    def fit(self, X: Any, y: Any = None) -> DriftDetector:  # type: ignore[override]
        """Keep the rows that later ones are compared with."""
        check_parameters(self)
        self.reference_ = np.array(check_matrix(self, X, reset=True), dtype=np.float64)
        return self

    def test(self, X: Any) -> DriftReport:
        """Compare further rows with those of ``fit``."""
        check_is_fitted(self, "reference_")
        new = np.asarray(check_matrix(self, X, reset=False), dtype=np.float64)
        self._enough(self.reference_)
        self._enough(new)
        pairs = zip(self.reference_.T, new.T, strict=True)
        columns = holm(np.array([ks_2samp(a, b).pvalue for a, b in pairs]))
        p = {"columns": lambda: columns.min(), "mmd": lambda: self._mmd(new)}.get(
            self.method, lambda: self._classified(new)
        )()
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(len(columns))])
        each = dict(zip(map(str, names), columns.tolist(), strict=True))
        return DriftReport(float(p), bool(p < self.level), each, self.level)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the p-value of no drift."""
        return self.test(X).p_value

    def score_samples(self, X: Any) -> np.ndarray:
        """Return how usual the strangest number of each row is, 0 to 1, among those of ``fit``."""
        check_is_fitted(self, "reference_")
        new = np.asarray(check_matrix(self, X, reset=False), dtype=np.float64)
        old = np.sort(self.reference_, axis=0)
        pairs = list(zip(old.T, new.T, strict=True))
        below = np.stack([np.searchsorted(a, b, "right") for a, b in pairs], axis=1) / len(old)
        above = 1 - np.stack([np.searchsorted(a, b, "left") for a, b in pairs], axis=1) / len(old)
        return np.asarray(np.minimum(1, 2 * np.minimum(below, above)).min(axis=1))

    def _enough(self, X: np.ndarray) -> None:
        if len(X) < FEWEST:
            raise InvalidData(
                f"DriftDetector: there must be {FEWEST} rows or more on either side; got {len(X)}."
            )

    def _mmd(self, new: np.ndarray) -> float:
        random = np.random.default_rng(seed_from(self.random_state))
        centre, spread = self.reference_.mean(axis=0), self.reference_.std(axis=0) + 1e-12
        old, new = (
            (random.permutation(rows)[:MOST] - centre) / spread for rows in (self.reference_, new)
        )
        return mmd_test(old, new, random)

    def _classified(self, new: np.ndarray) -> float:
        """Return how likely a classifier that guesses would be right as often on held-out rows."""
        random = np.random.default_rng(seed_from(self.random_state))
        n = min(len(self.reference_), len(new))  # as many of either, so that 1/2 is the baseline
        old, new = (random.permutation(rows)[:n] for rows in (self.reference_, new))
        X, y = np.concatenate([old, new]), np.repeat([0, 1], n)
        learnt = np.isin(np.arange(2 * n) % n, np.arange(0, n, 2))  # every other row of either
        base = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
        model = clone(self.estimator) if self.estimator is not None else base
        right = int((model.fit(X[learnt], y[learnt]).predict(X[~learnt]) == y[~learnt]).sum())
        return float(binom.sf(right - 1, int((~learnt).sum()), 0.5))


class AdaptiveWindow:
    """The mean of a stream of numbers from 0 to 1, over as long a past as nothing has changed.

    Parameters
    ----------
    delta
        Chance of a false alarm over a window.
    most
        Longest window.

    Examples
    --------
    >>> window = AdaptiveWindow()
    >>> [i for i in range(200) if window.update(float(i >= 100))][0] < 130
    True
    """

    def __init__(self, delta: float = 0.002, most: int = 2000) -> None:
        self.delta, self.most = delta, most
        self.values: list[float] = []

    @property
    def mean(self) -> float:
        """The mean of the window; 0 while it is empty."""
        return float(np.mean(self.values)) if self.values else 0.0

    def update(self, value: float) -> bool:
        """Take a value, and say whether the past was cut off because the mean has changed."""
        self.values = [*self.values, value][-self.most :]
        n = len(self.values)
        sums = np.cumsum(self.values)
        first = np.arange(5, n - 4)
        if not len(first):
            return False
        gaps = np.abs(sums[first - 1] / first - (sums[-1] - sums[first - 1]) / (n - first))
        harmonic = 1 / (1 / first + 1 / (n - first))
        cut = np.sqrt(np.log(4 * n / self.delta) / (2 * harmonic))
        if not (gaps > cut).any():
            return False
        self.values = self.values[int(first[(gaps - cut).argmax()]) :]
        return True
