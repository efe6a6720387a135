"""Exclusive or: least squares gives one half everywhere, a network with two hidden units solves it.

The weights of the notes, W = [[1, 1], [1, 1]], c = (0, -1), w = (1, -2), b = 0, compute
max(0, x1 + x2) - 2 max(0, x1 + x2 - 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.dense import MLPClassifier
from castalia.models.linear import LinearRegression
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["run"]

X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
Y = np.array([0, 1, 1, 0])


def notes(x: np.ndarray) -> np.ndarray:
    """Return the output of the network that the notes set by hand."""
    total = x.sum(axis=1)
    return np.maximum(0, total) - 2 * np.maximum(0, total - 1)


def run(*, quick: bool = False) -> Outcome:
    """Fit a line and a network to the four points and draw what each answers in between."""
    line = LinearRegression().fit(X, Y)
    network = MLPClassifier(
        hidden=(8,),
        activation="tanh",
        epochs=150 if quick else 400,
        batch_size=4,
        lr=0.05,
        training=Training(validation=0),
        random_state=0,
    ).fit(X, Y)
    # No half-plane holds just the two points labelled 1: three of four is the best.
    best = max(_accuracy(angle, shift) for angle in range(0, 360, 15) for shift in (-0.5, 0.5, 1.5))
    grid = np.stack(np.meshgrid(*[np.linspace(-0.4, 1.4, 60)] * 2), axis=-1).reshape(-1, 2)
    answers = {
        "least squares": line.predict(grid),
        "the network of the notes": notes(grid),
        "a trained network": network.predict_proba(grid)[:, 1],
    }
    figure, axes = panels(3, (9, 3.2))
    for ax, (name, values) in zip(axes, answers.items(), strict=True):
        _draw(ax, values.reshape(60, 60), name)
    numbers = {
        "linear weight": float(np.abs(line.coef_).max()),
        "linear bias": float(line.intercept_),
        "linear accuracy": best,
        "network accuracy": float(network.score(X, Y)),
        "notes error": float(np.abs(notes(X) - Y).max()),
    }
    said = "Least squares answers 0.5 everywhere; no line gets more than three of the four points."
    return Outcome(figure, numbers, said)


def _accuracy(angle: float, shift: float) -> float:
    direction = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
    return float(((X @ direction > shift) == Y).mean())


def _draw(ax: Axes, values: np.ndarray, name: str) -> None:
    ax.imshow(
        values, origin="lower", extent=(-0.4, 1.4, -0.4, 1.4), cmap=signed(), vmin=-0.2, vmax=1.2
    )
    # 1 is blue on the map, too
    ax.scatter(X[:, 0], X[:, 1], c=[COLOURS[1 - i] for i in Y], edgecolors="white", s=60, zorder=3)
    ax.set(title=name, xticks=(0, 1), yticks=(0, 1))
    ax.grid(False)
