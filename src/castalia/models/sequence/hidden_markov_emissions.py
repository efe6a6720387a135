"""What the states of a hidden Markov model emit: symbols, normal vectors, or mixtures of them.

Every kind gives log b_j(x) of rows, collects weighted sums of them and is maximised from the sums.
A row of NaN is missing: log b = 0, and it is left out of the sums. Where some channels are missing,
the others count, and what is expected of the missing ones takes their place in the sums.
Shapes: R rows, D channels, K states, M components of a mixture, V symbols.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = ["Discrete", "Emission", "Gaussian", "Mixture", "Observations", "from_arrays"]


class Observations:
    """Rows with the places of those that miss something.

    Attributes
    ----------
    rows
        (R, D), 0 where missing.
    odd
        Indices of rows that miss something.
    partial
        Pairs of indices and observed channels, for rows that miss the same channels but not all.
    """

    def __init__(self, rows: Tensor) -> None:
        missing = rows.isnan()
        self.rows = torch.nan_to_num(rows)
        self.odd = missing.any(dim=1).nonzero()[:, 0]
        self.partial: list[tuple[Tensor, Tensor]] = []
        if not len(self.odd):
            return
        patterns, which = (~missing[self.odd]).unique(dim=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            if bool(pattern.any()):
                self.partial.append((self.odd[which == number], pattern.nonzero()[:, 0]))

    def whole(self, share: Tensor) -> Tensor:
        """Return shares (R, K) of the rows that miss nothing."""
        return share if not len(self.odd) else share.index_fill(0, self.odd, 0.0)


class Emission(ABC):
    """Emissions of K states."""

    @abstractmethod
    def log_density(self, seen: Observations) -> Tensor:
        """Return log b_j(x), (R, K)."""

    @abstractmethod
    def sums(self, seen: Observations, share: Tensor) -> tuple[Tensor, ...]:
        """Return the sums that ``maximised`` needs, for shares (R, K)."""

    @abstractmethod
    def maximised(self, sums: tuple[Tensor, ...], floor: Tensor) -> Emission:
        """Return the likeliest emissions; a state without rows keeps its own."""

    @abstractmethod
    def draw(self, states: Tensor, random: torch.Generator) -> Tensor:
        """Draw a row for each state, (R, D)."""

    @abstractmethod
    def arrays(self) -> dict[str, Tensor]:
        """Return the parameters by the names of the fitted attributes."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Free parameters."""


@dataclass(frozen=True)
class Discrete(Emission):
    """Symbols 0 … V - 1 with probabilities (K, V)."""

    probabilities: Tensor

    def log_density(self, seen: Observations) -> Tensor:
        """Return log p(symbol | state), (R, K)."""
        codes, known = self._codes(seen)
        return torch.where(known[:, None], self.probabilities.log().T[codes], 0.0)

    def sums(self, seen: Observations, share: Tensor) -> tuple[Tensor, ...]:
        """Return how often each state emits each symbol, (V, K)."""
        codes, known = self._codes(seen)
        counts = torch.zeros_like(self.probabilities.T)
        return (counts.index_add_(0, codes, share * known[:, None]),)

    def maximised(self, sums: tuple[Tensor, ...], floor: Tensor) -> Discrete:
        """Return relative frequencies."""
        counts = sums[0].T
        total = counts.sum(dim=1, keepdim=True)
        return Discrete(torch.where(total > 0, counts / total, self.probabilities))

    def draw(self, states: Tensor, random: torch.Generator) -> Tensor:
        """Draw symbols, (R, 1)."""
        drawn = torch.multinomial(self.probabilities[states], 1, generator=random)
        return drawn.double()

    def arrays(self) -> dict[str, Tensor]:
        """Return the probabilities."""
        return {"probabilities_": self.probabilities}

    @property
    def n_parameters(self) -> int:
        """K (V - 1)."""
        k, v = self.probabilities.shape
        return k * (v - 1)

    @staticmethod
    def _codes(seen: Observations) -> tuple[Tensor, Tensor]:
        known = torch.ones_like(seen.rows[:, 0], dtype=torch.bool)
        known[seen.odd] = False
        return seen.rows[:, 0].long(), known


@dataclass(frozen=True)
class Gaussian(Emission):
    """Normal vectors: means (K, D), covariances (K, D, D), or variances (K, D)."""

    means: Tensor
    covariances: Tensor

    @property
    def full(self) -> bool:
        """Whether channels are correlated."""
        return self.covariances.ndim == 3

    def log_density(self, seen: Observations) -> Tensor:
        """Return log N(x | mean, covariance), (R, K)."""
        found = self._log_density(seen.rows)
        if len(seen.odd):
            found.index_fill_(0, seen.odd, 0.0)
        for at, channels in seen.partial:
            found[at] = self.marginal(channels)._log_density(seen.rows[at][:, channels])
        return found

    def _log_density(self, rows: Tensor) -> Tensor:
        d, middle = rows.shape[1], self.means.mean(dim=0)
        rows, means = rows - middle, self.means - middle  # far from zero, squares lose digits
        constant = -0.5 * d * math.log(2 * math.pi)
        if not self.full:
            weight = self.covariances.reciprocal()
            volume = (self.covariances.log() + means.square() * weight).sum(dim=1, keepdim=True)
            linear = torch.cat([-0.5 * weight, means * weight], dim=1)  # (K, 2 D)
            columns = torch.cat([rows.square(), rows], dim=1).T
            return torch.addmm(constant - 0.5 * volume, linear, columns).T  # states lie outermost
        roots = torch.linalg.cholesky(self.covariances)
        unit = torch.eye(d, dtype=rows.dtype, device=rows.device)
        whiten = torch.linalg.solve_triangular(roots, unit.expand_as(roots), upper=False)
        shift = (whiten @ means[:, :, None])[..., 0]  # (K, D)
        white = (rows @ whiten.reshape(-1, d).T).view(len(rows), -1, d).sub_(shift)
        log_volume = roots.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        return constant - log_volume - 0.5 * white.square_().sum(dim=2)

    def marginal(self, channels: Tensor) -> Gaussian:
        """Return the distribution of some channels."""
        covariances = self.covariances[:, channels]
        return Gaussian(
            self.means[:, channels], covariances[:, :, channels] if self.full else covariances
        )

    def sums(self, seen: Observations, share: Tensor) -> tuple[Tensor, ...]:
        """Return shares (K,), sums (K, D) and sums of squares, about the middle of the means."""
        middle = self.means.mean(dim=0)
        rows, whole = seen.rows - middle, seen.whole(share)
        count, first, second = whole.sum(dim=0), whole.T @ rows, self._squares(rows, whole)
        for at, channels in seen.partial:
            one, two = self._expected(rows[at], share[at], channels, middle)
            count, first, second = count + share[at].sum(dim=0), first + one, second + two
        return count, first, second

    def _squares(self, rows: Tensor, share: Tensor) -> Tensor:
        if not self.full:
            return share.T @ rows.square()
        return torch.stack([(rows * mine[:, None]).T @ rows for mine in share.T])

    def _expected(
        self, rows: Tensor, share: Tensor, channels: Tensor, middle: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return sums in which missing channels are what is expected of them, state by state."""
        means = self.means - middle
        if not self.full:
            known = torch.zeros(rows.shape[1], dtype=torch.bool, device=rows.device)
            known[channels] = True
            one = torch.where(known, rows[:, None, :], means)  # (R, K, D)
            two = torch.where(known, one.square(), one.square() + self.covariances)
            weight = share[:, :, None]
            return (one * weight).sum(dim=0), (two * weight).sum(dim=0)
        others = torch.ones(rows.shape[1], dtype=torch.bool, device=rows.device)
        others[channels] = False
        first, second = [], []
        for mine, mean, cov in zip(share.T, means, self.covariances, strict=True):
            gain = torch.linalg.solve(cov[channels][:, channels], cov[channels][:, others]).T
            filled = rows.clone()
            filled[:, others] = mean[others] + (rows[:, channels] - mean[channels]) @ gain.T
            left = torch.zeros_like(cov)
            spread = cov[others][:, others] - gain @ cov[channels][:, others]
            left[others.nonzero(), others.nonzero()[:, 0]] = spread
            first.append(mine @ filled)
            second.append((filled * mine[:, None]).T @ filled + mine.sum() * left)
        return torch.stack(first), torch.stack(second)

    def maximised(self, sums: tuple[Tensor, ...], floor: Tensor) -> Gaussian:
        """Return weighted means and covariances; ``floor`` (D,) is added to each variance."""
        count, first, second = sums
        visited = count > 1e-10 * count.sum()
        share = count.clamp_min(1e-300)
        mean = first / share[:, None]
        if self.full:
            spread = second / share[:, None, None] - mean[:, :, None] * mean[:, None, :]
            spread = 0.5 * (spread + spread.transpose(1, 2)) + torch.diag(floor)
            kept = visited[:, None, None]
        else:
            spread = (second / share[:, None] - mean.square()).clamp_min(0) + floor
            kept = visited[:, None]
        means = torch.where(visited[:, None], mean + self.means.mean(dim=0), self.means)
        return Gaussian(means, torch.where(kept, spread, self.covariances))

    def draw(self, states: Tensor, random: torch.Generator) -> Tensor:
        """Draw normal vectors, (R, D)."""
        shape = len(states), self.means.shape[1]
        normal = torch.randn(shape, dtype=self.means.dtype, generator=random)
        if not self.full:
            return self.means[states] + self.covariances[states].sqrt() * normal
        roots = torch.linalg.cholesky(self.covariances)
        return self.means[states] + (roots[states] @ normal[:, :, None])[..., 0]

    def arrays(self) -> dict[str, Tensor]:
        """Return means and covariances."""
        return {"means_": self.means, "covariances_": self.covariances}

    @property
    def n_parameters(self) -> int:
        """Means, and variances or symmetric matrices."""
        k, d = self.means.shape
        return k * d + k * (d * (d + 1) // 2 if self.full else d)


@dataclass(frozen=True)
class Mixture(Emission):
    """Each state a mixture of M normal distributions: weights (K, M), components k M + m."""

    weights: Tensor
    components: Gaussian

    def _joint(self, seen: Observations) -> Tensor:
        """Return log of weight times density, (R, K, M)."""
        found = self.components.log_density(seen)
        return found.view(len(found), *self.weights.shape) + self.weights.log()

    def log_density(self, seen: Observations) -> Tensor:
        """Return the log of the weighted sum, (R, K)."""
        return self._joint(seen).logsumexp(dim=2)

    def sums(self, seen: Observations, share: Tensor) -> tuple[Tensor, ...]:
        """Return the components' sums."""
        split = self._joint(seen).softmax(dim=2) * share[:, :, None]
        return self.components.sums(seen, split.reshape(len(split), -1))

    def maximised(self, sums: tuple[Tensor, ...], floor: Tensor) -> Mixture:
        """Return the components' shares in their states, and the components."""
        count = sums[0].view_as(self.weights)
        total = count.sum(dim=1, keepdim=True)
        weights = torch.where(total > 0, count / total.clamp_min(1e-300), self.weights)
        return Mixture(weights, self.components.maximised(sums, floor))

    def draw(self, states: Tensor, random: torch.Generator) -> Tensor:
        """Draw components, then vectors."""
        which = torch.multinomial(self.weights[states], 1, generator=random)[:, 0]
        return self.components.draw(states * self.weights.shape[1] + which, random)

    def arrays(self) -> dict[str, Tensor]:
        """Return weights, means (K, M, D) and covariances (K, M, …)."""
        shape = self.weights.shape
        found = {name: a.unflatten(0, shape) for name, a in self.components.arrays().items()}
        return {"weights_": self.weights, **found}

    @property
    def n_parameters(self) -> int:
        """Weights and components."""
        k, m = self.weights.shape
        return k * (m - 1) + self.components.n_parameters


def from_arrays(arrays: Mapping[str, np.ndarray], device: torch.device) -> Emission:
    """Build emissions from fitted attributes."""
    found = {name: torch.as_tensor(a, dtype=torch.float64).to(device) for name, a in arrays.items()}
    if "probabilities_" in found:
        return Discrete(found["probabilities_"])
    if "weights_" not in found:
        return Gaussian(found["means_"], found["covariances_"])
    parts = Gaussian(found["means_"].flatten(0, 1), found["covariances_"].flatten(0, 1))
    return Mixture(found["weights_"], parts)
