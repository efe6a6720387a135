"""Balls around a row of inputs: the way uphill, the projection into them, a random point."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["BALLS"]


def _per_row(x: Tensor, values: Tensor) -> Tensor:
    """Give one value a row, (B,), the dimensions of x."""
    return values.view(-1, *[1] * (x.ndim - 1))


def _lengths(x: Tensor) -> Tensor:
    """Return the Euclidean length of each row, with the dimensions of x."""
    return _per_row(x, x.flatten(1).norm(dim=1))


def _unit(gradient: Tensor) -> Tensor:
    return gradient / _lengths(gradient).clamp_min(torch.finfo(gradient.dtype).tiny)


def _shrink(change: Tensor, eps: float) -> Tensor:
    lengths = _lengths(change).clamp_min(torch.finfo(change.dtype).tiny)
    return change * (eps / lengths).clamp(max=1)


def _draw_cube(x: Tensor, eps: float, generator: torch.Generator | None) -> Tensor:
    return torch.empty_like(x).uniform_(-eps, eps, generator=generator)


def _draw_ball(x: Tensor, eps: float, generator: torch.Generator | None) -> Tensor:
    """Draw uniformly from the ball: a random direction, and a radius u^(1/D)."""
    direction = _unit(torch.empty_like(x).normal_(generator=generator))
    radius = torch.empty(len(x), dtype=x.dtype, device=x.device).uniform_(generator=generator)
    return eps * direction * _per_row(x, radius ** (1 / x[0].numel()))


BALLS: dict[str, tuple[Callable[..., Tensor], ...]] = {
    "inf": (torch.sign, lambda change, eps: change.clamp(-eps, eps), _draw_cube),
    "l2": (_unit, _shrink, _draw_ball),
}
