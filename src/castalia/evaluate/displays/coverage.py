"""What accuracy a model reaches when it may decline to answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.evaluate.displays.display import Display
from castalia.evaluate.label_columns import class_table, classes_of
from castalia.evaluate.metrics import coverage_accuracy
from castalia.utils.figure_style import COLOURS, INK, caption, label, start

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
    name
        Of the model, in the legend.

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
    name: str = ""

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        probability: Any,
        classes: Sequence[Any] | None = None,
        *,
        name: str = "",
        ax: Axes | None = None,
    ) -> CoverageAccuracy:
        """Build from labels and probabilities; confidence is that of the likeliest class."""
        table, _, code = class_table(y_true, probability, classes, "CoverageAccuracy")
        found = coverage_accuracy(code, table.argmax(axis=1), table.max(axis=1))
        return cls(*found, name)._drawn(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, name: str = "", ax: Axes | None = None
    ) -> CoverageAccuracy:
        """Build from a fitted classifier and test rows."""
        classes = classes_of(estimator, "CoverageAccuracy", "predict_proba")
        return cls.from_predictions(y, estimator.predict_proba(X), classes, name=name, ax=ax)

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
            self.coverage[keep],
            self.accuracy[keep],
            color=COLOURS[0],
            lw=1.8,
            label=label(self.name) if self.name else "surest rows",
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
