"""Test error that falls, rises where the training set is just fitted, and falls again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate.displays.bands import mean_error
from castalia.evaluate.displays.display import Display
from castalia.utils.figure_style import COLOURS, INK, caption, log_across, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DoubleDescent"]


@dataclass
class DoubleDescent(Display):
    """Training and test error over the size of the model, the epochs, or the training rows.

    Parameters
    ----------
    x
        Sizes, epochs or rows, (V,), ascending.
    train, test
        Errors, (V,).
    axis
        What x is.
    eps
        Training error below which the training set counts as fitted.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    References
    ----------
    2019, Belkin, Hsu, Ma, Mandal, Reconciling modern machine-learning practice and the classical
    bias–variance trade-off, PNAS 116. 2020, Nakkiran et al., Deep double descent, ICLR.

    Examples
    --------
    >>> shown = DoubleDescent([1, 2, 3, 4, 5], [3, 1, 0, 0, 0], [4, 3, 9, 2, 1], "features")
    >>> shown.threshold, shown.peak, shown.second_descent
    (3.0, 3.0, True)
    """

    x: np.ndarray
    train: np.ndarray
    test: np.ndarray
    axis: str = "size"
    eps: float = 1e-6

    def __post_init__(self) -> None:
        self.x, self.train, self.test = (
            np.asarray(values, dtype=float) for values in (self.x, self.train, self.test)
        )
        if not len(self.x) == len(self.train) == len(self.test) >= 3:
            raise InvalidData(
                "DoubleDescent: `x`, `train` and `test` must have equal lengths, three or more; "
                f"got {len(self.x)}, {len(self.train)} and {len(self.test)}."
            )

    @classmethod
    def over_sizes(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        X_test: Any,
        y_test: Any,
        *,
        parameter: str,
        values: Sequence[Any],
        eps: float = 1e-6,
    ) -> DoubleDescent:
        """Fit the estimator with every size; ``parameter`` names what grows."""
        from sklearn.base import clone

        def fitted(value: Any) -> tuple[Any, Any, Any]:
            return clone(estimator).set_params(**{parameter: value}).fit(X, y), X, y

        train, test = _errors(map(fitted, values), X_test, y_test)
        return cls(np.asarray(values, dtype=float), train, test, parameter, eps)

    @classmethod
    def over_rows(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        X_test: Any,
        y_test: Any,
        *,
        rows: Sequence[int],
        eps: float = 1e-6,
    ) -> DoubleDescent:
        """Fit the estimator on the first ``rows`` rows, for every number of rows."""
        from sklearn.base import clone

        def fitted(n: int) -> tuple[Any, Any, Any]:
            return clone(estimator).fit(X[:n], y[:n]), X[:n], y[:n]

        train, test = _errors(map(fitted, rows), X_test, y_test)
        return cls(np.asarray(rows, dtype=float), train, test, "training rows", eps)

    @classmethod
    def over_epochs(
        cls, estimator: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, eps: float = 1e-6
    ) -> DoubleDescent:
        """Train once and watch the loss on the test rows after every epoch.

        The test rows only watch: no weight, rate or stop depends on them.
        """
        from sklearn.base import clone

        model = clone(estimator)
        if getattr(model.training, "patience", None) is not None:
            raise InvalidParameter(
                "DoubleDescent: `patience` must be None, or the training would stop by the test "
                "rows."
            )
        model.set_params(training__validation=(X_test, y_test)).fit(X, y)
        loss = [line["loss"] for line in model.history_]
        test = [line["val_loss"] for line in model.history_]
        return cls(1.0 + np.arange(len(loss)), np.asarray(loss), np.asarray(test), "epoch", eps)

    @property
    def threshold(self) -> float | None:
        """Where the training set is first fitted (last, over rows); None when it never is."""
        fitted = np.flatnonzero(self.train <= self.eps)
        if not len(fitted):
            return None
        return float(self.x[fitted[-1] if self.axis == "training rows" else fitted[0]])

    @property
    def peak(self) -> float:
        """Where the test error has its highest peak inside the range; the ends do not count."""
        return float(self.x[1:-1][self.test[1:-1].argmax()])

    @property
    def second_descent(self) -> bool:
        """Whether the test error falls after the peak below where it stood before rising to it."""
        at = 1 + int(self.test[1:-1].argmax())
        return bool(self.test[:at].min() < self.test[at] and self.test[at:].min() < self.test[at])

    def plot(self, ax: Axes | None = None) -> DoubleDescent:
        """Draw both errors and the interpolation threshold."""
        self.ax_, self.figure_ = start(ax, (5.2, 3.3))
        self.ax_.plot(self.x, self.train, color=COLOURS[0], lw=1.8, label="training")
        self.ax_.plot(self.x, self.test, color=COLOURS[1], lw=1.8, label="test")
        if self.threshold is not None:
            self.ax_.axvline(
                self.threshold, color=INK, lw=0.9, ls=(0, (3, 3)), label="training set fitted"
            )
        log_across(self.ax_, self.x)
        positive = self.test[self.test > 0]
        if len(positive) and positive.max() > 50 * positive.min():
            self.ax_.set_yscale("log")
            self.ax_.set_ylim(bottom=0.5 * positive.min())
        self.ax_.set(xlabel=self.axis, ylabel="error")
        caption(self.ax_)
        return self


def _errors(fits: Iterable[tuple[Any, Any, Any]], X: Any, y: Any) -> np.ndarray:
    """Return the errors of fitted models, on the rows they were fitted to and on others, (2, V)."""
    pairs = [(mean_error(model, *seen), mean_error(model, X, y)) for model, *seen in fits]
    return np.transpose(pairs)
