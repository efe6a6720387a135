"""DRAW paints glyphs step by step: the canvas, and the window that it writes through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.generative import DRAW, VariationalAutoencoder
from castalia.train import Training
from castalia.utils.figure_style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["glyphs", "run"]

SIDE, SHOWN, STEPS = 12, 4, 5  # pixels of an edge, images, steps
GLYPHS = np.array(
    [
        [[1, 1, 1, 1], [1, 0, 0, 1], [1, 0, 0, 1], [1, 1, 1, 1]],
        [[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]],
        [[1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]],
        [[0, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 0]],
    ]
)


def glyphs(n: int, seed: int = 0) -> np.ndarray:
    """Return images with one of four glyphs at any place, bytes, (n, 12, 12)."""
    random, found = np.random.default_rng(seed), np.zeros((n, SIDE, SIDE), np.uint8)
    for image in found:
        top, left = random.integers(0, SIDE - 3, 2)
        image[top : top + 4, left : left + 4] = 255 * GLYPHS[random.integers(4)]
    return found


def run(*, quick: bool = False) -> Outcome:
    """Train on glyphs and draw the canvas of each step, with the writing window."""
    X, held = glyphs(200 if quick else 600), glyphs(200, 1)
    epochs = 3 if quick else 40
    training = Training(validation=0, clip=10.0, device="cpu")
    common: dict[str, Any] = {
        "lr": 5e-3,
        "epochs": epochs,
        "training": training,
        "random_state": 0,
    }
    model = DRAW(code=4, steps=STEPS, hidden=64, window=4, **common).fit(X)
    rival = VariationalAutoencoder(
        code=4 * STEPS, hidden=(128,), width=0, likelihood="bernoulli", **common
    ).fit(X)
    windows = model.attention(held[:SHOWN])
    codes = model.transform(held[:SHOWN])
    canvases = model.painted(codes)
    figure, axes = panels(STEPS + 1, (1.5 * STEPS + 1.5, 6.2), rows=SHOWN)
    for i, ax in enumerate(axes):
        row, step = divmod(i, STEPS + 1)
        ax.imshow(held[row] / 255 if step == 0 else canvases[row, step - 1], cmap="gray_r", vmin=0)
        if step:
            _window(ax, windows[row, step - 1], model.window)
        name = f"step {step}" if step else "given"
        ax.set(xticks=(), yticks=(), title=name if row == 0 else "")
        ax.grid(False)
    moved = model.attention(held)[:, :, :2].std(axis=1).mean()
    numbers = {
        "bound": float(model.score(held)),
        "bound of one step": float(rival.log_likelihood(held, samples=1)[0].mean()),
        "pixels that the window moves": float(moved),
    }
    said = (
        f"The bound of unseen glyphs is {numbers['bound']:.1f} nats, that of a one-step VAE "
        f"{numbers['bound of one step']:.1f}; the window moves by {moved:.1f} pixels."
    )
    return Outcome(figure, numbers, said)


def _window(ax: Axes, place: np.ndarray, n: int) -> None:
    """Draw the square that the filters of a window cover."""
    from matplotlib.patches import Rectangle

    x, y, stride, _ = place
    half = stride * (n - 1) / 2
    corner = (x - half, y - half)
    ax.add_patch(
        Rectangle(corner, 2 * half, 2 * half, fill=False, ec=COLOURS[1], lw=1.4, clip_on=True)
    )
    ax.set(xlim=(-0.5, SIDE - 0.5), ylim=(SIDE - 0.5, -0.5))
