"""What a sampler returns, and the run that all samplers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.sampling.chain_diagnostics import effective_sample_size, split_r_hat

__all__ = ["Chains", "Observe", "run_chains"]

Observe = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Chains:
    """Draws of many chains that ran side by side.

    Attributes
    ----------
    draws
        What was kept, (S, C, …): S draws of each of C chains.
    last
        State in which each chain ended, (C, …), to go on from.
    burn_in
        Steps thrown away at the beginning.
    thin
        Every how many steps a draw was kept.
    acceptance
        Share of proposals that were accepted after burn-in; 1 in Gibbs sampling.

    Examples
    --------
    >>> chains = Chains(torch.zeros(4, 2, 3), torch.zeros(2, 3), burn_in=10, thin=2)
    >>> chains
    Chains: 4 draws of each of 2 chains; the first 10 steps left out, then one of 2 kept
    """

    draws: Tensor
    last: Tensor
    burn_in: int
    thin: int
    acceptance: float = 1.0

    @property
    def flat(self) -> Tensor:
        """All draws in one column, (S C, …)."""
        return self.draws.flatten(0, 1)

    @property
    def mean(self) -> Tensor:
        """Mean over all draws, (…)."""
        return self.flat.double().mean(dim=0)

    @property
    def error(self) -> Tensor:
        """Standard error of that mean, correlations counted, (…)."""
        return self.flat.double().std(dim=0) / self.ess.sqrt()

    @property
    def r_hat(self) -> Tensor:
        """Split R-hat of each quantity, (…); above 1.01 the chains have not mixed."""
        return split_r_hat(self.draws)

    @property
    def ess(self) -> Tensor:
        """Effective sample size of each quantity, (…)."""
        return effective_sample_size(self.draws)

    def __repr__(self) -> str:
        kept = "all kept" if self.thin == 1 else f"one of {self.thin} kept"
        return (
            f"Chains: {self.draws.shape[0]} draws of each of {self.draws.shape[1]} chains; the "
            f"first {self.burn_in} steps left out, then {kept}"
        )


def run_chains(
    owner: str,
    step: Callable[[Tensor, int], Tensor],
    start: Tensor,
    *,
    steps: int,
    burn_in: int,
    thin: int,
    observe: Observe | None,
) -> tuple[Tensor, Tensor]:
    """Take ``burn_in + steps`` steps; return one draw of every ``thin``, and the last states."""
    _check(owner, start, steps, burn_in, thin)
    x, kept = start, []
    for number in range(burn_in + steps):
        x = step(x, number)
        after = number - burn_in + 1
        if after > 0 and after % thin == 0:
            kept.append(x.clone() if observe is None else observe(x))
    return torch.stack(kept), x


def _check(owner: str, start: Tensor, steps: int, burn_in: int, thin: int) -> None:
    if start.ndim < 2:
        raise ShapeMismatch(
            f"{owner}: `start` must have shape (chains, variables); got {tuple(start.shape)}."
        )
    for name, value, least in (("thin", thin, 1), ("steps", steps, thin), ("burn_in", burn_in, 0)):
        if not isinstance(value, int) or value < least:
            raise InvalidParameter(
                f"{owner}: `{name}` must be a whole number of at least {least}; got {value!r}."
            )
