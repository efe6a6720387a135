"""The losses of a training as one curve in a notebook, redrawn in place."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from castalia.train.callbacks import Callback
from castalia.train.state import TrainState
from castalia.utils.imports import require

__all__ = ["NotebookCurve", "curve_svg"]

PAUSE = 0.5  # seconds between two drawings
WIDTH, HEIGHT = 480, 160
_COLOURS = ("#2563b8", "#c2541b")


def curve_svg(curves: Mapping[str, Sequence[float]]) -> str:
    """Return curves over epochs as SVG, on one logarithmic scale where all are positive.

    Examples
    --------
    >>> curve_svg({"loss": [2.0, 1.0]}).count("<polyline")
    1
    """
    values = [v for curve in curves.values() for v in curve if math.isfinite(v)]
    if not values:
        return ""
    scale = math.log if min(values) > 0 else float
    low, high = scale(min(values)), scale(max(values))
    lines = []
    for colour, (name, curve) in zip(_COLOURS, curves.items(), strict=False):
        points = [
            f"{WIDTH * i / max(len(curve) - 1, 1):.1f},"
            f"{HEIGHT * (1 - (scale(v) - low) / ((high - low) or 1)):.1f}"
            for i, v in enumerate(curve)
            if math.isfinite(v)
        ]
        lines.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(points)}">'
            f"<title>{escape(name)}</title></polyline>"
        )
    box = f'viewBox="-4 -4 {WIDTH + 8} {HEIGHT + 8}" width="{WIDTH}" role="img"'
    return f'<svg {box} aria-label="{" and ".join(curves)} over epochs">{"".join(lines)}</svg>'


class NotebookCurve(Callback):
    """Draws loss and validation loss into one output of the cell, at most twice a second.

    Parameters
    ----------
    delay
        Seconds to wait before it appears.
    """

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.handle: Any = None
        self._drawn = 0.0

    def on_fit_start(self, state: TrainState) -> None:
        """Start the clock."""
        self.started = time.monotonic()

    def on_epoch_end(self, state: TrainState) -> None:
        """Draw, unless that was just done."""
        now = time.monotonic()
        if now - self.started >= self.delay and now - self._drawn >= PAUSE:
            self._draw(state)

    def on_fit_end(self, state: TrainState) -> None:
        """Draw the end, where something was drawn before."""
        if self.handle is not None:
            self._draw(state)

    on_failure = on_fit_end

    def _draw(self, state: TrainState) -> None:
        display = require("IPython.display", caller="Training")
        names = [name for name in ("loss", "val_loss") if any(name in h for h in state.history)]
        curves = {name: [float(h.get(name, math.nan)) for h in state.history] for name in names}
        last = ", ".join(f"{name} {curves[name][-1]:.4f}" for name in names)
        words = f"{state.stage}: epoch {state.epoch}/{state.epochs}, {last}"
        page = display.HTML(f"{curve_svg(curves)}<div>{escape(words)}</div>")
        if self.handle is None:
            self.handle = display.display(page, display_id=True)
        else:
            self.handle.update(page)
        self._drawn = time.monotonic()
