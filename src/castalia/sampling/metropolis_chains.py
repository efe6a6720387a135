"""Metropolis and Hamiltonian Monte Carlo on unnormalised log-densities, many chains at once.

A proposal is accepted with probability min(1, p(x') / p(x)), which makes p stationary whatever its
normaliser. Hamiltonian proposals follow the gradient of log p with a random momentum.
Shapes: C chains, D variables. References: 1953, Metropolis et al., Equation of state calculations;
2011, Neal, MCMC using Hamiltonian dynamics, arXiv 1206.1901.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from castalia.errors import InvalidData, InvalidParameter
from castalia.sampling.sampled_chains import Chains, Observe, run_chains
from castalia.utils.seeds import generator, seed_from

__all__ = ["LogDensity", "hamiltonian", "metropolis"]

LogDensity = Callable[[Tensor], Tensor]


def metropolis(
    log_density: LogDensity,
    start: Tensor,
    *,
    steps: int,
    scale: float = 1.0,
    propose: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    burn_in: int = 0,
    thin: int = 1,
    observe: Observe | None = None,
    random_state: Any = None,
) -> Chains:
    """Propose a symmetric random step, and take it or stay.

    Parameters
    ----------
    log_density
        Maps states (C, D) to log p up to a constant, (C,).
    start
        First states, (C, D), where p is above 0.
    steps
        Steps after burn-in.
    scale
        Standard deviation of the normal proposal, that of p to begin with; in burn-in it is adapted
        until about a quarter (in one dimension 0.44) of the proposals are accepted.
    propose
        Another symmetric proposal, ``propose(x, generator)``; nothing is adapted then.
    burn_in, thin, observe, random_state
        As in ``gibbs``.

    Examples
    --------
    >>> chains = metropolis(lambda x: -x.square().sum(dim=1) / 2, torch.zeros(50, 1),
    ...                     steps=500, burn_in=100, random_state=0)
    >>> bool(abs(chains.flat.var() - 1) < 0.1)
    True
    """
    _positive("metropolis", "scale", scale)
    wanted = 0.44 if start.shape[-1] == 1 else 0.234

    def proposal(x: Tensor, width: float, source: torch.Generator) -> tuple[Tensor, Tensor]:
        if propose is not None:
            return propose(x, source), x.new_zeros(len(x))
        noise = torch.randn(x.shape, generator=source, device=x.device, dtype=x.dtype)
        return x + width * noise, x.new_zeros(len(x))

    adapt = wanted if propose is None else None
    walk = _Walk("metropolis", log_density, start, proposal, scale, adapt, burn_in, random_state)
    return walk.run(start, steps, thin, observe)


def hamiltonian(
    log_density: LogDensity,
    start: Tensor,
    *,
    steps: int,
    leaps: int = 10,
    step_size: float = 0.1,
    burn_in: int = 0,
    thin: int = 1,
    observe: Observe | None = None,
    random_state: Any = None,
) -> Chains:
    """Give each state a random momentum, follow Hamilton's equations, and accept or stay.

    Parameters
    ----------
    log_density
        Maps states (C, D) to log p up to a constant, (C,); differentiable.
    start
        First states, (C, D).
    steps
        Trajectories after burn-in.
    leaps
        Leapfrog steps of a trajectory.
    step_size
        Length of a leapfrog step to begin with; in burn-in it is adapted until about 65 % of the
        trajectories are accepted.
    burn_in, thin, observe, random_state
        As in ``gibbs``.

    Examples
    --------
    >>> chains = hamiltonian(lambda x: -x.square().sum(dim=1) / 2, torch.zeros(50, 3),
    ...                      steps=200, burn_in=50, random_state=0)
    >>> bool((chains.flat.var(dim=0) - 1).abs().max() < 0.1)
    True
    """
    _positive("hamiltonian", "step_size", step_size)

    def proposal(x: Tensor, width: float, source: torch.Generator) -> tuple[Tensor, Tensor]:
        p = torch.randn(x.shape, generator=source, device=x.device, dtype=x.dtype)
        before = p.square().sum(dim=1) / 2
        p = p + width / 2 * _gradient(log_density, x)
        for leap in range(leaps):
            x = x + width * p
            p = p + (width if leap < leaps - 1 else width / 2) * _gradient(log_density, x)
        return x, before - p.square().sum(dim=1) / 2

    walk = _Walk(
        "hamiltonian", log_density, start, proposal, step_size, 0.65, burn_in, random_state
    )
    return walk.run(start, steps, thin, observe)


def _gradient(log_density: LogDensity, x: Tensor) -> Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(log_density(x).sum(), x)
    return slope


class _Walk:
    """Accept or stay; the width of proposals is adapted in burn-in and fixed afterwards."""

    def __init__(
        self,
        owner: str,
        log_density: LogDensity,
        start: Tensor,
        proposal: Callable[[Tensor, float, torch.Generator], tuple[Tensor, Tensor]],
        width: float,
        wanted: float | None,
        burn_in: int,
        random_state: Any,
    ) -> None:
        self.owner, self.log_density, self.proposal = owner, log_density, proposal
        self.width, self.wanted, self.burn_in = width, wanted, burn_in
        self.source = generator(seed_from(random_state), device=start.device)
        self.at = log_density(start).detach()
        self.accepted = torch.zeros((), dtype=torch.float64, device=start.device)
        if not bool(self.at.isfinite().all()):
            worst = int((~self.at.isfinite()).nonzero()[0, 0])
            raise InvalidData(
                f"{owner}: `start` must lie where the density is above 0 and finite; log p is "
                f"{float(self.at[worst])} at chain {worst}."
            )

    @torch.no_grad()
    def step(self, x: Tensor, number: int) -> Tensor:
        moved, gain = self.proposal(x, self.width, self.source)
        there = self.log_density(moved)
        chance = torch.rand(len(x), generator=self.source, device=x.device, dtype=x.dtype)
        taken = chance.log() < there - self.at + gain
        self.at = torch.where(taken, there, self.at)
        share = taken.double().mean()
        if number >= self.burn_in:
            self.accepted += share
        elif self.wanted is not None:
            self.width *= math.exp((float(share) - self.wanted) / (number + 1) ** 0.5)
        return torch.where(taken[:, None], moved, x)

    def run(self, start: Tensor, steps: int, thin: int, observe: Observe | None) -> Chains:
        draws, last = run_chains(
            self.owner,
            self.step,
            start.clone(),
            steps=steps,
            burn_in=self.burn_in,
            thin=thin,
            observe=observe,
        )
        return Chains(draws, last, self.burn_in, thin, float(self.accepted) / steps)


def _positive(owner: str, name: str, value: float) -> None:
    if not value > 0:
        raise InvalidParameter(f"{owner}: `{name}` must be a number above 0; got {value!r}.")
