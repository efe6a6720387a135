"""Effective model complexity: how many rows a training procedure can fit.

EMC(T, eps) = max {n : E_S error of T(S) on S <= eps, S of n rows}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.evaluate.displays.bands import band, mean_error, splittable
from castalia.evaluate.displays.display import Display
from castalia.utils.figure_style import COLOURS, INK, caption, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EffectiveModelComplexity"]


@dataclass
class EffectiveModelComplexity(Display):
    """Training error over the number of rows, and the largest number that is still fitted.

    Parameters
    ----------
    rows
        Numbers of rows, (S,), ascending.
    train
        Training errors, (S, R), one column a draw of rows.
    eps
        Error below which the rows count as fitted.

    Attributes
    ----------
    complexity
        The effective model complexity among ``rows``; 0 when none is fitted.
    ax_, figure_
        What was drawn on.

    References
    ----------
    2020, Nakkiran et al., Deep double descent: where bigger models and more data hurt, ICLR.

    Examples
    --------
    >>> shown = EffectiveModelComplexity([5, 10, 20], np.array([[0.0], [0.0], [0.4]]), eps=0.1)
    >>> shown.complexity, shown.regime(3), shown.regime(100)
    (10, 'over-parameterised', 'under-parameterised')
    """

    rows: np.ndarray
    train: np.ndarray
    eps: float = 0.1

    def __post_init__(self) -> None:
        self.rows, self.train = np.asarray(self.rows), np.asarray(self.train, dtype=float)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        rows: Sequence[int],
        eps: float = 0.1,
        repeats: int = 3,
        random_state: int = 0,
    ) -> EffectiveModelComplexity:
        """Fit the estimator on random draws of rows, for every number of rows.

        Parameters
        ----------
        estimator
            Cloned for every fit.
        X, y
            Rows to draw from, and their targets; a ``castalia.data.Dataset`` in memory brings its
            own target, or ``y`` names one of its columns.
        rows
            Numbers of rows to try.
        eps
            Error below which they count as fitted: share of wrong answers, or mean squared error.
        repeats
            Draws of each size.
        random_state
            Seed of the draws.
        """
        from sklearn.base import clone
        from sklearn.utils import _safe_indexing

        X, y = splittable(X, y)
        if not len(rows) or min(rows) < 1:
            raise InvalidParameter(
                f"EffectiveModelComplexity: `rows` must hold one size or more, each at least 1; "
                f"got {list(rows)}."
            )
        if max(rows) > len(y):
            raise InvalidParameter(
                f"EffectiveModelComplexity: `rows` must not exceed the {len(y):,} rows given; got "
                f"{max(rows):,}."
            )
        rng = np.random.default_rng(random_state)
        errors = np.empty((len(rows), repeats))
        for i, n in enumerate(rows):
            for j in range(repeats):
                drawn = rng.permutation(len(y))[:n]
                some, target = _safe_indexing(X, drawn), _safe_indexing(y, drawn)
                errors[i, j] = mean_error(clone(estimator).fit(some, target), some, target)
        return cls(np.asarray(rows), errors, eps)

    @property
    def complexity(self) -> int:
        """The largest number of rows whose mean training error is at most ``eps``."""
        fitted = self.rows[self.train.mean(axis=1) <= self.eps]
        return int(fitted.max()) if len(fitted) else 0

    def regime(self, rows: int, slack: float = 0.2) -> str:
        """Say where a training set of so many rows stands against the complexity.

        Parameters
        ----------
        rows
            Size of the training set.
        slack
            Within this share of the complexity the regime is critical: there more rows, or a
            larger model, may hurt.
        """
        if abs(rows - self.complexity) <= slack * self.complexity:
            return "critical"
        return "over-parameterised" if rows < self.complexity else "under-parameterised"

    def plot(self, ax: Axes | None = None) -> EffectiveModelComplexity:
        """Draw the training error and the threshold."""
        self.ax_, self.figure_ = start(ax, (4.7, 3.3))
        band(self.ax_, self.rows, self.train, COLOURS[0], "training")
        self.ax_.axhline(self.eps, color=INK, lw=0.9, ls=(0, (3, 3)), label=f"{self.eps:g}")
        self.ax_.axvline(
            self.complexity, color=COLOURS[1], lw=1.2, label=f"complexity {self.complexity:,}"
        )
        self.ax_.set(xlabel="training rows", ylabel="training error")
        caption(self.ax_)
        return self
