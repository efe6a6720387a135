"""Whether chains have mixed, and how many independent draws they are worth.

Draws have shape (S, C, …): S steps kept of each of C chains. References: 1992, Gelman, Rubin,
Inference from iterative simulation using multiple sequences, Statistical Science 7; 2013, Gelman et
al., Bayesian Data Analysis, 3rd ed., 11.4–11.5; 1992, Geyer, Practical Markov chain Monte Carlo.
"""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.errors import ShapeMismatch

__all__ = ["effective_sample_size", "split_r_hat"]


def split_r_hat(draws: Tensor) -> Tensor:
    """Return the potential scale reduction of each quantity, (…); above 1.01, run on.

    Each chain is cut in halves; R^2 compares the variance of all halves together with that inside
    them, so chains that disagree, and a chain that drifts, both show. A quantity that never moved
    has R = 1 where all chains agree, otherwise infinity.

    Examples
    --------
    >>> g = torch.Generator().manual_seed(0)
    >>> mixed = torch.randn(1000, 4, generator=g)
    >>> bool(split_r_hat(mixed) < 1.01), bool(split_r_hat(mixed + torch.arange(4)) > 1.5)
    (True, True)
    """
    halves = _halves(draws)
    within, total = _variances(halves)
    ratio = (total / within).sqrt()
    return torch.where(total == 0, torch.ones_like(ratio), ratio)


def effective_sample_size(draws: Tensor) -> Tensor:
    """Return how many independent draws all chains together are worth, (…).

    S C / (1 + 2 sum_t rho_t), the autocorrelations rho added in pairs until a pair is no longer
    positive, and never rising.

    Examples
    --------
    >>> g = torch.Generator().manual_seed(0)
    >>> free = effective_sample_size(torch.randn(1000, 4, generator=g))
    >>> bool(3000 < free < 5000)
    True
    """
    halves = _halves(draws)
    steps, chains = halves.shape[:2]
    within, total = _variances(halves)
    covariance = _autocovariance(halves).mean(dim=1)  # (S, …)
    rho = 1 - (within - covariance * steps / (steps - 1)) / total
    rho[0] = 1
    even = steps - steps % 2
    pairs = rho[:even].unflatten(0, (-1, 2)).sum(dim=1)
    alive = (pairs > 0).cumprod(dim=0).bool()
    falling = torch.where(alive, pairs, 0).cummin(dim=0).values
    time = (2 * falling.sum(dim=0) - 1).clamp_min(1 / torch.tensor(float(steps * chains)).log10())
    return torch.where(total == 0, torch.full_like(time, steps * chains), steps * chains / time)


def _halves(draws: Tensor) -> Tensor:
    """Cut every chain in two: (S, C, …) to (S / 2, 2 C, …), in double precision."""
    if draws.ndim < 2 or len(draws) < 4:
        raise ShapeMismatch(
            "split_r_hat: draws must have shape (steps, chains, …) with at least 4 steps; got "
            f"{tuple(draws.shape)}."
        )
    half = len(draws) // 2
    return torch.cat([draws[:half], draws[-half:]], dim=1).double()


def _variances(draws: Tensor) -> tuple[Tensor, Tensor]:
    """Return the variance inside chains, and the pooled one that also sees their distance."""
    steps = len(draws)
    within = draws.var(dim=0).mean(dim=0)
    between = draws.mean(dim=0).var(dim=0)
    return within, within * (steps - 1) / steps + between


def _autocovariance(draws: Tensor) -> Tensor:
    """Return the autocovariances of each chain at lags 0 to S - 1, (S, C, …), by FFT."""
    steps = len(draws)
    wave = torch.fft.rfft(draws - draws.mean(dim=0), n=2 * steps, dim=0)
    return torch.fft.irfft(wave.abs().square(), n=2 * steps, dim=0)[:steps] / steps
