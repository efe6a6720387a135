"""``odeint``: solve an initial-value problem and differentiate its solution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from castalia.autodiff.flat_vector import Packing
from castalia.autodiff.ode.adjoint import Problem, odeint_adjoint
from castalia.autodiff.ode.control import build_norm
from castalia.autodiff.ode.events import (
    Event,
    Events,
    move_with_event,
    read_events,
    up_to,
    watch,
)
from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.integrate import build_integrator, sample
from castalia.autodiff.ode.options import Options, read_times
from castalia.errors import InvalidParameter

__all__ = ["odeint"]


def odeint(
    f: Callable[[Tensor, Any], Any],
    y0: Any,
    t: Tensor | Sequence[float],
    method: str = "dopri5",
    adjoint: bool = True,
    *,
    parameters: Iterable[Tensor] | None = None,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    step: float | None = None,
    order: int = 4,
    norm: str = "rms",
    seminorm: bool = True,
    max_steps: int = 10_000,
    event: Events | None = None,
    direction: int | Sequence[int] = 0,
) -> Any:
    """Solve dy/dt = f(t, y), y(t_0) = y_0, and return the states at the times ``t``.

    Gradients reach the initial state, the parameters of ``f`` and the times. With ``adjoint`` they
    come from a second equation that runs backwards, in memory that does not grow with the number
    of steps; without, from autograd through the solver's steps, which is exact for the discrete
    solution, can be differentiated again, and keeps every step. Prefer ``adjoint=False`` where the
    equation contracts strongly: backwards in time, the same equation expands. With ``"radau"``
    they go back through the kept states of the steps in either case, and can be taken once.

    Parameters
    ----------
    f
        The right-hand side: a function or module of the time, a tensor (), and the state; returns
        the derivative in the shape of the state.
    y0
        The state at ``t[0]``: a tensor, or a tuple, list or dict of tensors, of any shape, real or
        complex; a batch is solved as one system.
    t
        Output times (T,), strictly increasing or decreasing; the first belongs to ``y0``.
    method
        ``"dopri5"``: Dormand–Prince 5(4) with steps chosen by their error, outputs interpolated.
        ``"euler"``, ``"midpoint"``, ``"rk4"``: fixed steps. ``"adams_bashforth"``,
        ``"adams_moulton"``: linear multistep with fixed steps, the second with a corrector.
        ``"radau"``: implicit, of order 5, for stiff equations, whose rates differ by far; solves
        systems with the Jacobian df/dy, N x N numbers for a state of N.
    adjoint
        Whether gradients come from the adjoint equation or through the solver.
    parameters
        Tensors inside ``f`` that the adjoint differentiates by. By default a module's parameters
        and every leaf in the graph of ``f(t[0], y0)``. Name them where ``f`` uses one only later,
        or where it uses a tensor computed beforehand, which is then not computed back every step.
    rtol, atol
        An adaptive step may err by ``atol + rtol |y|``; smaller is slower.
    step
        Fixed methods: the largest step; the span between two output times is divided evenly, and
        is one step by default. Adaptive methods: the first step.
    order
        Order of the Adams methods, 1 to 4.
    norm
        How the errors of a batch become one number: ``"rms"`` over everything, or ``"max"``, the
        worst sample's RMS, which keeps a rare difficult sample accurate and takes more steps.
    seminorm
        Leave the parameters' part out of the adjoint's error norm. Nothing depends on that part,
        so it needs no control of its own; including it takes more steps.
    max_steps
        Steps, with rejected ones, before the integration is given up.
    event
        A function g(t, y) of one number, or several functions. The integration ends where the first
        of them passes through zero, and the result is a pair: the times before the event and its
        own (T',), and the states there. Both carry gradients, by the implicit function theorem. A
        zero is seen when the sign differs between two steps.
    direction
        1 where g must rise through zero on the way, -1 where it must fall, 0 for both; one for
        each event where they differ.

    Returns
    -------
    The states: y0's structure, each tensor with a leading dimension of T. With ``event``, a pair of
    times and states.

    Notes
    -----
    The gradients to the times are those of the equation, a f, also when ``adjoint`` is off.
    An event is looked for first, without gradients; then the solution up to it is computed again.

    Examples
    --------
    >>> rate = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    >>> y = odeint(lambda t, y: -rate * y, torch.ones(1, dtype=torch.float64), [0.0, 0.5, 1.0])
    >>> y[:, 0].detach().numpy().round(4).tolist()
    [1.0, 0.3679, 0.1353]
    >>> y[-1, 0].backward()
    >>> round(rate.grad.item(), 4)  # d/dr exp(-r) at r = 2
    -0.1353
    """
    options = Options(method, rtol, atol, step, order, norm, max_steps)
    packing = Packing(y0, "odeint", "y0")
    options.check(packing.dtype)
    inside = None if parameters is None else _tensors(parameters)
    flat, field = packing.pack(y0), Field(f, packing, inside)
    t, times = read_times(t, flat, "odeint")
    problem = Problem(field, times, options, build_norm(norm, packing), seminorm)
    if event is None:
        return packing.unpack(_states(problem, t, flat, adjoint))
    t, states = _until(read_events(event, direction, "odeint"), problem, t, flat, adjoint)
    return t, packing.unpack(states)


def _tensors(parameters: Iterable[Tensor]) -> list[Tensor]:
    found = list(parameters.parameters() if isinstance(parameters, nn.Module) else parameters)
    wrong = next((p for p in found if not isinstance(p, Tensor)), None)
    if wrong is not None:
        raise InvalidParameter(
            f"odeint: `parameters` must be tensors; got {type(wrong).__name__} among them."
        )
    return found


def _states(problem: Problem, t: Tensor, y0: Tensor, adjoint: bool) -> Tensor:
    """Return the states (T, N) with the gradients that were asked for."""
    implicit = problem.options.method == "radau"  # backwards, what is stiff explodes
    if not adjoint or implicit or not torch.is_grad_enabled():
        return _through_the_solver(problem, t, y0)
    return odeint_adjoint(problem, t, y0, problem.field.tensors(problem.times[0], y0))


def _through_the_solver(problem: Problem, t: Tensor, y0: Tensor) -> Tensor:
    """Integrate and let autograd record; the times enter by the slopes at the outputs."""
    field, times = problem.field, problem.times
    start = y0
    if t.requires_grad:  # a later start is an earlier point of the same trajectory
        start = y0 - _without_value(t[0]).to(y0) * field.at(times[0], y0)
    integrator = build_integrator(problem.options, field, start, problem.norm)
    states = sample(integrator.run(times, start), times, start, field)
    if not t.requires_grad:
        return states
    slopes = torch.stack([field.at(*at) for at in zip(times[1:], states[1:], strict=True)])
    later = states[1:] + _without_value(t[1:]).to(y0)[:, None] * slopes
    return torch.cat([y0[None], later])


def _without_value(x: Tensor) -> Tensor:
    """Return zeros that have the gradient of x."""
    return x - x.detach()


def _until(
    events: list[Event], problem: Problem, t: Tensor, y0: Tensor, adjoint: bool
) -> tuple[Tensor, Tensor]:
    """Return the times (T',) up to the first event and the states (T', N) there."""
    field = problem.field
    with torch.no_grad():
        search = build_integrator(problem.options, field, y0, problem.norm, keep=True)
        _, happened = watch(search.run(problem.times, y0.detach()), events, field)
    if happened is None:
        return t, _states(problem, t, y0, adjoint)
    fixed, times = up_to(happened.time, t, problem.times)
    states = _states(replace(problem, times=times), fixed, y0, adjoint)
    g = events[happened.index].function
    time, last = move_with_event(g, field, happened.time, states[-1])
    return torch.cat([fixed[:-1], time.to(t)[None]]), torch.cat([states[:-1], last[None]])
