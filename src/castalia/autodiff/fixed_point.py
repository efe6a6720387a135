"""Fixed points of contractions, differentiated by the adjoint equation.

z_{k+1} = f(z_k, w). Where |f(a, w) - f(b, w)| <= q |a - b| with q < 1, Banach's theorem gives one
fixed point z*, and |z_k - z*| <= q^k |z_0 - z*| from anywhere. Its gradient is that of the
constraint g(z, w) = z - f(z, w) = 0.
Anderson: z_{k+1} = sum_i a_i f(z_i) over the last iterations, with sum a = 1 and |sum_i a_i r_i|
least, r_i = f(z_i) - z_i.
Reference: 1965, Anderson, Iterative procedures for nonlinear integral equations, JACM 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from castalia.autodiff.flat_vector import Packing
from castalia.autodiff.implicit import ImplicitSystem
from castalia.errors import InvalidParameter, SolverFailed

__all__ = ["FixedPoint", "fixed_point"]


@dataclass(frozen=True)
class FixedPoint:
    """Where an iteration came to rest.

    Attributes
    ----------
    z
        The fixed point, with gradients by w.
    changes
        |f(z_k) - z_k| of every iteration; under a contraction by q they fall at least as q^k where
        nothing is accelerated.
    """

    z: Any
    changes: list[float]


def fixed_point(
    f: Callable[[Any, Any], Any],
    z0: Any,
    w: Any,
    *,
    tolerance: float = 1e-6,
    max_steps: int = 1000,
    acceleration: int = 0,
) -> FixedPoint:
    """Iterate z <- f(z, w) to the z* with z* = f(z*, w), and differentiate it by w.

    When f contracts distances by a factor q < 1, z* exists, is unique, and every iteration brings
    z nearer by that factor, whatever z0. The gradient solves the adjoint equation of
    g = z - f(z, w) at z*; no iteration is kept.

    Parameters
    ----------
    f
        The map f(z, w).
    z0
        Where to begin: a tensor, or a tuple, list or dict of tensors.
    w
        What f depends on: a tensor, or a tuple, list or dict of tensors.
    tolerance
        The iteration ends when z changes by at most this, relative to 1 + |z|.
    max_steps
        Iterations before it is given up.
    acceleration
        Former iterations that each one is mixed with (Anderson); 0: plain iteration. A few save
        most of the steps of slow contractions, and keep as many copies of z.

    Examples
    --------
    >>> w = torch.tensor(1.0, requires_grad=True)
    >>> found = fixed_point(lambda z, w: w * torch.cos(z), torch.tensor(0.0), w, tolerance=1e-7)
    >>> round(found.z.item(), 4)
    0.7391
    """
    if max_steps < 1:
        raise InvalidParameter(f"fixed_point: `max_steps` must be at least 1; got {max_steps!r}.")
    packing, by_w = Packing(z0, "fixed_point", "z0"), Packing(w, "fixed_point", "w")
    z = packing.pack(z0).detach()
    with torch.no_grad():
        packing.check_like(f(packing.unpack(z), w), "`f(z, w)`")
        z, changes = _iterate(
            lambda z: packing.pack(f(packing.unpack(z), w)), z, tolerance, max_steps, acceleration
        )
    found = _Implicit.apply(f, packing, by_w, z, by_w.pack(w))
    return FixedPoint(packing.unpack(found), changes)


def _iterate(
    f: Callable[[Tensor], Tensor], z: Tensor, tolerance: float, max_steps: int, depth: int
) -> tuple[Tensor, list[float]]:
    """Iterate z <- f(z) until it rests; return z and how much f moved it each time."""
    changes, past = list[float](), list[tuple[Tensor, Tensor]]()
    while len(changes) < max_steps:
        new = f(z)
        residual = new - z
        moved, size = torch.stack([residual.norm(), new.norm()]).tolist()
        changes.append(moved)
        if not math.isfinite(size):
            break
        if moved <= tolerance * (1 + size):
            return new, changes
        past = [*past, (new, residual)][-depth - 1 :]
        z = _mixed(past) if depth else new
    ratio = changes[-1] / changes[-2] if len(changes) > 1 and changes[-2] else math.nan
    raise SolverFailed(
        f"fixed_point: `f` must be a contraction near the fixed point; got a change of "
        f"{changes[-1]:.3g} after {len(changes)} iterations ({ratio:.3g} times the one before). "
        "Damp it, z <- (1 - s) z + s f(z, w), or scale w down."
    )


def _mixed(past: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Return the mixture of f(z_i) whose residual is smallest, by differences along the way."""
    new, residual = past[-1]
    if len(past) == 1:
        return new
    values, residuals = (torch.stack(each) for each in zip(*past, strict=True))  # (m + 1, N)
    steps, turns = values.diff(dim=0), residuals.diff(dim=0)
    size = turns.norm(dim=1, keepdim=True).clamp_min(torch.finfo(new.dtype).tiny)
    steps, turns = steps / size, turns / size
    gram = turns @ turns.T
    gram.diagonal().add_(10 * torch.finfo(new.dtype).eps)  # directions may be nearly the same
    return new - torch.linalg.solve(gram, turns @ residual) @ steps


class _Implicit(torch.autograd.Function):
    """The identity on z*, whose gradient by w is that of the equation z - f(z, w) = 0."""

    @staticmethod
    def forward(
        ctx: Any,
        f: Callable[[Any, Any], Any],
        packing: Packing,
        by_w: Packing,
        z: Tensor,
        w: Tensor,
    ) -> Tensor:
        ctx.f, ctx.packing, ctx.by_w = f, packing, by_w
        ctx.save_for_backward(z, w)
        return z.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, w = ctx.saved_tensors

        def equations(z: Tensor, w: Tensor) -> Tensor:
            return z - ctx.packing.pack(ctx.f(ctx.packing.unpack(z), ctx.by_w.unpack(w)))

        system = ImplicitSystem(equations, lambda z, w: grad @ z, z, w, tolerance=float("inf"))
        return None, None, None, None, system.gradient(system.multipliers("auto"))
