"""The rows a model gets most wrong, as an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.evaluate.displays.display import Display
from castalia.evaluate.displays.drawn_images import as_images, stretched
from castalia.evaluate.label_columns import class_table
from castalia.evaluate.mistakes import Mistake, worst_mistakes
from castalia.utils.figure_style import COLOURS, INK, label, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["WorstMistakes"]


@dataclass
class WorstMistakes(Display):
    """The mistakes with the largest loss: often wrong labels, sometimes rows from another world.

    Parameters
    ----------
    mistakes
        Worst first.
    images
        Their images, (M, H, W) or (M, H, W, 3) between 0 and 1, where rows are images.

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
    images: np.ndarray | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        probability: Any,
        rows: Any = None,
        *,
        most: int = 10,
        classes: Sequence[Any] | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> WorstMistakes:
        """Build from labels and probabilities; the loss is -log p of the true class.

        Parameters
        ----------
        y_true, probability
            Labels, and probabilities of the classes, one row each.
        rows
            The inputs, as for ``worst_mistakes``; images may be (N, H, W) or (N, H, W, 3), or have
            their 1 or 3 channels before height and width.
        most
            How many to show at most.
        classes
            Labels of the columns of ``probability``.
        shape
            Height and width (and 3 channels) of images whose pixels are the columns of ``rows``.
        """
        table, labels, code = class_table(y_true, probability, classes, "WorstMistakes")
        said = table.argmax(axis=1)
        loss = -np.log(table[np.arange(len(code)), code].clip(np.finfo(float).tiny))
        names = np.array(labels, dtype=object)
        sure = table.max(axis=1)
        images = as_images("WorstMistakes", rows, shape)
        table_rows = rows if images is None else None
        found = worst_mistakes(names[code], names[said], loss, table_rows, most, sure)
        return cls(found, _of(images, found))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        most: int = 10,
        shape: tuple[int, ...] | None = None,
    ) -> WorstMistakes:
        """Build from a fitted estimator.

        The loss of a regression is the squared error; that of a classifier without probabilities
        is 1 a mistake.

        Parameters
        ----------
        estimator
            Anything fitted that predicts.
        X, y
            Rows and targets it has not learnt from.
        most, shape
            As for ``from_predictions``.
        """
        from sklearn.base import is_classifier
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)
        if hasattr(estimator, "predict_proba"):
            classes = list(estimator.classes_)
            table = estimator.predict_proba(X)
            return cls.from_predictions(y, table, X, most=most, classes=classes, shape=shape)
        found = np.asarray(estimator.predict(X))
        truth = np.asarray(y).reshape(found.shape)
        wrong = found != truth if is_classifier(estimator) else np.square(found - truth)
        loss = wrong.reshape(len(found), -1).sum(axis=1)
        images = as_images("WorstMistakes", X, shape)
        mistakes = worst_mistakes(truth, found, loss, X if images is None else None, most)
        return cls(mistakes, _of(images, mistakes))

    def plot(self, ax: Axes | None = None) -> WorstMistakes:
        """Draw the images, worst first; or one bar a mistake, as long as its loss, worst on top."""
        if self.images is not None and len(self.images):
            self._gallery(self.images, ax)
            return self
        self.ax_, self.figure_ = start(ax, (5.2, 0.9 + 0.28 * max(len(self.mistakes), 1)), "x")
        place = np.arange(len(self.mistakes))
        self.ax_.barh(place, [m.loss for m in self.mistakes], color=COLOURS[4], height=0.62)
        texts = [_words(m) for m in self.mistakes]
        self.ax_.set_yticks(place, texts)
        self.ax_.tick_params(axis="y", labelcolor=INK, length=0)
        self.ax_.invert_yaxis()
        self.ax_.set(xlabel="loss")
        return self

    def _gallery(self, images: np.ndarray, ax: Axes | None) -> None:
        count = len(self.mistakes)
        across = min(count, 5)
        down = -(-count // across)
        self.ax_, self.figure_ = start(ax, (1.25 * across, 1.62 * down), "none")
        self.ax_.set_axis_off()
        for i, (mistake, image) in enumerate(zip(self.mistakes, images, strict=True)):
            left, top = i % across / across, 1 - i // across / down
            box = (left + 0.06 / across, top - 0.94 / down, 0.88 / across, 0.7 / down)
            tile = self.ax_.inset_axes(box)
            tile.imshow(image, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            tile.set(xticks=[], yticks=[])
            tile.spines[:].set_visible(False)
            tile.set_title(_short(mistake), size=8.5, color=INK, pad=4, linespacing=1.25)


def _words(mistake: Mistake) -> str:
    truth, said, sure = _said(mistake.truth), _said(mistake.prediction), _sure(mistake)
    return f"row {mistake.index}: {truth}, said {said}{sure}"


def _short(mistake: Mistake) -> str:
    truth, said = _said(mistake.truth), _said(mistake.prediction)
    return f"{truth}, row {mistake.index}\nsaid {said}{_sure(mistake)}"


def _said(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else label(value, 14)


def _sure(mistake: Mistake) -> str:
    return "" if mistake.confidence is None else f" ({mistake.confidence:.0%})"


def _of(images: np.ndarray | None, mistakes: Sequence[Mistake]) -> np.ndarray | None:
    """Return the images of the mistakes."""
    return None if images is None else stretched(images[[m.index for m in mistakes]])
