"""The loss around trained weights, with and without shortcuts.

Two networks of the same depth, widths and training; one adds each block's input to its output. The
loss is seen along two random directions whose filters are as long as the network's own. With
shortcuts the training ended far lower. How steep and rugged the surroundings are is measured too;
networks as small as these do not show the ragged landscape of the paper's 56 layers.

Reference: 2018, Li, Xu, Taylor, Studer, Goldstein, Visualizing the loss landscape of neural nets,
NeurIPS, arXiv 1712.09913.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.evaluate.displays import LossLandscape
from castalia.lab.digits import Digits, digits
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.vision import ResNetClassifier
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, INK, caption, heat, log_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["run", "rugged", "trained"]

RADIUS = 1.0


def trained(data: Digits, depth: int, epochs: int, *, shortcut: bool) -> ResNetClassifier:
    """Train a narrow network with or without shortcuts."""
    model = ResNetClassifier(
        depth=depth,
        width=4,
        shortcut=shortcut,
        epochs=epochs,
        batch_size=64,
        lr=3e-3,
        augment=None,
        training=Training(validation=0, verbose=False),
        random_state=0,
    )
    return model.fit(_images(data.x, data.side), data.y)


def rugged(loss: np.ndarray) -> float:
    """Return the share of the curvature that is negative, along both directions, of log(1 + loss).

    0 is a bowl, one half a plain without preference.
    """
    height = np.log1p(loss)
    bends = np.concatenate([np.diff(height, 2, axis=axis).ravel() for axis in (0, 1)])
    return float(-bends[bends < 0].sum() / np.abs(bends).sum())


def run(*, quick: bool = False) -> Outcome:
    """Train both networks on scikit-learn's digits and measure the loss around their weights."""
    depth, epochs, points = (14, 10, 5) if quick else (32, 20, 17)
    data = digits(400 if quick else 1000, 200, small=True)
    found: dict[str, LossLandscape] = {}
    numbers: dict[str, float] = {}
    for name, shortcut in (("with shortcuts", True), ("without", False)):
        model = trained(data, depth, epochs, shortcut=shortcut)
        rows = slice(0, 200)
        X = _images(data.x, data.side)[rows]
        seen = LossLandscape.from_estimator(
            model, X, data.y[rows], points=points, radius=RADIUS, random_state=0
        )
        found[name] = seen
        numbers |= {
            f"{name}: loss": seen.centre,
            f"{name}: rise": seen.sharpness(),
            f"{name}: rise nearby": seen.sharpness(RADIUS / 2),
            f"{name}: ruggedness": rugged(seen.loss),
            f"{name}: share right": float(model.score(_images(data.x_test, 8), data.y_test)),
        }
    figure = _figure(found, depth)
    said = (
        f"{depth} layers end at a loss of {numbers['with shortcuts: loss']:.3f} with shortcuts and "
        f"{numbers['without: loss']:.3f} without, and around them it rises by "
        f"{numbers['with shortcuts: rise']:.3g} and {numbers['without: rise']:.3g} on average."
    )
    return Outcome(figure, numbers, said)


def _figure(found: dict[str, LossLandscape], depth: int) -> Figure:
    """Draw both on one scale of colours, and a cut through each along the first direction."""
    figure, axes = panels(3, (13.2, 4.2))
    together = np.concatenate([seen.loss.ravel() for seen in found.values()])
    levels = np.geomspace(max(together.min(), 1e-3), np.quantile(together, 0.8), 15)
    for i, (name, seen) in enumerate(found.items()):
        filled = _draw_map(axes[i], seen, levels)
        axes[i].set_title(f"{depth} layers, {name}")
        axes[2].plot(seen.steps, seen.loss[:, len(seen.steps) // 2], color=COLOURS[i], label=name)
    bar = figure.colorbar(filled, ax=axes[1], ticks=10.0 ** np.arange(-3, 4))
    bar.set_label("loss", color=INK)
    bar.outline.set_edgecolor(INK)
    bar.ax.tick_params(colors=INK, labelsize=8.5)
    log_scale(axes[2])
    axes[2].set(xlabel="first direction", ylabel="loss, second direction 0")
    axes[2].set_xticks(np.linspace(-RADIUS, RADIUS, 5))
    caption(axes[2])
    return figure


def _draw_map(ax: Axes, seen: LossLandscape, levels: np.ndarray) -> Any:
    from matplotlib.colors import LogNorm

    look: dict[str, Any] = {"levels": levels, "norm": LogNorm(levels[0], levels[-1])}
    where = seen.steps, seen.steps, seen.loss.T
    filled = ax.contourf(*where, cmap=heat(), extend="both", **look)
    ax.contour(*where, colors=INK, linewidths=0.5, alpha=0.6, **look)
    ax.plot(0, 0, marker="+", ms=9, mew=1.6, color=INK)
    ax.set(xlabel="first direction", ylabel="second direction", aspect="equal")
    ax.set(xticks=np.linspace(-RADIUS, RADIUS, 5), yticks=np.linspace(-RADIUS, RADIUS, 5))
    ax.grid(False)
    return filled


def _images(x: np.ndarray, side: int) -> np.ndarray:
    return x.reshape(-1, side, side).astype(np.float32)
