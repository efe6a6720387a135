"""How far a regression misses, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate.displays.display import Display
from castalia.utils.figure_style import COLOURS, INK, label, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Residuals"]

# More points would only darken the cloud and weigh down the page.
_MOST_POINTS = 1000


@dataclass
class Residuals(Display):
    """Residuals of a regression: truth minus prediction, or truth against prediction.

    A good fit scatters evenly about the line; a funnel means the error grows with the value, a
    bend means that something systematic is missed.

    Parameters
    ----------
    y_true, y_pred
        Truth and prediction, (n,).

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> shown = Residuals.from_predictions([1.0, 2.0], [1.5, 2.0]).plot(kind="actual")
    >>> shown.ax_.get_xlabel()
    'predicted'
    """

    y_true: np.ndarray
    y_pred: np.ndarray

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, ax: Axes | None = None) -> Residuals:
        """Build from truth and prediction; rows that are not finite are left out."""
        truth, said = np.asarray(y_true, dtype=float), np.asarray(y_pred, dtype=float)
        if truth.shape != said.shape or truth.ndim != 1:
            raise ShapeMismatch(
                f"Residuals: `y_true` and `y_pred` must have one number per row; got shapes "
                f"{truth.shape} and {said.shape}. Show one output at a time."
            )
        known = np.isfinite(truth) & np.isfinite(said)
        if not known.any():
            raise InvalidData("Residuals: at least one row must be finite; got none.")
        return cls(truth[known], said[known])._drawn(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None) -> Residuals:
        """Build from a fitted regressor and test rows."""
        return cls.from_predictions(y, estimator.predict(X), ax=ax)

    def plot(
        self, ax: Axes | None = None, kind: str = "residual", name: str | None = None
    ) -> Residuals:
        """Draw residuals (``kind="residual"``) or truth (``"actual"``) over the prediction.

        ``name`` is the target's name, shown on the axis.
        """
        if kind not in ("residual", "actual"):
            raise InvalidParameter(
                f"Residuals: `kind` must be 'residual' or 'actual'; got {kind!r}."
            )
        self.ax_, self.figure_ = start(ax, (4.7, 3.4))
        rows = self._shown()
        height = self.y_true - self.y_pred if kind == "residual" else self.y_true
        self.ax_.plot(
            self.y_pred[rows], height[rows], "o", ms=4, mew=0, color=COLOURS[0], alpha=0.55
        )
        self._reference_line(kind)
        of = f" {label(name)}" if name else ""
        side = "actual minus predicted" if kind == "residual" else f"actual{of}"
        self.ax_.set(xlabel=f"predicted{of}", ylabel=side)
        return self

    def _shown(self) -> np.ndarray:
        """Choose evenly spread rows by prediction, keeping the largest residuals."""
        n = len(self.y_true)
        if n <= _MOST_POINTS:
            return np.arange(n)
        worst = np.argsort(-np.abs(self.y_true - self.y_pred))[: _MOST_POINTS // 10]
        even = np.argsort(self.y_pred)[np.linspace(0, n - 1, _MOST_POINTS * 9 // 10).astype(int)]
        return np.union1d(worst, even)

    def _reference_line(self, kind: str) -> None:
        style: dict[str, Any] = {"color": INK, "lw": 1, "ls": (0, (3, 3)), "zorder": 1}
        if kind == "residual":
            self.ax_.axhline(0, **style)
            return
        low = min(self.y_true.min(), self.y_pred.min())
        high = max(self.y_true.max(), self.y_pred.max())
        self.ax_.plot([low, high], [low, high], **style)
