"""What the curves of errors share: which error, and a line with its spread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["band", "errors_of", "mean_error"]

Sign = Callable[[np.ndarray], np.ndarray]


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
