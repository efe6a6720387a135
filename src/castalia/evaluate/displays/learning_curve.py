"""How the error falls as rows are added, and what more rows would bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidData
from castalia.evaluate.displays.bands import band, errors_of, splittable
from castalia.evaluate.displays.display import Display
from castalia.utils.figure_style import COLOURS, INK, caption, log_across, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LearningCurve"]


@dataclass
class LearningCurve(Display):
    """Training and validation error over the number of training rows.

    A gap that closes says that more rows will help; two lines that have met say that they will
    not, and a larger model might.

    Parameters
    ----------
    rows
        Training set sizes, (S,), ascending.
    train, test
        Errors, (S, F), one column a fold.
    name
        What the error is called.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> rows = np.array([10, 40, 160, 640])
    >>> shown = LearningCurve(rows, 0.0 * rows[:, None], 0.1 + 1 / np.sqrt(rows)[:, None])
    >>> [round(v, 2) for v in shown.power_law()]
    [0.1, 1.0, 0.5]
    """

    rows: np.ndarray
    train: np.ndarray
    test: np.ndarray
    name: str = "error"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sizes: Sequence[float] | None = None,
        cv: Any = 5,
        random_state: int = 0,
    ) -> LearningCurve:
        """Fit the estimator on growing shares of the rows.

        Parameters
        ----------
        estimator
            Cloned for every fit.
        X, y
            Rows and targets; a ``castalia.data.Dataset`` in memory brings its own target, or ``y``
            names one of its columns.
        sizes
            Shares of the training rows, or their numbers; by default six steps on a log scale,
            the first with some rows of each class.
        cv
            Folds.
        random_state
            Seed of the order in which rows are added.
        """
        from sklearn.model_selection import learning_curve

        X, y = splittable(X, y)
        scoring, name, sign = errors_of(estimator)
        shares = np.geomspace(_first(estimator, y), 1, 6) if sizes is None else np.asarray(sizes)
        rows, train, test = learning_curve(
            estimator,
            X,
            y,
            train_sizes=shares,
            cv=cv,
            scoring=scoring,
            shuffle=True,
            random_state=random_state,
            error_score="raise",
        )[:3]
        return cls(rows, sign(train), sign(test), name)

    def power_law(self) -> tuple[float, float, float]:
        """Return (c, a, b) of the error c + a n^-b that fits the validation errors best.

        c is what more rows cannot remove.
        """
        from scipy.optimize import least_squares

        if len(self.rows) < 4:
            raise InvalidData(
                f"LearningCurve: a power law needs four sizes or more; got {len(self.rows)}."
            )
        rows, error = np.asarray(self.rows, dtype=float), self.test.mean(axis=1)
        low, span = max(error.min(), 0.0), max(error.max() - error.min(), 1e-12)

        def gap(p: np.ndarray) -> np.ndarray:
            return (p[0] + p[1] * (rows / rows[0]) ** -p[2] - error) / span

        bounds = ([0.0, 0.0, 0.0], [max(error.max(), 1e-12), np.inf, 5.0])
        found = least_squares(gap, [0.5 * low, span, 0.5], bounds=bounds, xtol=1e-14, ftol=1e-14)
        c, a, b = found.x
        return float(c), float(a * rows[0] ** b), float(b)

    def extrapolate(self, rows: float) -> float:
        """Return the validation error to expect with so many rows, by the power law."""
        c, a, b = self.power_law()
        return c + a * rows**-b

    def plot(self, ax: Axes | None = None) -> LearningCurve:
        """Draw both errors with their spread over the folds."""
        self.ax_, self.figure_ = start(ax, (4.7, 3.3))
        band(self.ax_, self.rows, self.train, COLOURS[0], "training")
        band(self.ax_, self.rows, self.test, COLOURS[1], "validation")
        if len(self.rows) >= 4:
            far = np.geomspace(self.rows[0], 4 * self.rows[-1], 60)
            c, a, b = self.power_law()
            self.ax_.plot(far, c + a * far**-b, color=INK, lw=1, ls=(0, (3, 3)), label="power law")
        log_across(self.ax_, self.rows, least=1)
        self.ax_.set(xlabel="training rows", ylabel=self.name)
        caption(self.ax_)
        return self


def _first(estimator: Any, y: Any) -> float:
    """Return the share of the rows to begin with: a twentieth, or some eight rows a class."""
    from sklearn.base import is_classifier

    classes = len(np.unique(np.asarray(y))) if is_classifier(estimator) else 0
    return float(np.clip(8 * classes / len(y), 0.05, 0.5))
