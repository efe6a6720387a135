"""``solve``: an integration kept whole, with dense output and statistics."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from castalia.autodiff.flat_vector import Packing
from castalia.autodiff.ode.control import build_norm
from castalia.autodiff.ode.events import Events, Happened, read_events, up_to, watch
from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.integrate import build_integrator, sample
from castalia.autodiff.ode.ode_step import Step
from castalia.autodiff.ode.options import Options, read_times
from castalia.errors import InvalidData

__all__ = ["ODESolution", "ODEStats", "solve"]


@dataclass(frozen=True)
class ODEStats:
    """What an integration cost.

    Attributes
    ----------
    steps, rejected
        Accepted steps, and attempts thrown away because their error was too large.
    evaluations
        Calls of ``f``.
    """

    steps: int
    rejected: int
    evaluations: int


class ODESolution:
    """A solution that can be evaluated at any time of its span.

    Attributes
    ----------
    t, y
        The output times (T,) and the states there (T, …); after an event, the times before it and
        the event itself.
    stats
        What it cost.
    event_time, event_index
        Where an event ended the integration, and which of those given it was; or None.
    """

    def __init__(
        self,
        t: Tensor,
        y: Any,
        stats: ODEStats,
        happened: Happened | None,
        steps: list[Step],
        field: Field,
    ) -> None:
        self.t, self.y, self.stats = t, y, stats
        self.event_time = None if happened is None else happened.time
        self.event_index = None if happened is None else happened.index
        self._steps, self._field = steps, field
        self._first = steps[0].t0
        self._last = steps[-1].t1 if happened is None else happened.time
        self._sign = math.copysign(1.0, self._last - self._first)
        self._ends = [self._sign * step.t1 for step in steps]

    def __call__(self, t: float | Tensor | Sequence[float]) -> Any:
        """Return the state at one time, or the states (T, …) at several."""
        times = torch.as_tensor(t, dtype=torch.float64)
        flat: list[float] = times.reshape(-1).tolist()
        rows: list[Tensor] = [torch.empty(0)] * len(flat)
        for place, inside in self._by_step(flat).items():
            states = self._steps[place].at([flat[i] for i in inside], self._field)
            for i, state in zip(inside, states, strict=True):
                rows[i] = state
        states = torch.stack(rows).unflatten(0, times.shape) if times.ndim else rows[0]
        return self._field.packing.unpack(states)

    def _by_step(self, times: list[float]) -> dict[int, list[int]]:
        """Return, for every step that is needed, the positions of the times inside it."""
        found: dict[int, list[int]] = {}
        for i, t in enumerate(times):
            if not self._sign * self._first <= self._sign * t <= self._sign * self._last:
                raise InvalidData(
                    f"ODESolution: `t` must lie between {self._first:g} and {self._last:g}, where "
                    f"it was solved; got {t:g}."
                )
            place = bisect_left(self._ends, self._sign * t)
            found.setdefault(place, []).append(i)
        return found

    def __repr__(self) -> str:
        return f"ODESolution(t={self._first:g} to {self._last:g}, {self.stats})"


def solve(
    f: Callable[[Tensor, Any], Any],
    y0: Any,
    t: Tensor | Sequence[float],
    method: str = "dopri5",
    *,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    step: float | None = None,
    order: int = 4,
    norm: str = "rms",
    max_steps: int = 10_000,
    event: Events | None = None,
    direction: int | Sequence[int] = 0,
) -> ODESolution:
    """Solve dy/dt = f(t, y) and keep all of it: dense output, statistics, an event.

    The parameters are those of :func:`odeint`. Gradients, where they are recorded, go through the
    solver; its interpolation is differentiable too.

    Parameters
    ----------
    f
        The right-hand side f(t, y).
    y0
        The state at ``t[0]``: a tensor, or a tuple, list or dict of tensors.
    t
        Output times, at least the two ends, increasing or decreasing.
    method
        See :func:`odeint`.
    rtol, atol
        Error allowed in a step.
    step
        Largest step of a fixed method; first step of an adaptive one.
    order
        Order of the Adams methods.
    norm
        ``"rms"`` or ``"max"``.
    max_steps
        Steps before the integration is given up.
    event
        A function g(t, y) of one number, or several; the integration ends where the first of them
        passes through zero.
    direction
        1 where g must rise through zero, -1 where it must fall, 0 for both; or one for each.

    Examples
    --------
    >>> solution = solve(lambda t, y: -y, torch.ones(1, dtype=torch.float64), [0.0, 5.0])
    >>> round(solution(1.0).item(), 5)
    0.36788
    >>> solution.stats.rejected
    0
    """
    options = Options(method, rtol, atol, step, order, norm, max_steps, owner="solve")
    packing = Packing(y0, "solve", "y0")
    options.check(packing.dtype)
    flat, field = packing.pack(y0), Field(f, packing)
    tensor, times = read_times(t, flat, "solve")
    integrator = build_integrator(options, field, flat, build_norm(norm, packing), keep=True)
    events = [] if event is None else read_events(event, direction, "solve")
    steps, happened = watch(integrator.run(times, flat), events, field)
    if happened is not None:
        tensor, times = up_to(happened.time, tensor, times)
    states = packing.unpack(sample(steps, times, flat, field))
    stats = ODEStats(integrator.steps, integrator.rejected, field.evaluations)
    return ODESolution(tensor, states, stats, happened, steps, field)
