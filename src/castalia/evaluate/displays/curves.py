"""Loss over epochs, for training and validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidData
from castalia.evaluate.displays.display import Display
from castalia.utils.figure_style import COLOURS, INK, caption, start, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LearningCurves"]


@dataclass
class LearningCurves(Display):
    """Learning curves: training and validation loss over epochs, with the best epoch marked.

    Parameters
    ----------
    epoch, loss
        Epoch numbers and training losses, (E,).
    val_loss
        Validation losses, (E,), nan where not measured, or None.

    Attributes
    ----------
    best_epoch
        Epoch of the lowest validation loss (training loss without validation), or None.
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> history = [{"epoch": 1, "loss": 2.0, "val_loss": 2.1}, {"epoch": 2, "loss": 1.0}]
    >>> LearningCurves.from_history(history).plot().best_epoch
    1
    """

    epoch: np.ndarray
    loss: np.ndarray
    val_loss: np.ndarray | None = None

    @classmethod
    def from_history(cls, history: Sequence[Mapping[str, Any]]) -> LearningCurves:
        """Build from one mapping per epoch with ``epoch``, ``loss`` and perhaps ``val_loss``."""
        if not history:
            raise InvalidData("LearningCurves: `history` must hold at least one epoch; got none.")
        epoch = [float(h.get("epoch", i + 1)) for i, h in enumerate(history)]
        val = _column(history, "val_loss")
        return cls(
            epoch=np.asarray(epoch),
            loss=_column(history, "loss"),
            val_loss=val if np.isfinite(val).any() else None,
        )

    @property
    def best_epoch(self) -> int | None:
        """Epoch of the lowest loss that was watched."""
        watched = self.loss if self.val_loss is None else self.val_loss
        known = np.where(np.isfinite(watched), watched, np.inf)
        return int(self.epoch[known.argmin()]) if np.isfinite(known).any() else None

    def plot(self, ax: Axes | None = None) -> LearningCurves:
        """Draw the curves."""
        self.ax_, self.figure_ = start(ax, (4.7, 3.1))
        self._line(self.loss, COLOURS[0], "training")
        if self.val_loss is not None:
            self._line(self.val_loss, COLOURS[1], "validation")
        if self._spans_orders():
            self.ax_.set_yscale("log")
        self._mark_best()
        whole_ticks(self.ax_.xaxis)
        self.ax_.set(xlabel="epoch", ylabel="loss")
        caption(self.ax_)
        return self

    def _line(self, values: np.ndarray, colour: str, name: str) -> None:
        known = np.isfinite(values)
        marker = "o" if known.sum() < 3 else ""
        self.ax_.plot(
            self.epoch[known], values[known], color=colour, lw=1.8, label=name, marker=marker, ms=4
        )

    def _mark_best(self) -> None:
        best = self.best_epoch
        if best is None or len(self.epoch) < 2:
            return
        at = int(np.flatnonzero(self.epoch == best)[0])
        value = (self.loss if self.val_loss is None else self.val_loss)[at]
        colour = COLOURS[0] if self.val_loss is None else COLOURS[1]
        self.ax_.axvline(best, color=INK, lw=0.9, ls=(0, (3, 3)), alpha=0.7, zorder=1)
        self.ax_.plot([best], [value], "o", color=colour, ms=6, label=f"best: epoch {best}")

    def _spans_orders(self) -> bool:
        both = [self.loss] if self.val_loss is None else [self.loss, self.val_loss]
        values = np.concatenate(both)
        values = values[np.isfinite(values)]
        return bool(len(values) and values.min() > 0 and values.max() > 50 * values.min())


def _column(history: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    values = [h.get(name) for h in history]
    return np.asarray([np.nan if v is None else float(v) for v in values])
