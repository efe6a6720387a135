"""First centres: k-means++ with a few tries a step.

Each centre is drawn from the rows with probability proportional to w |x - c(x)|^2, c(x) the nearest
centre so far; of a few draws the one that leaves the smallest sum is kept.

The draws walk through the rows in the order of a random projection. So they depend on what rows
there are and how much they weigh, not on the order they came in: shuffled rows, or rows repeated
instead of weighted, get the same centres.

References: 2007, Arthur, Vassilvitskii, k-means++: the advantages of careful seeding, SODA; several
tries a step are in the first author's code.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from castalia.models.kernel.lloyd import lloyd
from castalia.models.kernel.points import Points

__all__ = ["first_centers", "plus_plus"]

SAMPLE = 2**13  # rows that choose where to begin, when there are many more
TRIES = 3  # beginnings tried on the sample; together they cost a step or two on all rows


def first_centers(
    points: Points, k: int, generator: torch.Generator, *, tol: float, steps: int
) -> Tensor:
    """Choose where to begin, (K, D): by k-means++, or where that led on a sample of many rows.

    Parameters
    ----------
    points
        The rows.
    k
        Number of centres.
    generator
        Of the CPU, whatever the device of the rows.
    tol, steps
        When to stop on the sample.
    """
    size = max(SAMPLE, 128 * k)
    if points.n <= 4 * size:
        return plus_plus(points, k, generator)
    sample = points.sample(size, generator)
    found = [
        lloyd(sample, plus_plus(sample, k, generator), tol=tol, steps=steps) for _ in range(TRIES)
    ]
    return min(found, key=lambda run: run.inertia).centers


def plus_plus(points: Points, k: int, generator: torch.Generator) -> Tensor:
    """Draw k of the rows far from each other, (K, D)."""
    tries = 2 + int(math.log(k))
    order = _order(points, generator)
    chosen = _draw(points.weight, order, 1, generator)
    nearest = _squares(points, chosen)[0]  # (N,)
    while len(chosen) < k:
        drawn = _draw(points.weight * nearest, order, tries, generator)
        squares = torch.minimum(_squares(points, drawn), nearest)  # (tries, N)
        best = (squares @ points.weight).argmin()
        nearest = squares[best]
        chosen = torch.cat([chosen, drawn[best, None]])
    return points.dense(chosen)


def _order(points: Points, generator: torch.Generator) -> Tensor:
    """Return the rows' order along a random direction, the same however they were shuffled."""
    direction = torch.randn(1, points.d + 1, dtype=torch.float64, generator=generator)
    along = points.affine(direction.to(points.origin), slice(0, points.n))[0]
    return along.argsort(stable=True)


def _draw(mass: Tensor, order: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Draw rows in proportion to their mass; any row when all have none."""
    running = mass[order].cpu().double().cumsum(0)  # on the CPU, where sums repeat to the bit
    drawn = torch.rand(count, dtype=torch.float64, generator=generator) * running[-1]
    place = torch.searchsorted(running, drawn, right=True).clamp_max(len(mass) - 1)
    return order[place.to(order.device)]


def _squares(points: Points, drawn: Tensor) -> Tensor:
    """Return |x - c|^2 of every row and some of the rows as centres, (K, N)."""
    centers = points.dense(drawn)
    maps = torch.cat([-2 * centers, centers.square().sum(dim=1, keepdim=True)], dim=1)
    found = points.affine(maps, slice(0, points.n))
    return found.add_(points.norms).clamp_(min=0)
