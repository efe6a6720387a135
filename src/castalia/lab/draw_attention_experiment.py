"""DRAW paints digits step by step: the canvas, and the window that it writes through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from castalia.lab.digits import digits
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.generative import DRAW
from castalia.train import Training
from castalia.utils.figure_style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["run"]

SHOWN = 4  # digits


def run(*, quick: bool = False) -> Outcome:
    """Train on small digits and draw the canvas of each step, with the writing window."""
    found = digits(300 if quick else 1500, 100, small=True)
    X = found.x.reshape(-1, 8, 8)
    steps = 4 if quick else 6
    model = DRAW(
        code=4, steps=steps, hidden=48 if quick else 96, window=3, lr=3e-3,
        epochs=6 if quick else 60, training=Training(validation=0, clip=10.0, schedule="cosine"),
        random_state=0,
    ).fit(X)  # fmt: skip
    canvases, windows = model.canvases(SHOWN), model.attention(X[:200])
    painted = model.windows(SHOWN)
    figure, axes = panels(steps, (1.6 * steps, 6.6), rows=SHOWN)
    for i, ax in enumerate(axes):
        row, step = divmod(i, steps)
        ax.imshow(canvases[row, step], cmap="gray_r", vmin=0, vmax=1)
        _window(ax, painted[row, step], model.window)
        ax.set(xticks=(), yticks=(), title=f"step {step + 1}" if row == 0 else "")
        ax.grid(False)
    ink = np.abs(np.diff(canvases, axis=1)).mean(axis=(2, 3))
    numbers = {
        "first bound": float(-model.history_[0]["loss"]),
        "last bound": float(-model.history_[-1]["loss"]),
        "pixels that the window moves": float(windows[:, :, :2].std(axis=1).mean()),
        "change of the last step": float(ink[:, -1].mean()),
    }
    said = (
        f"The bound rises from {numbers['first bound']:.0f} to {numbers['last bound']:.1f} nats; "
        f"the window moves by {numbers['pixels that the window moves']:.1f} pixels as it paints."
    )
    return Outcome(figure, numbers, said)


def _window(ax: Axes, place: np.ndarray, n: int) -> None:
    """Draw the square that the filters of a window cover."""
    from matplotlib.patches import Rectangle

    x, y, stride, _ = place
    half = stride * (n - 1) / 2
    corner = (x - 1 - half, y - 1 - half)  # pixels are counted from 1
    ax.add_patch(
        Rectangle(corner, 2 * half, 2 * half, fill=False, ec=COLOURS[1], lw=1.4, clip_on=True)
    )
    ax.set(xlim=(-0.5, 7.5), ylim=(7.5, -0.5))
