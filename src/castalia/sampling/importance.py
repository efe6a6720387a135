"""Importance sampling: E_p f = E_q (p/q) f, with draws from a proposal q.

The best proposal is q* = p |f| / Z: where f >= 0 the estimate then has no variance at all. Its Z is
as hard as the sum itself, so q* is what a proposal is compared with.
Reference: 2016, Goodfellow, Bengio, Courville, Deep Learning, 17.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from castalia.errors import InvalidData
from castalia.sampling.monte_carlo_mean import Draw, enough
from castalia.utils.seeds import generator, seed_from

__all__ = ["ImportanceEstimate", "importance_sampling"]


class ImportanceEstimate(NamedTuple):
    """A weighted mean over draws from a proposal.

    Attributes
    ----------
    value, error
        The estimate and its standard error, ().
    ess
        Effective sample size, (sum w)^2 / sum w^2: draws from p that would say as much.
    largest
        Share of the heaviest draw in all weight; near 1 the estimate rests on one draw.
    log_z
        Log of the mean weight: log Z of an unnormalised p, 0 of a normalised one.
    optimal_error
        Standard error that the best proposal, q* = p |f| / Z, would have with as many draws: 0
        where f has one sign.
    n
        Draws.
    """

    value: Tensor
    error: Tensor
    ess: float
    largest: float
    log_z: float
    optimal_error: float
    n: int


def importance_sampling(
    f: Callable[[Tensor], Tensor],
    log_p: Callable[[Tensor], Tensor],
    draw: Draw,
    log_q: Callable[[Tensor], Tensor],
    n: int,
    *,
    self_normalised: bool = False,
    random_state: Any = None,
    device: Any = "cpu",
) -> ImportanceEstimate:
    """Estimate E_p f(x) with draws from q.

    Parameters
    ----------
    f
        Maps draws (n, …) to values (n,).
    log_p
        Log-density of the target at draws, (n,); with ``self_normalised`` up to a constant.
    draw
        ``draw(n, generator)`` returns n draws from q.
    log_q
        Log-density of the proposal, (n,); q must not vanish where p f does not.
    n
        Draws.
    self_normalised
        Divide by the sum of the weights: consistent where p is known up to a constant, with a bias
        that falls as 1 / n. Otherwise unbiased.
    random_state, device
        Seed and place of the generator.

    Examples
    --------
    >>> wide = torch.distributions.Normal(0.0, 2.0)
    >>> found = importance_sampling(
    ...     torch.square,
    ...     lambda x: -x.square() / 2,
    ...     lambda n, g: 2 * torch.randn(n, generator=g),
    ...     wide.log_prob,
    ...     20_000,
    ...     self_normalised=True,
    ...     random_state=0,
    ... )
    >>> round(float(found.value), 1), round(found.log_z, 1)  # the variance, and log sqrt(2 pi)
    (1.0, 0.9)
    """
    enough("importance_sampling", n)
    x = draw(n, generator(seed_from(random_state), device=device))
    values, log_w = f(x).double(), (log_p(x) - log_q(x)).double()
    top = _highest(log_w)
    w = (log_w - top).exp()  # over exp(top)
    log_z = float(w.mean().log() + top)
    ess, largest = float(w.sum().square() / w.square().sum()), float(w.max() / w.sum())
    size = w / w.mean() if self_normalised else w * math.exp(top)
    value = (size * values).mean()
    spread = size * (values - value) if self_normalised else size * values - value
    error = spread.square().sum().div(n - 1).sqrt() / n**0.5
    apart = (size * values.abs()).mean().square() - value.square()
    optimal = float(apart.clamp_min(0).sqrt()) / n**0.5
    return ImportanceEstimate(value, error, ess, largest, log_z, optimal, n)


def _highest(log_w: Tensor) -> float:
    """Return the largest log-weight, or say what is wrong with the weights."""
    broken = log_w.isnan() | (log_w == torch.inf)
    if broken.any():
        raise InvalidData(
            "importance_sampling: log p - log q must be below infinity; got "
            f"{float(log_w[broken][0])} at draw {int(broken.nonzero()[0, 0])}. The proposal must "
            "have a density wherever it draws."
        )
    top = float(log_w.max())
    if top == -math.inf:
        raise InvalidData(
            f"importance_sampling: p must be above 0 at some draw; it is 0 at all {len(log_w)}. "
            "Choose a proposal that draws where p lies."
        )
    return top
