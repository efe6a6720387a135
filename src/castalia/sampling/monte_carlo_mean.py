"""The Monte-Carlo estimate: s = (1/n) sum_i f(x_i), x_i ~ p, and how far it may be off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.utils.seeds import generator, seed_from

__all__ = ["Draw", "Estimate", "enough", "monte_carlo"]

Draw = Callable[[int, torch.Generator], Tensor]  # (n, generator) to n draws, (n, …)


class Estimate(NamedTuple):
    """A mean over draws.

    Attributes
    ----------
    value
        The estimate, (…).
    error
        Its standard error, sigma / sqrt(n), (…).
    n
        Draws.
    """

    value: Tensor
    error: Tensor
    n: int


def monte_carlo(
    f: Callable[[Tensor], Tensor],
    draw: Draw,
    n: int,
    *,
    random_state: Any = None,
    device: Any = "cpu",
) -> Estimate:
    """Estimate E_p f(x) by a mean over draws; its time is fixed and its error random.

    Parameters
    ----------
    f
        Maps draws (n, …) to values (n, …).
    draw
        ``draw(n, generator)`` returns n draws from p.
    n
        Draws; four times as many halve the error.
    random_state
        Seed of the generator that ``draw`` is given.
    device
        Where that generator lives.

    Examples
    --------
    >>> inside = lambda x: 4.0 * (x.square().sum(dim=1) < 1)
    >>> pi = monte_carlo(inside, lambda n, g: torch.rand(n, 2, generator=g), 10_000, random_state=0)
    >>> bool(abs(pi.value - torch.pi) < 4 * pi.error)
    True
    """
    enough("monte_carlo", n)
    source = generator(seed_from(random_state), device=device)
    values = f(draw(n, source)).double()
    return Estimate(values.mean(dim=0), values.std(dim=0) / n**0.5, n)


def enough(owner: str, n: int) -> None:
    """Refuse fewer than two draws: one says nothing about its error."""
    if n < 2:
        raise InvalidParameter(f"{owner}: `n` must be a whole number of at least 2; got {n!r}.")
