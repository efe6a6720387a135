"""Error over one setting: where underfitting ends and overfitting begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.evaluate.displays.bands import band, errors_of, splittable
from castalia.evaluate.displays.display import Display
from castalia.utils.figure_style import COLOURS, INK, caption, log_across, start
from castalia.utils.text import did_you_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CapacityCurve"]


@dataclass
class CapacityCurve(Display):
    """Training and validation error over the values of one parameter.

    Parameters
    ----------
    values
        Values of the parameter, (V,).
    train, test
        Errors, (V, F), one column a fold.
    parameter
        Its name.
    name
        What the error is called.

    Attributes
    ----------
    best
        The value with the smallest mean validation error.
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> error = np.array([[4.0], [1.0], [3.0]])
    >>> shown = CapacityCurve([1, 2, 3], error / 2, error, "degree")
    >>> shown.best, shown.interior
    (2, True)
    """

    values: Sequence[Any]
    train: np.ndarray
    test: np.ndarray
    parameter: str
    name: str = "error"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        parameter: str,
        values: Sequence[Any],
        cv: Any = 5,
    ) -> CapacityCurve:
        """Fit the estimator with every value of a parameter.

        Parameters
        ----------
        estimator
            Cloned for every fit.
        X, y
            Rows and targets; a ``castalia.data.Dataset`` in memory brings its own target, or ``y``
            names one of its columns.
        parameter, values
            What is varied, and over what.
        cv
            Folds.
        """
        from sklearn.model_selection import validation_curve

        known = estimator.get_params(deep=True)
        if parameter not in known and "__" not in parameter:
            raise InvalidParameter(
                f"CapacityCurve: `parameter` must be one of {type(estimator).__name__}'s; got "
                f"{parameter!r}.{did_you_mean(parameter, known)}"
            )
        if not len(values):
            raise InvalidParameter("CapacityCurve: `values` must hold one value or more; got none.")
        X, y = splittable(X, y)
        scoring, name, sign = errors_of(estimator)
        train, test = validation_curve(
            estimator,
            X,
            y,
            param_name=parameter,
            param_range=values,
            cv=cv,
            scoring=scoring,
            error_score="raise",
        )
        return cls(list(values), sign(train), sign(test), parameter, name)

    @property
    def best(self) -> Any:
        """The value with the smallest mean validation error."""
        return self.values[int(self.test.mean(axis=1).argmin())]

    @property
    def interior(self) -> bool:
        """Whether the best value is not the first or the last: the curve has the shape of a U."""
        return 0 < int(self.test.mean(axis=1).argmin()) < len(self.values) - 1

    def plot(self, ax: Axes | None = None) -> CapacityCurve:
        """Draw both errors, with the best value marked."""
        self.ax_, self.figure_ = start(ax, (4.7, 3.3))
        numeric = all(isinstance(v, int | float | np.number) for v in self.values)
        x = np.asarray(self.values, dtype=float) if numeric else np.arange(len(self.values))
        band(self.ax_, x, self.train, COLOURS[0], "training")
        band(self.ax_, x, self.test, COLOURS[1], "validation")
        at = int(self.test.mean(axis=1).argmin())
        self.ax_.axvline(x[at], color=INK, lw=0.9, ls=(0, (3, 3)), label=f"best: {self.best}")
        if not numeric:
            self.ax_.set_xticks(x, [str(v) for v in self.values])
        else:
            log_across(self.ax_, x)
        self.ax_.set(xlabel=self.parameter, ylabel=self.name)
        caption(self.ax_)
        return self
