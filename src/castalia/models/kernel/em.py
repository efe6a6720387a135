"""Expectation and maximisation in one pass over the rows, a chunk at a time.

Neither the (N, K) table of responsibilities nor any other is kept: a chunk's shares are added to
the sums of the components and forgotten. Shapes: N rows, D features, K components.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from castalia.models.kernel.gaussians import KINDS, Components, Mixture
from castalia.models.kernel.points import Points

__all__ = ["Fitted", "from_labels", "maximise", "posterior"]


class Fitted(NamedTuple):
    """Where EM ended: mixture, mean log-likelihood before its last step, steps, whether done."""

    mixture: Mixture
    bound: float
    steps: int
    converged: bool


def maximise(
    points: Points, mixture: Mixture, kind: str, *, reg: float, tol: float, steps: int
) -> Fitted:
    """Run EM until the mean log-likelihood gains less than ``tol``.

    Parameters
    ----------
    points
        The rows.
    mixture
        Where to begin.
    kind
        Of covariance: a key of ``KINDS``.
    reg
        Added to variances.
    tol, steps
        When to stop.
    """
    total, bound = float(points.weight.sum(dtype=torch.float64)), -torch.inf
    for step in range(1, steps + 1):
        components = KINDS[kind](mixture, reg)
        before, bound = bound, _step(points, components) / total
        mixture = components.maximised()
        if abs(bound - before) < tol:
            return Fitted(mixture, bound, step, True)
    return Fitted(mixture, bound, steps, False)


def _step(points: Points, components: Components) -> float:
    """Collect all rows; return their log-likelihood."""
    total = 0.0
    for rows in points.chunks(components.width):
        x, weight = points.rows[rows], points.weight[rows]
        log_norm, share = posterior(components.log_densities(x))
        components.collect(share * weight, x)
        total += float(log_norm.double() @ weight.double())
    return total


def posterior(log_densities: Tensor) -> tuple[Tensor, Tensor]:
    """Return log p(x), (B,), and p(k | x), (K, B), from log(w_k p(x | k)); overwrites these."""
    highest = log_densities.amax(dim=0)
    share = log_densities.sub_(highest).exp_()
    norm = share.sum(dim=0)
    return highest + norm.log(), share.div_(norm)


def from_labels(points: Points, labels: Tensor, k: int, kind: str, reg: float) -> Mixture:
    """Return the mixture in which every row belongs to the component of its label."""
    d, sums = points.d, points.origin.new_zeros(k, points.d + 1, dtype=torch.float64)
    for share, rows in _shares(points, labels, k, k):
        sums += points.total(share, rows)
    means = sums[:, :-1] / sums[:, -1:].clamp_min(1e-300)
    units = {"full": torch.eye(d).expand(k, d, d), "tied": torch.eye(d), "diag": torch.ones(k, d)}
    unit = units.get(kind, torch.ones(k)).to(means)
    components = KINDS[kind](Mixture(torch.full_like(means[:, 0], 1 / k), means, unit), reg)
    for share, rows in _shares(points, labels, k, components.width):
        x = points.rows[rows]
        components.collect(share.to(components.log_densities(x)), x)
    return components.maximised()


def _shares(points: Points, labels: Tensor, k: int, width: int) -> Iterator[tuple[Tensor, slice]]:
    """Yield chunks of rows with their weights, each at the place of its label, (K, B)."""
    number = torch.arange(k, device=labels.device)[:, None]
    for rows in points.chunks(width):
        yield (number == labels[rows]).to(points.origin) * points.weight[rows], rows
