"""Gibbs sampling: resample one variable, or a block of them, given all others.

Every update leaves the distribution as it is; taken in turns they reach every state. Many chains
run side by side, on the device of their first states. Shapes: C chains, n variables, K states.
Reference: 1984, Geman, Geman, Stochastic relaxation, Gibbs distributions, and the Bayesian
restoration of images, IEEE PAMI 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from castalia.errors import InvalidData, InvalidParameter
from castalia.sampling.sampled_chains import Chains, Observe, run_chains
from castalia.utils.seeds import generator, seed_from

__all__ = ["Update", "block_gibbs", "draw_states", "gibbs"]

Update = Callable[[Tensor, torch.Generator], Tensor]


def gibbs(
    log_conditional: Callable[[Tensor, int], Tensor],
    start: Tensor,
    *,
    steps: int,
    burn_in: int = 0,
    thin: int = 1,
    observe: Observe | None = None,
    random_state: Any = None,
) -> Chains:
    """Resample one variable after another given all others.

    Parameters
    ----------
    log_conditional
        ``log_conditional(x, i)`` gives, for states x (C, n), the log-probabilities of the K states
        of variable i given the others, (C, K), up to a constant a chain.
    start
        First states, (C, n), whole numbers.
    steps
        Sweeps over all variables after burn-in.
    burn_in
        Sweeps before the first that counts.
    thin
        Every how many sweeps a draw is kept.
    observe
        What to keep of states (C, n); all of them when None.
    random_state
        Seed.

    Returns
    -------
    Chains

    Examples
    --------
    >>> alike = torch.tensor([[2.0, 0.0], [0.0, 2.0]])  # log-potential of a pair of bits
    >>> chains = gibbs(lambda x, i: alike[x[:, 1 - i]], torch.zeros(100, 2, dtype=torch.long),
    ...                steps=200, burn_in=20, random_state=0)
    >>> equal = (chains.flat[:, 0] == chains.flat[:, 1]).float().mean()
    >>> bool(abs(equal - torch.sigmoid(torch.tensor(2.0))) < 0.02)
    True
    """
    checked = _Checked("gibbs")

    def site(i: int) -> Update:
        def update(x: Tensor, source: torch.Generator) -> Tensor:
            log_p = checked(log_conditional(x, i), i)
            x[:, i] = draw_states(log_p, source)
            return x

        return update

    updates = [site(i) for i in range(start.shape[-1])]
    chains = _run("gibbs", updates, start, steps, burn_in, thin, observe, random_state)
    checked.finish()
    return chains


def block_gibbs(
    updates: Sequence[Update],
    start: Tensor,
    *,
    steps: int,
    burn_in: int = 0,
    thin: int = 1,
    observe: Observe | None = None,
    random_state: Any = None,
) -> Chains:
    """Resample whole blocks in turns, each given the rest, as an RBM's two layers.

    Variables of one block must be drawn from their joint conditional; where none of them is
    another's neighbour that is the product of their own.

    Parameters
    ----------
    updates
        One function a block: ``update(x, generator)`` returns the states with the block drawn
        again; it may write into x.
    start
        First states, (C, …).
    steps, burn_in, thin, observe, random_state
        As in ``gibbs``; a step is one turn of all blocks.

    Examples
    --------
    >>> def flip(x, source):
    ...     return torch.randint_like(x, 2)
    >>> block_gibbs([flip], torch.zeros(3, 5), steps=10, random_state=0).draws.shape
    torch.Size([10, 3, 5])
    """
    if not updates:
        raise InvalidParameter("block_gibbs: `updates` must hold at least one function; got none.")
    return _run("block_gibbs", updates, start, steps, burn_in, thin, observe, random_state)


def draw_states(log_p: Tensor, source: torch.Generator) -> Tensor:
    """Draw a state from each row of log-probabilities, (C, K) to (C,), up to a constant."""
    cumulative = log_p.softmax(dim=-1).cumsum(dim=-1)
    at = torch.rand(log_p.shape[:-1], generator=source, device=log_p.device, dtype=log_p.dtype)
    return (cumulative[..., :-1] <= (at * cumulative[..., -1])[..., None]).sum(dim=-1)


def _run(
    owner: str,
    updates: Sequence[Update],
    start: Tensor,
    steps: int,
    burn_in: int,
    thin: int,
    observe: Observe | None,
    random_state: Any,
) -> Chains:
    source = generator(seed_from(random_state), device=start.device)

    def sweep(x: Tensor, number: int) -> Tensor:
        for update in updates:
            x = update(x, source)
        return x

    with torch.no_grad():
        draws, last = run_chains(
            owner, sweep, start.clone(), steps=steps, burn_in=burn_in, thin=thin, observe=observe
        )
    return Chains(draws, last, burn_in, thin)


class _Checked:
    """Passes log-probabilities on and remembers, without waiting for the device, if any is bad."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.bad: dict[int, Tensor] = {}

    def __call__(self, log_p: Tensor, i: int) -> Tensor:
        top = log_p.amax(dim=-1)
        bad = ~top.isfinite().all()
        self.bad[i] = bad | self.bad[i] if i in self.bad else bad
        return log_p

    def finish(self) -> None:
        found = [i for i, bad in self.bad.items() if bool(bad)]
        if found:
            raise InvalidData(
                f"{self.owner}: the log-probabilities of variable {found[0]} must be finite, at "
                "least one a chain; they overflowed or are all minus infinity. Scale the weights "
                "down, or compute in float64."
            )
