"""Balls that touch a line: the one with corners touches it on an axis.

Of all weights with 10 w1 + w2 = 5, those of smallest L1 norm are (1/2, 0), sparse, at a corner of
the diamond; those of smallest L2 norm are (50, 5) / 101, where the circle touches.
"""

from __future__ import annotations

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.linear import Lasso, LinearRegression
from castalia.utils.figure_style import COLOURS, INK

__all__ = ["run"]

ROW, TARGET = np.array([[10.0, 1.0]]), np.array([5.0])


def run(*, quick: bool = False) -> Outcome:
    """Fit the one equation with the lasso, its penalty near zero, and by the minimum norm."""
    sparse = Lasso(alpha=1e-9, fit_intercept=False).fit(ROW, TARGET).coef_
    round_ = LinearRegression(fit_intercept=False, singular="min_norm").fit(ROW, TARGET).coef_
    norms = {"L1": np.abs(sparse).sum(), "L2": np.linalg.norm(round_)}
    corners = np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]])
    angle = np.linspace(0, 2 * np.pi, 200)
    balls = {
        "L1": (norms["L1"] * corners, sparse, "sparse"),
        "L2": (norms["L2"] * np.column_stack([np.cos(angle), np.sin(angle)]), round_, "not sparse"),
    }
    figure, axes = panels(2, (8.5, 4))
    w1 = np.linspace(0.3, 0.7, 2)
    for ax, (name, (ball, w, what)), colour in zip(axes, balls.items(), COLOURS, strict=False):
        ax.fill(*ball.T, color=colour, alpha=0.15, lw=0)
        ax.plot(*ball.T, color=colour, lw=1.8)
        ax.plot(w1, 5 - 10 * w1, color=INK, lw=1.5)
        ax.plot(*w, "o", color=colour, ms=7, zorder=3)
        ax.annotate(
            f"({w[0]:.3f}, {abs(w[1]):.3f})\n{what}",
            tuple(w),
            xytext=(0, 0.16),
            ha="center",
            color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.8},
        )
        ax.axhline(0, color=INK, lw=0.6)
        ax.axvline(0, color=INK, lw=0.6)
        title = f"{name} ball of radius {norms[name]:.4f}"
        ax.set(xlabel="w1", ylabel="w2", title=title, aspect="equal")
        ax.set(xlim=(-0.6, 0.7), ylim=(-0.6, 0.6))
    axes[0].annotate("10 w1 + w2 = 5", (0.545, -0.45), rotation=-84, color=INK, fontsize=9)
    numbers = {
        "L1: w1": float(sparse[0]),
        "L1: w2": float(sparse[1]),
        "L1: norm": float(norms["L1"]),
        "L2: w1": float(round_[0]),
        "L2: w2": float(round_[1]),
        "L2: norm": float(norms["L2"]),
        "L2: its L1 norm": float(np.abs(round_).sum()),
    }
    said = "The smallest L1 norm is at (0.5, 0), on an axis; the smallest L2 norm is beside it."
    return Outcome(figure, numbers, said)
