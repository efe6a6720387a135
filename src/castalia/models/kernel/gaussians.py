"""Gaussian components with four kinds of covariance: densities, and what EM adds up from rows.

Rows come from ``Points``: around their mean, with a one at their end. Parameters and sums are
float64. Shapes: D features, K components, B rows of a chunk.

Reference: 1977, Dempster, Laird, Rubin, Maximum likelihood from incomplete data via the EM
algorithm, JRSS B 39.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from castalia.errors import SolverFailed
from castalia.utils.text import number

__all__ = ["KINDS", "Components", "Diagonal", "Full", "Mixture", "Spherical", "Tied"]

LOG_2_PI = math.log(2 * math.pi)
TINY = 10 * torch.finfo(torch.float64).eps  # rows that even an empty component has


class Mixture(NamedTuple):
    """Parameters of a mixture: weights (K,), means (K, D), covariances by their kind."""

    weights: Tensor
    means: Tensor
    covariances: Tensor


class Components(Protocol):
    """What EM asks of a kind of covariance; made from a mixture and what to add to variances."""

    width: int  # numbers that a row needs while it is processed

    def __init__(self, mixture: Mixture, reg: float) -> None: ...

    def seen(self, x: Tensor) -> Tensor:
        """Return what a chunk of rows, (B, D + 1), looks like from here; the rest goes by it."""

    def log_densities(self, seen: Tensor) -> Tensor:
        """Return log(w_k N(x | mu_k, S_k)) of the chunk, (K, B)."""

    def sums(self, share: Tensor, seen: Tensor) -> Tensor:
        """Add up the chunk with each component's share of each row, (K, B)."""

    def maximised(self, sums: Tensor) -> Mixture:
        """Return the mixture of highest expected likelihood, given the sums of all chunks."""


class Full:
    """Every component has a covariance of its own, (K, D, D).

    y = R^-1 (x - mu) with S = R R^T makes each component standard normal. The sums of y and y y^T
    give the next mean and covariance from the last ones, so no digits are lost far from zero.
    """

    def __init__(self, mixture: Mixture, reg: float) -> None:
        self.mixture, self.reg = mixture, reg
        weights, means, covariances = mixture
        k, d = means.shape
        self.root = means.new_zeros(k, d + 1, d + 1)  # (x, 1) = root (y, 1)
        self.root[:, :d, :d] = cholesky(covariances, weights)
        self.root[:, :d, d], self.root[:, d, d] = means, 1
        self.maps = torch.linalg.inv(self.root)
        log_det = self.root.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        # (y, 1) has square |y|^2 + 1
        self.constant = (weights.log() - log_det - d / 2 * LOG_2_PI + 0.5)[:, None]
        self.width = k * (d + 1)

    def seen(self, x: Tensor) -> Tensor:
        """Return (y, 1) for each component, (K, D + 1, B)."""
        return (self.maps.to(x).flatten(0, 1) @ x.T).unflatten(0, (-1, x.shape[1]))

    def log_densities(self, seen: Tensor) -> Tensor:
        """Return log(w_k N(x)), (K, B)."""
        half = seen.new_full((len(seen), 1, seen.shape[1]), 0.5)
        return self.constant.to(seen) - (half @ seen.square())[:, 0]

    def sums(self, share: Tensor, seen: Tensor) -> Tensor:
        """Add up (y, 1) (y, 1)^T, (K, D + 1, D + 1)."""
        return ((seen * share[:, None]) @ seen.mT).double()

    def maximised(self, sums: Tensor) -> Mixture:
        """Return the mixture of highest expected likelihood."""
        count = sums[:, -1, -1] + TINY
        root, moments = self.root[:, :-1, :-1], sums / count[:, None, None]
        shift = moments[:, :-1, -1:]  # (K, D, 1)
        covariances = root @ (moments[:, :-1, :-1] - shift @ shift.mT) @ root.mT
        covariances.diagonal(dim1=1, dim2=2).add_(self.reg)
        means = self.mixture.means + (root @ shift)[:, :, 0]
        return Mixture(count / count.sum(), means, covariances)


class Tied:
    """All components share one covariance, (D, D)."""

    def __init__(self, mixture: Mixture, reg: float) -> None:
        self.mixture, self.reg = mixture, reg
        weights, means, covariance = mixture
        d = means.shape[1]
        self.root = cholesky(covariance[None], None)[0]
        at = torch.linalg.solve_triangular(self.root, means.T, upper=False).T  # R^-1 mu, (K, D)
        constant = weights.log() - self.root.diagonal().log().sum() - d / 2 * LOG_2_PI
        self.maps = torch.cat([at, (constant - at.square().sum(dim=1) / 2)[:, None]], dim=1)
        self.width = d + len(means)

    def seen(self, x: Tensor) -> Tensor:
        """Return the rows, in float64."""
        return x.double()

    def log_densities(self, seen: Tensor) -> Tensor:
        """Return log(w_k N(x)), (K, B)."""
        y = torch.linalg.solve_triangular(self.root, seen[:, :-1].T, upper=False)  # (D, B)
        found = self.maps[:, :-1] @ y + self.maps[:, -1:]
        return found.sub_(y.square().sum(dim=0) / 2)

    def sums(self, share: Tensor, seen: Tensor) -> Tensor:
        """Add up rows by component, and x x^T whatever the component, (K + D + 1, D + 1)."""
        moments = (seen * share.sum(dim=0)[:, None]).T @ seen
        return torch.cat([share @ seen, moments])

    def maximised(self, sums: Tensor) -> Mixture:
        """Return the mixture of highest expected likelihood."""
        k = len(self.maps)
        count, means = _means(sums[:k])
        between = (count[:, None] * means).T @ means
        covariance = (sums[k:-1, :-1] - between) / count.sum()
        covariance.diagonal().add_(self.reg)
        return Mixture(count / count.sum(), means, covariance)


class Diagonal:
    """Components whose features are independent: variances, (K, D).

    The log-density is linear in (x^2, x, 1), and the sums of these are all that EM needs.
    """

    def __init__(self, mixture: Mixture, reg: float) -> None:
        self.mixture, self.reg = mixture, reg
        weights, means, variances = mixture.weights, mixture.means, self._variances(mixture)
        positive(variances, weights)
        precision = 1 / variances
        square = (precision * means.square() + variances.log()).sum(dim=1)
        constant = weights.log() - (square + means.shape[1] * LOG_2_PI) / 2
        self.maps = torch.cat([-precision / 2, precision * means, constant[:, None]], dim=1)
        self.width = 2 * means.shape[1] + len(means)

    def _variances(self, mixture: Mixture) -> Tensor:
        return mixture.covariances

    def seen(self, x: Tensor) -> Tensor:
        """Return (x^2, x, 1) in float64, (B, 2 D + 1)."""
        x = x.double()
        return torch.cat([x[:, :-1].square(), x], dim=1)

    def log_densities(self, seen: Tensor) -> Tensor:
        """Return log(w_k N(x)), (K, B)."""
        return self.maps @ seen.T

    def sums(self, share: Tensor, seen: Tensor) -> Tensor:
        """Add up (x^2, x, 1), (K, 2 D + 1)."""
        return share @ seen

    def maximised(self, sums: Tensor) -> Mixture:
        """Return the mixture of highest expected likelihood."""
        d = self.mixture.means.shape[1]
        count, means = _means(sums[:, d:])
        second = sums[:, :d] / count[:, None]
        variances = second - means.square()
        variances[variances < TINY * second] = 0  # what rounding alone could have left
        return Mixture(count / count.sum(), means, variances + self.reg)


class Spherical(Diagonal):
    """Round components: one variance each, (K,)."""

    def _variances(self, mixture: Mixture) -> Tensor:
        return mixture.covariances[:, None].expand_as(mixture.means)

    def maximised(self, sums: Tensor) -> Mixture:
        """Return the mixture of highest expected likelihood."""
        weights, means, variances = super().maximised(sums)
        return Mixture(weights, means, variances.mean(dim=1))


KINDS: dict[str, type[Components]] = {
    "full": Full,
    "tied": Tied,
    "diag": Diagonal,
    "spherical": Spherical,
}


def _means(sums: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many rows each component has, (K,), and their means, (K, D)."""
    count = sums[:, -1] + TINY
    return count, sums[:, :-1] / count[:, None]


def cholesky(covariances: Tensor, weights: Tensor | None) -> Tensor:
    """Return the roots R, S = R R^T, or say which covariance has none."""
    root, failed = torch.linalg.cholesky_ex(covariances)
    if failed.any() or not root.isfinite().all():
        _singular(int(failed.ne(0).nonzero()[0, 0]) if failed.any() else 0, weights)
    return root


def positive(variances: Tensor, weights: Tensor) -> None:
    """Refuse variances of zero."""
    bad = (variances <= 0).any(dim=1) | ~variances.isfinite().all(dim=1)
    if bad.any():
        _singular(int(bad.nonzero()[0, 0]), weights)


def _singular(which: int, weights: Tensor | None) -> None:
    owner = "the shared covariance"
    if weights is not None:
        share = number(100 * float(weights[which]), 3)
        owner = f"the covariance of component {which} ({share} % of the rows)"
    raise SolverFailed(
        f"GaussianMixture: {owner} must be positive definite; got a singular one, as of rows that "
        "lie in a plane or on a point. Raise `reg_covar` or lower `n_components`."
    )
