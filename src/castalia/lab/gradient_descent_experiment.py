"""Gradient descent on a parabola: the error is multiplied by 1 - eta L each step.

J(w) = (L/2) w^2. The step w <- w - eta J'(w) shrinks the error for eta < 2 / L and blows it up
beyond; eta = 1 / L arrives at once.
"""

from __future__ import annotations

import numpy as np
import torch

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.utils.figure_style import COLOURS, INK, caption

__all__ = ["path", "run"]

CURVATURE = 2.0


def path(rate: float, steps: int, start: float = 1.0) -> np.ndarray:
    """Return the weights that torch's SGD passes through."""
    w = torch.tensor([start], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=rate)
    seen = [w.item()]
    for _ in range(steps):
        optimizer.zero_grad()
        (0.5 * CURVATURE * w.square()).sum().backward()
        optimizer.step()
        seen.append(w.item())
    return np.array(seen)


def run(*, quick: bool = False) -> Outcome:
    """Descend with rates below, at and above the limit."""
    steps = 12
    rates = {0.05: "slow", 0.4: "well", 0.95: "swings", 1.05: "diverges"}
    paths = {rate: path(rate, steps) for rate in rates}
    figure, (left, right) = panels(2, (8.5, 3.3))
    w = np.linspace(-2, 2, 200)
    left.plot(w, 0.5 * CURVATURE * w**2, color=INK, lw=1)
    for (rate, name), colour in zip(rates.items(), COLOURS, strict=False):
        seen = paths[rate]
        left.plot(seen, 0.5 * CURVATURE * seen**2, "o-", color=colour, ms=3, lw=1)
        # 0.05 and 0.95 shrink the error alike, so one of them is dashed
        style = (0, (3, 3)) if rate == 0.95 else "-"
        right.semilogy(np.abs(seen), color=colour, lw=1.8, ls=style, label=f"{rate} {name}")
    left.set(xlabel="w", ylabel="J(w)", xlim=(-2, 2), ylim=(-0.2, 4))
    right.set(xlabel="step", ylabel="distance from the minimum")
    caption(right, across=4)
    ratio = {rate: abs(seen[1] / seen[0]) for rate, seen in paths.items()}
    numbers = {
        "limit": 2 / CURVATURE,
        "contraction at 0.4": float(ratio[0.4]),
        "contraction at 0.95": float(ratio[0.95]),
        "growth at 1.05": float(ratio[1.05]),
        "left at 0.05": float(abs(paths[0.05][-1])),
    }
    return Outcome(figure, numbers, f"Steps above 2 / L = {2 / CURVATURE:g} diverge.")
