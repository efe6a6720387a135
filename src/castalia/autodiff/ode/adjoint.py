"""Gradients of an ODE's solution by the adjoint equation, without keeping the solver's steps.

With a(t) = dL/dy(t), the adjoint runs backwards: da/dt = -a^T df/dy, and dL/dtheta collects
-a^T df/dtheta on the way. The state y is integrated backwards beside it, and set back to the
stored output at every output time, where a also jumps by the gradient given there.
For the times, dL/dt_i = g_i f(t_i, y_i), with g_i the gradient of output i, and
dL/dt_0 = -a(t_0) f(t_0, y_0): moving the start shifts the whole trajectory.

Shapes: N size of the state, P number of parameters, T output times.
Reference: 2018, Chen, Rubanova, Bettencourt, Duvenaud, Neural ordinary differential equations,
arXiv 1806.07366; 2021, Kidger, Chen, Lyons, "Hey, that's not an ODE", arXiv 2009.09457 (seminorm).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from castalia.autodiff.flat_vector import Packing
from castalia.autodiff.ode.control import Norm, rms
from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.integrate import build_integrator, sample
from castalia.autodiff.ode.options import Options

__all__ = ["Problem", "odeint_adjoint"]


@dataclass(frozen=True)
class Problem:
    """What the forward and the backward pass share."""

    field: Field
    times: list[float]
    options: Options
    norm: Norm
    seminorm: bool


def odeint_adjoint(problem: Problem, t: Tensor, y0: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """Return the states (T, N), whose gradients come from the adjoint equation."""
    states: Tensor = AdjointODE.apply(problem, t, y0, *parameters)
    return states


class AdjointODE(torch.autograd.Function):
    """Forward: the solver without recording. Backward: the adjoint equation."""

    @staticmethod
    def forward(ctx: Any, problem: Problem, t: Tensor, y0: Tensor, *parameters: Tensor) -> Tensor:
        integrator = build_integrator(problem.options, problem.field, y0, problem.norm)
        states = sample(integrator.run(problem.times, y0), problem.times, y0, problem.field)
        ctx.problem = problem
        ctx.save_for_backward(t, states, *parameters)
        return states

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        t, states, *parameters = ctx.saved_tensors
        wanted = [p for p, need in zip(parameters, ctx.needs_input_grad[3:], strict=True) if need]
        sweep = Backwards(ctx.problem, states, grad, wanted)
        a, collected = sweep.run(with_times=ctx.needs_input_grad[1])
        found = iter(collected)
        by_parameter = [next(found) if need else None for need in ctx.needs_input_grad[3:]]
        by_time = sweep.by_time.to(t) if ctx.needs_input_grad[1] else None
        return None, by_time, a, *by_parameter


class Backwards:
    """The augmented system (y, a, dL/dtheta) as one vector, from the last time to the first."""

    def __init__(
        self, problem: Problem, states: Tensor, grad: Tensor, parameters: list[Tensor]
    ) -> None:
        self.problem, self.states, self.grad, self.parameters = problem, states, grad, parameters
        self.n = states.shape[1]
        self.by_time = states.new_zeros(len(states))
        self.sizes = [_real(p).numel() for p in parameters]
        size = 2 * self.n + sum(self.sizes)
        self.start = states.new_zeros(size)
        self.field = Field(self.slope, Packing(self.start, problem.options.owner, "y0"))

    def slope(self, t: Tensor, state: Tensor) -> Tensor:
        """d/dt of (y, a, dL/dtheta): f, -a^T df/dy, -a^T df/dtheta, in one backward pass."""
        y, a = state[: self.n], state[self.n : 2 * self.n]
        with torch.enable_grad():
            y = y.detach().requires_grad_()
            f = self.problem.field(t, y)
            if not f.requires_grad:  # a constant slope
                return torch.cat([f, torch.zeros_like(state[self.n :])])
            # the graph may also hold what was computed before f was called: do not free that
            products = torch.autograd.grad(
                f,
                [y, *self.parameters],
                -a,
                allow_unused=True,
                retain_graph=True,
                materialize_grads=True,
            )
        return torch.cat([f.detach(), *(_real(p).reshape(-1) for p in products)])

    def run(self, with_times: bool) -> tuple[Tensor, Iterator[Tensor]]:
        """Return dL/dy_0 (N,) and dL/dtheta, each in its parameter's shape."""
        n, times, grad = self.n, self.problem.times, self.grad
        options = replace(self.problem.options, owner=f"{self.problem.options.owner} (adjoint)")
        state = self.start
        integrator = build_integrator(options, self.field, state, self.norm)
        for i in range(len(times) - 1, 0, -1):
            state = torch.cat([self.states[i], state[n : 2 * n] + grad[i], state[2 * n :]])
            for step in integrator.run([times[i], times[i - 1]], state):
                if with_times and step.t0 == times[i]:
                    self.by_time[i] = grad[i] @ step.f0[:n]
                state = step.y1
        a = state[n : 2 * n]
        if with_times:
            self.by_time[0] = -(a @ self.problem.field.at(times[0], self.states[0]))
        parts = state[2 * n :].split(self.sizes)
        shaped = (_like(part, p) for part, p in zip(parts, self.parameters, strict=True))
        return a + grad[0], shaped

    def norm(self, x: Tensor) -> Tensor:
        """Measure y and a; the parameters' part acts on neither, so it may be left out."""
        n, norm = self.n, self.problem.norm
        found = torch.maximum(norm(x[:n]), norm(x[n : 2 * n]))
        if self.problem.seminorm or not self.parameters:
            return found
        return torch.maximum(found, rms(x[2 * n :]))


def _real(x: Tensor) -> Tensor:
    """Return complex numbers as pairs of real ones."""
    return torch.view_as_real(x.resolve_conj()) if x.is_complex() else x


def _like(flat: Tensor, p: Tensor) -> Tensor:
    shaped = flat.view(_real(p).shape)
    return torch.view_as_complex(shaped.contiguous()) if p.is_complex() else shaped
