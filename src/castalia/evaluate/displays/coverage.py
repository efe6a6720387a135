"""What accuracy a model reaches when it may decline to answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.evaluate.displays.display import Display
from castalia.evaluate.label_columns import columns, positions, probabilities
from castalia.evaluate.metrics import coverage_accuracy
from castalia.utils.figure_style import COLOURS, INK, caption, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CoverageAccuracy"]

_MOST_POINTS = 300


@dataclass
class CoverageAccuracy(Display):
    """Accuracy on the surest rows, over the share of rows answered.

    A curve that rises to the left means that low confidence marks the mistakes, so doubtful rows
    can be passed on to a person.

    Parameters
    ----------
    coverage, accuracy
        The curve, (M,), coverage rising to 1.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> shown = CoverageAccuracy.from_predictions([0, 1, 1], [0.1, 0.9, 0.4]).plot()
    >>> shown.accuracy.round(2).tolist()
    [1.0, 0.67]
    """

    coverage: np.ndarray
    accuracy: np.ndarray

    @classmethod
    def from_predictions(
        cls, y_true: Any, probability: Any, classes: Sequence[Any] | None = None
    ) -> CoverageAccuracy:
        """Build from labels and probabilities; confidence is that of the likeliest class."""
        table = probabilities(probability, "CoverageAccuracy")
        labels = columns(y_true, table.shape[1], classes, "CoverageAccuracy")
        code = positions(y_true, labels, "CoverageAccuracy")
        return cls(*coverage_accuracy(code, table.argmax(axis=1), table.max(axis=1)))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any) -> CoverageAccuracy:
        """Build from a fitted classifier and test rows."""
        return cls.from_predictions(y, estimator.predict_proba(X), list(estimator.classes_))

    def plot(self, ax: Axes | None = None) -> CoverageAccuracy:
        """Draw the curve and the accuracy on all rows."""
        self.ax_, self.figure_ = start(ax, (4.7, 3.3))
        keep = np.unique(np.linspace(0, len(self.coverage) - 1, _MOST_POINTS).astype(int))
        self.ax_.axhline(
            self.accuracy[-1],
            color=INK,
            lw=1,
            ls=(0, (3, 3)),
            label=f"all rows: {self.accuracy[-1]:.3f}",
        )
        self.ax_.plot(
            self.coverage[keep], self.accuracy[keep], color=COLOURS[0], lw=1.8, label="surest rows"
        )
        room = max(0.02, 0.08 * (1 - self.accuracy.min()))
        self.ax_.set(
            xlabel="share of rows answered, surest first",
            ylabel="accuracy",
            xlim=(-0.02, 1.02),
            ylim=(self.accuracy.min() - room, 1 + room),
        )
        caption(self.ax_)
        return self
