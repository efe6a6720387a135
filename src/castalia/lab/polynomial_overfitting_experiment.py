"""Polynomials through ten points: too stiff, right, and through every point.

Degree 9 has as many weights as there are points: its training error is zero and its curve swings
between them. The test error has the shape of a U.
"""

from __future__ import annotations

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.linear import PolynomialRegression
from castalia.utils.figure_style import COLOURS, INK, MUTED, caption, whole_ticks

__all__ = ["data", "run"]

NOISE = 0.3
DEGREES = range(1, 10)


def data(x: np.ndarray, seed: int) -> np.ndarray:
    """Draw y = sin(2 pi x) + noise."""
    return np.sin(2 * np.pi * x) + NOISE * np.random.default_rng(seed).normal(size=len(x))


def run(*, quick: bool = False) -> Outcome:
    """Fit every degree to the same ten points."""
    x = np.linspace(0, 1, 10)
    fresh = np.random.default_rng(1).uniform(0, 1, 1000)
    y, y_fresh = data(x, 5), data(fresh, 2)
    models = {k: PolynomialRegression(degree=k).fit(x[:, None], y) for k in DEGREES}

    def error(degree: int, at: np.ndarray, truth: np.ndarray) -> float:
        return float(np.sqrt(np.square(models[degree].predict(at[:, None]) - truth).mean()))

    train = [error(k, x, y) for k in DEGREES]
    test = [error(k, fresh, y_fresh) for k in DEGREES]
    figure, axes = panels(2, (8.5, 5.8), rows=2)
    grid = np.linspace(0, 1, 300)
    for ax, degree in zip(axes, (1, 3, 9), strict=False):
        ax.plot(grid, np.sin(2 * np.pi * grid), color=MUTED, lw=1.2, label="truth")
        ax.plot(grid, models[degree].predict(grid[:, None]), color=COLOURS[1], lw=1.8)
        ax.plot(x, y, "o", color=COLOURS[0], ms=5)
        ax.set(xlabel="x", ylabel="y", ylim=(-1.8, 1.8), title=f"degree {degree}")
    axes[3].plot(DEGREES, train, "o-", color=COLOURS[0], ms=4, label="training")
    axes[3].plot(DEGREES, test, "o-", color=COLOURS[1], ms=4, label="test")
    axes[3].axhline(NOISE, color=INK, lw=0.9, ls=(0, (3, 3)), label="noise")
    axes[3].set(xlabel="degree", ylabel="root mean squared error", ylim=(-0.03, 0.8))
    whole_ticks(axes[3].xaxis)
    caption(axes[3])
    numbers = {
        "best degree": float(DEGREES[int(np.argmin(test))]),
        **{f"training error, degree {k}": train[k - 1] for k in (1, 3, 9)},
        **{f"test error, degree {k}": test[k - 1] for k in (1, 3, 9)},
    }
    said = (
        f"Training error {train[0]:.2f}, {train[2]:.2f} and {train[8]:.2f} for degrees 1, 3 and 9; "
        f"test error {test[0]:.2f}, {test[2]:.2f} and {test[8]:.2f}."
    )
    return Outcome(figure, numbers, said)
