"""The rows a model gets most wrong, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.evaluate.displays.style import COLOURS, INK, label, start
from castalia.evaluate.labels import columns, positions, probabilities
from castalia.evaluate.mistakes import Mistake, worst_mistakes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["WorstMistakes"]


@dataclass
class WorstMistakes:
    """The mistakes with the largest loss: often wrong labels, sometimes rows from another world.

    Parameters
    ----------
    mistakes
        Worst first.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> shown = WorstMistakes.from_predictions([0, 1, 1], [0.1, 0.2, 0.9]).plot()
    >>> [(m.index, m.truth, m.prediction) for m in shown.mistakes]
    [(1, 1, 0)]
    """

    mistakes: Sequence[Mistake]
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        probability: Any,
        rows: Any = None,
        *,
        most: int = 10,
        classes: Sequence[Any] | None = None,
    ) -> WorstMistakes:
        """Build from labels and probabilities; the loss is -log p of the true class."""
        table = probabilities(probability, "WorstMistakes")
        labels = columns(y_true, table.shape[1], classes, "WorstMistakes")
        code = positions(y_true, labels, "WorstMistakes")
        said = table.argmax(axis=1)
        loss = -np.log(table[np.arange(len(code)), code].clip(np.finfo(float).tiny))
        names = np.array(labels, dtype=object)
        sure = table.max(axis=1)
        return cls(worst_mistakes(names[code], names[said], loss, rows, most, sure))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, most: int = 10) -> WorstMistakes:
        """Build from a fitted estimator.

        The loss of a regression is the squared error; that of a classifier without probabilities
        is 1 a mistake.
        """
        from sklearn.base import is_classifier
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
        if hasattr(estimator, "predict_proba"):
            classes = list(estimator.classes_)
            table = estimator.predict_proba(X)
            return cls.from_predictions(y, table, X, most=most, classes=classes)
        found = np.asarray(estimator.predict(X))
        truth = np.asarray(y).reshape(found.shape)
        wrong = found != truth if is_classifier(estimator) else np.square(found - truth)
        loss = wrong.reshape(len(found), -1).sum(axis=1)
        return cls(worst_mistakes(truth, found, loss, X, most))

    def plot(self, ax: Axes | None = None) -> WorstMistakes:
        """Draw one bar a mistake, as long as its loss, worst on top."""
        self.ax_, self.figure_ = start(ax, (5.2, 0.9 + 0.28 * max(len(self.mistakes), 1)), "x")
        place = np.arange(len(self.mistakes))
        self.ax_.barh(place, [m.loss for m in self.mistakes], color=COLOURS[4], height=0.62)
        texts = [_words(m) for m in self.mistakes]
        self.ax_.set_yticks(place, texts)
        self.ax_.tick_params(axis="y", labelcolor=INK, length=0)
        self.ax_.invert_yaxis()
        self.ax_.set(xlabel="loss")
        return self


def _words(mistake: Mistake) -> str:
    def said(value: Any) -> str:
        return f"{value:.4g}" if isinstance(value, float) else label(value, 14)

    sure = "" if mistake.confidence is None else f" ({mistake.confidence:.0%})"
    return f"row {mistake.index}: {said(mistake.truth)}, said {said(mistake.prediction)}{sure}"
