"""What to say when an equation cannot be integrated: where, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.options import Options
from castalia.errors import SolverFailed

__all__ = ["not_finite", "step_too_small", "too_many_steps"]


def not_finite(options: Options, before: float, t: float) -> SolverFailed:
    """A method of fixed steps has left the finite numbers."""
    return SolverFailed(
        f"{options.owner}: the solution must stay finite; got inf or nan between t = {before:g} "
        f"and t = {t:g}. Make `step` smaller, since too large a step of `{options.method}` also "
        "explodes on equations whose solution does not, or end before the solution does.",
        at=before,
    )


@torch.no_grad()
def step_too_small(options: Options, t: float, times: Sequence[float], y: Tensor) -> SolverFailed:
    """An adaptive method was driven to steps that rounding swallows."""
    largest = float(y.abs().max())
    if largest > 1e6:
        cause = f"the solution blows up (largest |y| is {largest:.2g})"
        remedy = f"End before t = {t:g}, or check the sign and the parameters of `f`"
    else:
        cause = "`f` jumps, is not a finite number, or changes faster than time can resolve"
        remedy = "Split the integration where `f` jumps, or loosen `rtol` and `atol`"
    return SolverFailed(
        f"{options.owner}: the solution must be smooth from t = {times[0]:g} to {times[-1]:g}; "
        f"got a step that shrinks to nothing at t = {t:g}: {cause}. {remedy}.",
        at=t,
    )


def too_many_steps(
    options: Options,
    t: float,
    times: Sequence[float],
    state: tuple[Tensor, Tensor, Field] | None,
) -> SolverFailed:
    """The limit of steps is reached; ``state`` shows the stiffness."""
    rate = stiffness(t, *state) if state else 0.0
    left = abs(times[-1] - t)
    if rate * left > options.max_steps:
        cause = f"the equation is stiff there (rates up to about {rate:.2g} a unit of time)"
        implicit = options.method == "radau"
        other = "Raise `max_steps`" if implicit else 'Use the implicit `method="radau"`'
        remedy = f"{other}, rescale the fast variables, or loosen `rtol`"
    else:
        cause = "the steps are too small for the span"
        remedy = "Raise `max_steps`, loosen `rtol`" + (
            " or take a larger `step`" if options.step else " or shorten the span of `t`"
        )
    return SolverFailed(
        f"{options.owner}: `max_steps` must suffice from t = {times[0]:g} to {times[-1]:g}; got "
        f"{options.max_steps:,} steps at t = {t:g}: {cause}. {remedy}.",
        at=t,
    )


@torch.no_grad()
def stiffness(t: float, y: Tensor, f: Tensor, field: Field) -> float:
    """Estimate the largest rate of the equation, |df/dy|, by a few steps of power iteration."""
    direction = f + torch.finfo(f.dtype).tiny
    size = float(torch.linalg.vector_norm(y)) + 1.0
    eps = size * float(torch.finfo(y.dtype).eps) ** 0.5
    rate = 0.0
    for _ in range(8):
        direction = direction / torch.linalg.vector_norm(direction)
        direction = (field.at(t, y + eps * direction) - f) / eps
        rate = float(torch.linalg.vector_norm(direction))
        if not 0.0 < rate < float("inf"):
            return 0.0
    return rate
