"""How many of the alarms are right, against how many of the cases are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidData
from castalia.evaluate.displays.display import Display
from castalia.evaluate.label_columns import columns, positions, probabilities
from castalia.utils.figure_style import COLOURS, INK, caption, label, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PrecisionRecall"]

# A curve of this many points looks the same as one of thousands.
_MOST_POINTS = 300


@dataclass
class PrecisionRecall(Display):
    """Precision–recall curves: one for two classes, else one per class against the rest.

    Parameters
    ----------
    curves
        Per class: recall, precision and average precision.
    chance
        Precision of random answers (the share of the class), for two classes only.
    hidden
        How many classes were left out; the hardest are kept.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> shown = PrecisionRecall.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.9]).plot()
    >>> round(shown.curves["1"][2], 3)
    0.833
    """

    curves: dict[str, tuple[np.ndarray, np.ndarray, float]]
    chance: float | None = None
    hidden: int = 0

    @classmethod
    def from_predictions(
        cls, y_true: Any, probability: Any, classes: Sequence[Any] | None = None, most: int = 6
    ) -> PrecisionRecall:
        """Build from labels and probabilities; keep the ``most`` classes of lowest precision."""
        table = probabilities(probability, "PrecisionRecall")
        labels = columns(y_true, table.shape[1], classes, "PrecisionRecall")
        code = positions(y_true, labels, "PrecisionRecall")
        binary = table.shape[1] == 2
        wanted = [1] if binary else range(table.shape[1])
        found = {
            str(labels[k]): _curve(code == k, table[:, k]) for k in wanted if (code == k).any()
        }
        if not found:
            raise InvalidData("PrecisionRecall: at least one positive row is needed; got none.")
        kept = sorted(found, key=lambda name: found[name][2])[:most]
        curves = {name: found[name] for name in found if name in kept}
        return cls(curves, float((code == 1).mean()) if binary else None, len(found) - len(curves))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any) -> PrecisionRecall:
        """Build from a fitted classifier and test rows."""
        return cls.from_predictions(y, estimator.predict_proba(X), list(estimator.classes_))

    def plot(self, ax: Axes | None = None) -> PrecisionRecall:
        """Draw the curves, with average precision (AP) in the legend."""
        self.ax_, self.figure_ = start(ax, (4.7, 3.5))
        for i, (name, (recall, precision, area)) in enumerate(self.curves.items()):
            self.ax_.plot(
                recall,
                precision,
                drawstyle="steps-post",
                color=COLOURS[i % len(COLOURS)],
                lw=1.7,
                label=f"{label(name, 12)} (AP {area:.3f})",
            )
        if self.chance is not None:
            self.ax_.axhline(self.chance, color=INK, lw=1, ls=(0, (3, 3)), label="chance")
        self.ax_.set(xlabel="recall", ylabel="precision", xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
        caption(self.ax_, across=2)
        return self


def _curve(positive: np.ndarray, belief: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    from sklearn.metrics import average_precision_score, precision_recall_curve

    precision, recall, _ = precision_recall_curve(positive, belief)
    area = float(average_precision_score(positive, belief))
    if len(recall) > _MOST_POINTS:
        keep = np.unique(np.linspace(0, len(recall) - 1, _MOST_POINTS).astype(int))
        precision, recall = precision[keep], recall[keep]
    return recall, precision, area
