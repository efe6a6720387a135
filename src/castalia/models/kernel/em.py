"""Expectation and maximisation in one pass over the rows, a chunk at a time.

Neither the (N, K) table of responsibilities nor any other is kept: a chunk's shares are added to
the sums of the components and forgotten. Shapes: N rows, D features, K components.
"""

from __future__ import annotations

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
    """Run EM until the mean log-likelihood gains less than ``tol``."""
    total, bound = float(points.weight.sum(dtype=torch.float64)), -torch.inf
    for step in range(1, steps + 1):
        components = KINDS[kind](mixture, reg)
        log_likelihood, sums = _step(points, components)
        before, bound = bound, log_likelihood / total
        mixture = components.maximised(sums)
        if abs(bound - before) < tol:
            return Fitted(mixture, bound, step, True)
    return Fitted(mixture, bound, steps, False)


def _step(points: Points, components: Components) -> tuple[float, Tensor]:
    """Return the log-likelihood of all rows, and the components' sums."""

    def look(rows: slice) -> tuple[float, Tensor]:
        seen, weight = components.seen(points.rows[rows]), points.weight[rows]
        log_norm, share = posterior(components.log_densities(seen))
        log_likelihood = float(log_norm.double() @ weight.double())
        return log_likelihood, components.sums(share * weight, seen)

    log_likelihood, sums = points.add_up(look, components.width)
    return log_likelihood, sums


def posterior(log_densities: Tensor) -> tuple[Tensor, Tensor]:
    """Return log p(x), (B,), and p(k | x), (K, B), from log(w_k p(x | k)); overwrites these."""
    highest = log_densities.amax(dim=0)
    share = log_densities.sub_(highest).exp_()
    norm = share.sum(dim=0)
    return highest + norm.log(), share.div_(norm)


def from_labels(points: Points, labels: Tensor, k: int, kind: str, reg: float) -> Mixture:
    """Return the mixture in which every row belongs to the component of its label."""
    number = torch.arange(k, device=labels.device)[:, None]

    def mine(rows: slice) -> Tensor:  # (K, B)
        return (number == labels[rows]).to(points.origin) * points.weight[rows]

    (sums,) = points.add_up(lambda rows: (points.total(mine(rows), rows),), k)
    means, d = sums[:, :-1] / sums[:, -1:].clamp_min(1e-300), points.d
    units = {"full": torch.eye(d).expand(k, d, d), "tied": torch.eye(d), "diag": torch.ones(k, d)}
    unit = units.get(kind, torch.ones(k)).to(means)
    components = KINDS[kind](Mixture(torch.full_like(means[:, 0], 1 / k), means, unit), reg)

    def look(rows: slice) -> tuple[Tensor]:
        seen = components.seen(points.rows[rows])
        return (components.sums(mine(rows).to(seen), seen),)

    (sums,) = points.add_up(look, components.width)
    return components.maximised(sums)
