"""An ill-conditioned bowl: descent zigzags across the valley, momentum walks along it.

J(w) = (w1^2 + kappa w2^2) / 2. Plain descent needs about kappa steps, heavy-ball momentum about
sqrt(kappa).
"""

from __future__ import annotations

import numpy as np
import torch

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.utils.figure_style import COLOURS, caption

__all__ = ["descend", "run"]

KAPPA = 100.0


def descend(momentum: float, rate: float, steps: int, kappa: float = KAPPA) -> np.ndarray:
    """Return the points that torch's SGD passes through, (steps + 1, 2)."""
    scale = torch.tensor([1.0, kappa], dtype=torch.float64)
    w = torch.tensor([-1.0, 0.12], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=rate, momentum=momentum)
    seen = [w.detach().numpy().copy()]
    for _ in range(steps):
        optimizer.zero_grad()
        (0.5 * scale * w.square()).sum().backward()
        optimizer.step()
        seen.append(w.detach().numpy().copy())
    return np.array(seen)


def steps_to(points: np.ndarray, loss: float) -> int:
    """Return the first step whose loss is below a level."""
    values = 0.5 * (points[:, 0] ** 2 + KAPPA * points[:, 1] ** 2)
    return int(np.flatnonzero(values < loss)[0])


def run(*, quick: bool = False) -> Outcome:
    """Descend with the best rate of plain descent, and with a heavy ball of half that rate."""
    plain = descend(0.0, 2 / (1 + KAPPA), 900)
    ball = descend(0.8, 1 / KAPPA, 900)
    figure, (left, right) = panels(2, (9, 3.3))
    x, y = np.meshgrid(np.linspace(-1.1, 0.4, 120), np.linspace(-0.16, 0.16, 120))
    left.contour(x, y, x**2 + KAPPA * y**2, levels=12, colors="#8f949b", linewidths=0.5)
    for points, colour, name in ((plain, COLOURS[0], "plain"), (ball, COLOURS[1], "momentum")):
        left.plot(*points[:40].T, "o-", color=colour, ms=2.5, lw=1, label=name)
        loss = 0.5 * (points[:, 0] ** 2 + KAPPA * points[:, 1] ** 2)
        right.semilogy(loss[:300], color=colour, lw=1.8, label=name)
    left.set(xlabel="w1", ylabel="w2")
    right.set(xlabel="step", ylabel="loss", ylim=(1e-12, 10))
    caption(left)
    caption(right)
    numbers = {
        "plain steps": float(steps_to(plain, 1e-8)),
        "momentum steps": float(steps_to(ball, 1e-8)),
    }
    said = (
        f"To a loss of 1e-8: {numbers['plain steps']:.0f} steps without momentum, "
        f"{numbers['momentum steps']:.0f} with it."
    )
    return Outcome(figure, numbers, said)
