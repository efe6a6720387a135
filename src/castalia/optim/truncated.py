"""Linear conjugate gradients, stopped when they make little progress.

Minimises phi(x) = x A x / 2 - b x, known by products with A. Stops at iteration i when the last
k = max(10, i/10) of them lowered phi by less than a share k eps of it (Martens 2010, section 4.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Truncated", "truncated_solve"]

SPACING = 1.3  # iterates are kept at geometrically growing distances


class Truncated(NamedTuple):
    """Iterates kept on the way, the last one last; their phi; products; if A bends downwards."""

    iterates: list[Tensor]
    values: list[float]
    products: int
    indefinite: bool


def truncated_solve(
    product: Callable[[Tensor], Tensor],
    right: Tensor,
    start: Tensor,
    *,
    scale: Tensor | None = None,
    most: int = 100,
    progress: float = 5e-4,
) -> Truncated:
    """Solve A x = b approximately.

    On meeting a direction of negative curvature it stops where it is; if that is at the start, it
    goes one step downhill along it, as long as its curvature in absolute value suggests.

    Parameters
    ----------
    product
        From v to A v.
    right
        b.
    start
        First guess.
    scale
        Diagonal of the preconditioner; A is expected to resemble it.
    most
        Most iterations.
    progress
        eps of the stopping rule; 0 goes on until the residual vanishes.

    Examples
    --------
    >>> curvatures = torch.tensor([1.0, 4.0])
    >>> found = truncated_solve(lambda v: curvatures * v, torch.ones(2), torch.zeros(2))
    >>> found.iterates[-1], found.products
    (tensor([1.0000, 0.2500]), 2)
    """
    x, residual, products = start, right, 0
    if bool(start.any()):
        residual, products = right - product(start), 1
    prepared = residual if scale is None else residual / scale
    direction, energy = prepared, residual @ prepared
    vanishing = (torch.finfo(right.dtype).eps * float(right.norm())) ** 2
    history = [_phi(x, right, residual)]
    iterates: list[Tensor] = []
    values: list[float] = []
    indefinite, kept = False, 1
    for i in range(1, most + 1):
        if float(residual @ residual) <= vanishing:
            break
        bent = product(direction)
        products += 1
        curvature = float(direction @ bent)
        indefinite = not curvature > 0
        if indefinite:
            if i == 1 and curvature < 0:
                x, history = x + direction * (energy / -curvature), [math.nan]
            break
        length = energy / curvature
        x, residual = x + length * direction, residual - length * bent
        history.append(_phi(x, right, residual))
        if i >= kept:
            kept = math.ceil(kept * SPACING)
            iterates.append(x)
            values.append(history[-1])
        if _stalled(history, progress):
            break
        prepared = residual if scale is None else residual / scale
        energy, before = residual @ prepared, energy
        direction = prepared + (energy / before) * direction
    if not iterates or iterates[-1] is not x:
        iterates.append(x)
        values.append(history[-1])
    return Truncated(iterates, values, products, indefinite)


def _phi(x: Tensor, right: Tensor, residual: Tensor) -> float:
    """Return x A x / 2 - b x, with A x = b - r."""
    return -0.5 * float(x @ (right + residual))


def _stalled(history: list[float], progress: float) -> bool:
    i = len(history) - 1
    k = max(10, i // 10)
    return i > k and history[i] < 0 and (history[i] - history[i - k]) / history[i] < k * progress
