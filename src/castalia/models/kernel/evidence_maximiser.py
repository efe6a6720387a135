"""Hyperparameters of a kernel by the evidence: many starts in one batch, then one climb.

Random starts climb side by side by the signs of their gradients (Rprop), as one batch of small
matrices on a sample of the rows. The best goes on by L-BFGS, on a quarter of the rows and then on
all, with the curvature that was found there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

__all__ = ["BOUNDS", "Climb", "best_start", "climb", "random_starts"]

BOUNDS = (-11.5, 11.5)  # of logarithms: 1e-5 to 1e5
Value = Callable[[np.ndarray], tuple[float, np.ndarray]]


class Climb(NamedTuple):
    """Where the maximisation ended: hyperparameters, value, and the inverse of the curvature.

    That is scipy's operator; ``todense()`` makes it a matrix.
    """

    theta: np.ndarray
    value: float
    metric: Any


def random_starts(theta: Tensor, count: int, source: torch.Generator) -> Tensor:
    """Return a setting and random ones around it, a factor of e or so away, (1 + count, P)."""
    noise = torch.randn(count, len(theta), generator=source, dtype=theta.dtype)
    return torch.cat([theta[None], theta + 1.5 * noise]).clamp(*BOUNDS)


def best_start(
    values: Callable[[Tensor], tuple[Tensor, Tensor]], starts: Tensor, *, steps: int = 20
) -> Tensor:
    """Climb from all starts at once, (R, P), and return the best place seen, (P,)."""
    theta, before = starts, torch.zeros_like(starts)
    length = torch.full_like(starts, 0.3)
    best, place = -torch.inf, starts[0]
    for _ in range(steps):
        found, slope = values(theta)
        top = int(found.argmax())
        if float(found[top]) > best:
            best, place = float(found[top]), theta[top].clone()
        sign = slope.nan_to_num().sign()
        length = (length * torch.where(sign * before < 0, 0.5, 1.2)).clamp(1e-3, 1.0)
        theta, before = (theta + sign * length).clamp(*BOUNDS), sign
    return place


def climb(
    value: Value,
    start: np.ndarray,
    *,
    steps: int,
    tol: float,
    bounds: list[tuple[float, float]],
    metric: np.ndarray | None = None,
) -> Climb:
    """Climb from one place by L-BFGS until the value gains less than ``tol`` of itself.

    With the ``metric`` of an earlier climb on fewer rows, a matrix, all directions are as steep
    from the first step on: theta = start + C u, C C^T the metric.
    """
    options = {"maxiter": steps, "ftol": tol, "gtol": 1e-8, "maxls": 20}
    if metric is None:
        found = minimize(
            lambda theta: tuple(-part for part in value(theta)),
            start, jac=True, method="L-BFGS-B", bounds=bounds, options=options,
        )  # fmt: skip
        return Climb(found.x, -float(found.fun), found.hess_inv)
    root, (low, high) = np.linalg.cholesky(metric), np.transpose(bounds)

    def turned(u: np.ndarray) -> tuple[float, np.ndarray]:
        found, slope = value((start + root @ u).clip(low, high))
        return -found, -slope @ root

    origin = np.zeros(len(start))
    found = minimize(turned, origin, jac=True, method="L-BFGS-B", options=options)
    return Climb((start + root @ found.x).clip(low, high), -float(found.fun), found.hess_inv)
