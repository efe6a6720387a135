"""Whether a confidence of 80 percent is right eight times in ten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.evaluate.displays.display import Display
from castalia.evaluate.label_columns import class_table, classes_of
from castalia.evaluate.metrics import calibration_error
from castalia.utils.figure_style import COLOURS, INK, caption, dress, label, start, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Calibration"]


@dataclass
class Calibration(Display):
    """Reliability diagram of the predicted class, with a histogram of the confidences.

    Bars give the 95 percent (Wilson) range of the accuracy in a bin, so that a bin with few rows
    does not look like a fault.

    Parameters
    ----------
    confidence, accuracy, low, high
        Mean confidence, accuracy and its range in each bin that is not empty, (B,).
    count
        Rows in each of these bins, (B,).
    error
        Expected calibration error.
    name
        Of the model, in the legend.

    Attributes
    ----------
    ax_, figure_
        What was drawn on; ``bars_`` holds the histogram.

    Examples
    --------
    >>> shown = Calibration.from_predictions([0, 1, 1, 1], [0.25, 0.75, 0.75, 0.75]).plot()
    >>> shown.accuracy.tolist(), shown.count.tolist()
    ([1.0], [4])
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    low: np.ndarray
    high: np.ndarray
    count: np.ndarray
    error: float
    name: str = ""
    bars_: Axes = field(init=False, repr=False)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        probability: Any,
        classes: Sequence[Any] | None = None,
        bins: int = 10,
        *,
        name: str = "",
        ax: Axes | None = None,
    ) -> Calibration:
        """Build from labels and probabilities, in equal bins of confidence."""
        table, labels, code = class_table(y_true, probability, classes, "Calibration")
        hit = table.argmax(axis=1) == code
        confidence = table.max(axis=1)
        place = np.minimum((confidence * bins).astype(int), bins - 1)
        count = np.bincount(place, minlength=bins)
        full = count > 0
        count = count[full]
        right = np.bincount(place, weights=hit, minlength=bins)[full] / count
        mean = np.bincount(place, weights=confidence, minlength=bins)[full] / count
        error = calibration_error(y_true, table, classes=labels)
        return cls(mean, right, *_wilson(right, count), count, error, name)._drawn(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        bins: int = 10,
        *,
        name: str = "",
        ax: Axes | None = None,
    ) -> Calibration:
        """Build from a fitted classifier and test rows."""
        classes = classes_of(estimator, "Calibration", "predict_proba")
        return cls.from_predictions(y, estimator.predict_proba(X), classes, bins, name=name, ax=ax)

    def plot(self, ax: Axes | None = None) -> Calibration:
        """Draw the diagram and, at its foot, how many rows have which confidence."""
        self.ax_, self.figure_ = start(ax, (4.7, 3.5))
        self.ax_.plot([0, 1], [0, 1], color=INK, lw=1, ls=(0, (3, 3)), label="perfect")
        self.ax_.errorbar(
            self.confidence,
            self.accuracy,
            yerr=[self.accuracy - self.low, self.high - self.accuracy],
            fmt="o-",
            ms=4.5,
            lw=1.5,
            elinewidth=1,
            color=COLOURS[0],
            label=f"{label(self.name) if self.name else 'model'}, 95% range",
        )
        self.ax_.set(ylabel="accuracy", xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
        caption(self.ax_)
        self._histogram(inside=ax is not None)
        return self

    def _histogram(self, inside: bool) -> None:
        """Add the bars: under our own axes, or hung below those of the caller."""
        if inside:
            self.bars_ = self.ax_.inset_axes((0, -0.34, 1, 0.22))
        else:
            grid = self.figure_.add_gridspec(2, 1, height_ratios=[3.4, 1])
            self.ax_.set_subplotspec(grid[0])
            self.bars_ = self.figure_.add_subplot(grid[1])
        dress(self.bars_, grid="y")
        self.bars_.bar(self.confidence, self.count, width=0.05, color=COLOURS[0], alpha=0.5)
        self.bars_.set(
            xlabel="confidence in the predicted class", ylabel="rows", xlim=(-0.02, 1.02)
        )
        whole_ticks(self.bars_.yaxis, 2)
        self.ax_.tick_params(labelbottom=False)


def _wilson(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's 95 percent range of a share; it stays inside [0, 1] and holds the share."""
    z2 = 1.959964**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    inside = share * (1 - share) / count + z2 / (4 * count**2)
    reach = np.sqrt(z2 * inside) / (1 + z2 / count)
    return np.minimum(centre - reach, share).clip(0), np.maximum(centre + reach, share).clip(max=1)
