"""How many of the alarms are right, against how many of the cases are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate.displays.display import Display
from castalia.evaluate.label_columns import class_table, classes_of
from castalia.utils.figure_style import COLOURS, INK, caption, label, start
from castalia.utils.text import listing

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
        Precision of random answers (the share of the class), where one curve is drawn.
    hidden
        How many classes were left out; the hardest are kept.
    name
        Of the model, in the legend.

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
    name: str = ""

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        probability: Any,
        classes: Sequence[Any] | None = None,
        most: int = 6,
        *,
        pos_label: Any = None,
        name: str = "",
        ax: Axes | None = None,
    ) -> PrecisionRecall:
        """Build from labels and probabilities; keep the ``most`` classes of lowest precision.

        ``pos_label`` is the class whose curve is drawn alone; None: the second of two classes.
        """
        table, labels, code = class_table(y_true, probability, classes, "PrecisionRecall")
        if pos_label is not None and pos_label not in labels:
            raise InvalidParameter(
                f"PrecisionRecall: `pos_label` must be {listing(labels)}; got {pos_label!r}."
            )
        alone = pos_label is not None or len(labels) == 2
        positive = 1 if pos_label is None else labels.index(pos_label)
        wanted = [positive] if alone else range(len(labels))
        found = {
            str(labels[k]): _curve(code == k, table[:, k]) for k in wanted if (code == k).any()
        }
        if not found:
            raise InvalidData("PrecisionRecall: at least one positive row is needed; got none.")
        kept = sorted(found, key=lambda name: found[name][2])[:most]
        curves = {name: found[name] for name in found if name in kept}
        chance = float((code == positive).mean()) if alone else None
        return cls(curves, chance, len(found) - len(curves), name)._drawn(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        pos_label: Any = None,
        name: str = "",
        ax: Axes | None = None,
    ) -> PrecisionRecall:
        """Build from a fitted classifier and test rows."""
        classes = classes_of(estimator, "PrecisionRecall", "predict_proba")
        found = estimator.predict_proba(X)
        return cls.from_predictions(y, found, classes, pos_label=pos_label, name=name, ax=ax)

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
                label=f"{self._words(name)} (AP {area:.3f})",
            )
        if self.chance is not None:
            self.ax_.axhline(self.chance, color=INK, lw=1, ls=(0, (3, 3)), label="chance")
        self.ax_.set(xlabel="recall", ylabel="precision", xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
        caption(self.ax_, across=2)
        return self

    def _words(self, curve: str) -> str:
        """Return what a curve is called: by the model alone, where there is one curve."""
        if not self.name or len(self.curves) > 1:
            curve = f"{self.name} {curve}".strip()
        else:
            curve = self.name
        return label(curve, 18)


def _curve(positive: np.ndarray, belief: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    from sklearn.metrics import average_precision_score, precision_recall_curve

    precision, recall, _ = precision_recall_curve(positive, belief)
    area = float(average_precision_score(positive, belief))
    if len(recall) > _MOST_POINTS:
        keep = np.unique(np.linspace(0, len(recall) - 1, _MOST_POINTS).astype(int))
        precision, recall = precision[keep], recall[keep]
    return recall, precision, area
