"""Which classes are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidData, ShapeMismatch
from castalia.evaluate.displays.display import Display
from castalia.evaluate.label_columns import classes_of, listed
from castalia.utils.figure_style import COLOURS, labels, readable_on, start, tint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Confusion"]


@dataclass
class Confusion(Display):
    """Confusion matrix: counts in the cells, shade by the share of the true class.

    Parameters
    ----------
    matrix
        Counts, (K, K); rows are the truth, columns the prediction.
    labels
        Class names in the matrix's order.
    hidden
        How many classes were left out because there were too many to show.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> shown = Confusion.from_predictions(["a", "b", "b"], ["a", "b", "a"]).plot()
    >>> shown.matrix.tolist()
    [[1, 0], [1, 1]]
    """

    matrix: np.ndarray
    labels: list[str]
    hidden: int = 0

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        classes: Sequence[Any] | None = None,
        most: int = 15,
        *,
        ax: Axes | None = None,
    ) -> Confusion:
        """Build from labels; with more than ``most`` classes, keep the most confused ones."""
        truth, said = listed(y_true), listed(y_pred)
        if len(truth) != len(said):
            raise ShapeMismatch(
                f"Confusion: `y_pred` must have one label per row of `y_true` ({len(truth)}); "
                f"got {len(said)}."
            )
        if not truth:
            raise InvalidData("Confusion: `y_true` must hold at least one row; got none.")
        matrix, labels = _count(truth, said, classes)
        kept = _most_confused(matrix, most)
        names = [str(labels[i]) for i in kept]
        return cls(matrix[np.ix_(kept, kept)], names, len(labels) - len(kept))._drawn(ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, most: int = 15, *, ax: Axes | None = None
    ) -> Confusion:
        """Build from a fitted classifier and test rows."""
        classes = classes_of(estimator, "Confusion")
        return cls.from_predictions(y, estimator.predict(X), classes, most, ax=ax)

    def plot(self, ax: Axes | None = None) -> Confusion:
        """Draw the matrix."""
        k = len(self.labels)
        size = min(5.6, max(3.6, 1.9 + 0.42 * k))
        self.ax_, self.figure_ = start(ax, (min(4.7, size + 0.4), min(4.5, size)), grid="none")
        total = np.maximum(self.matrix.sum(axis=1, keepdims=True), 1)
        self._cells(self.matrix / total)
        names = labels(self.labels, 14)
        slant = 0 if k <= 4 and max(map(len, names)) <= 10 else 40
        self.ax_.set_xticks(range(k), names, rotation=slant, ha="right" if slant else "center")
        self.ax_.set_yticks(range(k), names)
        self.ax_.set(
            xlabel="predicted", ylabel="actual", xlim=(-0.5, k - 0.5), ylim=(k - 0.5, -0.5)
        )
        self.ax_.set_aspect("equal")
        return self

    def _cells(self, share: np.ndarray) -> None:
        """Draw squares and counts, in black or white, whichever can be read on the shade."""
        from matplotlib.patches import Rectangle

        points = 10 if len(self.labels) <= 8 else 7.5
        for i, j in np.ndindex(*self.matrix.shape):
            colour = COLOURS[0] if i == j else COLOURS[1]
            shade = tint(colour, 0.12 + 0.88 * float(share[i, j]) if self.matrix[i, j] else 0.05)
            square = Rectangle((j - 0.48, i - 0.48), 0.96, 0.96, color=shade, lw=0)
            self.ax_.add_patch(square)
            if self.matrix[i, j]:
                count, ink = f"{self.matrix[i, j]:,}", readable_on(shade)
                self.ax_.text(j, i, count, color=ink, size=points, ha="center", va="center")


def _count(
    truth: list[Any], said: list[Any], classes: Sequence[Any] | None
) -> tuple[np.ndarray, list[Any]]:
    """Count pairs; labels outside ``classes`` are appended."""
    known = [] if classes is None else listed(classes)
    seen = {*truth, *said} - set(known)
    labels = [*known, *sorted(seen, key=_order)]
    place = {v: i for i, v in enumerate(labels)}
    matrix = np.zeros((len(labels), len(labels)), dtype=int)
    np.add.at(matrix, ([place[v] for v in truth], [place[v] for v in said]), 1)
    return matrix, labels


def _order(label: Any) -> tuple[int, float, str]:
    """Sort numbers by value, and anything else by its text after them."""
    return (0, float(label), "") if isinstance(label, int | float) else (1, 0.0, str(label))


def _most_confused(matrix: np.ndarray, most: int) -> np.ndarray:
    """Return the classes with most mistakes in their row and column, in the given order."""
    wrong = matrix - np.diag(np.diag(matrix))
    trouble = wrong.sum(axis=0) + wrong.sum(axis=1)
    return np.sort(np.argsort(-trouble, kind="stable")[:most])
