"""What the curves of errors share: rows that can be split, an error, a line with its spread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.base.input_checks import split_target
from castalia.data import Dataset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["band", "errors_of", "mean_error", "splittable"]

Sign = Callable[[np.ndarray], np.ndarray]


class Indexed:
    """A data set that scikit-learn splits as it splits a pandas frame: by ``take`` along an axis.

    Its parts are data sets again, so an estimator sees their columns and types.
    """

    iloc = None  # by which scikit-learn knows a frame

    def __init__(self, data: Dataset) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def take(self, index: np.ndarray, axis: int = 0) -> Dataset:
        """Return the rows at these positions."""
        return self.data.take(index)


def splittable(X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows that scikit-learn can split, and y, taken out of a ``Dataset`` if it is there."""
    X, y = split_target(X, y)
    return Indexed(X) if isinstance(X, Dataset) else X, y


def errors_of(estimator: Any) -> tuple[str, str, Sign]:
    """Return scikit-learn's scorer, its name as an error, and how a score becomes an error."""
    from sklearn.base import is_classifier

    if is_classifier(estimator):
        return "accuracy", "share of wrong answers", lambda score: 1 - score
    return "neg_mean_squared_error", "mean squared error", lambda score: -score


def mean_error(estimator: Any, X: Any, y: Any) -> float:
    """Return a fitted estimator's share of wrong answers, or its mean squared error."""
    from sklearn.base import is_classifier

    found = estimator.predict(X)
    if is_classifier(estimator):
        return float((found != np.asarray(y)).mean())
    return float(np.square(found - np.asarray(y).reshape(found.shape)).mean())


def band(ax: Axes, x: np.ndarray, values: np.ndarray, colour: str, label: str) -> None:
    """Draw the mean of the columns over x, with one standard deviation around it."""
    mean, spread = values.mean(axis=1), values.std(axis=1)
    if values.shape[1] > 1:
        ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0)
    ax.plot(x, mean, color=colour, lw=1.8, marker="o", ms=3.5, label=label)
