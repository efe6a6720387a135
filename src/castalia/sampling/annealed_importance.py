"""Annealed importance sampling: log Z along a path from a distribution whose Z is known.

w = prod_t p~_{b_t}(x_t) / p~_{b_{t-1}}(x_t), with x_{t+1} drawn by a step that keeps p_{b_t};
E w = Z_1 / Z_0. Many runs side by side. Reference: 2001, Neal, Annealed importance sampling,
Statistics and Computing 11; for RBMs: 2008, Salakhutdinov, Murray, ICML.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.seeds import generator, seed_from

__all__ = ["AnnealedEstimate", "annealed_importance"]


class AnnealedEstimate(NamedTuple):
    """An estimate of log Z.

    Attributes
    ----------
    log_z
        Log of the mean weight, plus the log Z at which the path began.
    low, high
        log of the mean weight less and plus three standard errors; ``low`` may be minus infinity.
    ess
        Effective number of runs.
    log_weights
        Log-weight of each run, (C,).
    """

    log_z: float
    low: float
    high: float
    ess: float
    log_weights: Tensor


def annealed_importance(
    log_density: Callable[[Tensor, float], Tensor],
    step: Callable[[Tensor, float, torch.Generator], Tensor],
    start: Tensor,
    *,
    log_z: float = 0.0,
    betas: Any = 1000,
    random_state: Any = None,
) -> AnnealedEstimate:
    """Estimate log Z of an unnormalised distribution.

    Parameters
    ----------
    log_density
        ``log_density(x, beta)`` returns the unnormalised log-probability of states (C, …) at an
        inverse temperature from 0 (the known distribution) to 1 (the wanted one), (C,).
    step
        ``step(x, beta, generator)`` moves states by something that keeps the distribution at beta,
        such as a sweep of Gibbs sampling.
    start
        Exact draws from the distribution at beta = 0, (C, …): one run each.
    log_z
        log Z at beta = 0.
    betas
        Number of steps from 0 to 1, or the rising values themselves, from 0 to 1.
    random_state
        Seed.

    Examples
    --------
    >>> energy = torch.tensor([0.0, 1.0, 3.0])  # three states, drawn afresh at each temperature
    >>> found = annealed_importance(
    ...     lambda x, b: b * energy[x],
    ...     lambda x, b, g: torch.multinomial((b * energy).exp(), len(x), True, generator=g),
    ...     torch.randint(3, (500,), generator=torch.Generator().manual_seed(0)),
    ...     log_z=math.log(3), betas=50, random_state=0)
    >>> bool(abs(found.log_z - energy.logsumexp(0)) < 0.05)
    True
    """
    path = _path(betas)
    source = generator(seed_from(random_state), device=start.device)
    x, log_w = start, torch.zeros(len(start), dtype=torch.float64, device=start.device)
    with torch.no_grad():
        for before, beta in zip(path, path[1:], strict=False):
            log_w += (log_density(x, beta) - log_density(x, before)).double()
            x = step(x, beta, source)
    if not bool(log_w.isfinite().all()):
        raise InvalidData(
            "annealed_importance: every log-weight must be finite; "
            f"{int((~log_w.isfinite()).sum())} of {len(log_w)} are not. Scale the weights down, or "
            "compute in float64."
        )
    return _estimate(log_w, log_z)


def _estimate(log_w: Tensor, log_z: float) -> AnnealedEstimate:
    top, runs = float(log_w.max()), len(log_w)
    w = (log_w - top).exp()
    mean, error = float(w.mean()), float(w.std()) / runs**0.5 if runs > 1 else math.inf
    ends = [math.log(v) + top + log_z if v > 0 else -math.inf for v in (mean - 3 * error,)]
    ess = float(w.sum().square() / w.square().sum())
    high = math.log(mean + 3 * error) + top + log_z
    return AnnealedEstimate(math.log(mean) + top + log_z, ends[0], high, ess, log_w)


def _path(betas: Any) -> list[float]:
    """Return the temperatures, 0 first and 1 last."""
    if isinstance(betas, int) and betas >= 1:
        return [t / betas for t in range(betas + 1)]
    path = [] if isinstance(betas, int) else [float(b) for b in betas]
    rises = all(a < b for a, b in zip(path, path[1:], strict=False))
    if len(path) < 2 or path[0] != 0 or path[-1] != 1 or not rises:
        raise InvalidParameter(
            "annealed_importance: `betas` must be a whole number of at least 1, or numbers that "
            f"rise from 0 to 1; got {betas!r}."
        )
    return path
