"""Events: the integration ends where one of some functions g(t, y) passes through zero.

The time t* of the event moves with everything the solution depends on: from g(t*, y(t*)) = 0,
dt* = -dg / (dg/dt + dg/dy f), the implicit function theorem. One Newton step from t*, its
denominator held constant, has that derivative and leaves the value where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from scipy.optimize import brentq
from torch import Tensor

from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.ode_step import Step
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch

__all__ = ["Event", "Events", "Happened", "move_with_event", "read_events", "up_to", "watch"]

Function = Callable[[Tensor, Any], Tensor]
Events = Function | Sequence[Function]


@dataclass(frozen=True)
class Event:
    """A function whose zeros end the integration, and the way it must pass through them."""

    function: Function
    direction: int = 0


@dataclass(frozen=True)
class Happened:
    """When the integration ended, and by which event."""

    time: float
    index: int


def read_events(event: Events, direction: int | Sequence[int], owner: str) -> list[Event]:
    """Return functions and directions in pairs."""
    functions = [event] if callable(event) else list(event)
    ways = [direction] * len(functions) if isinstance(direction, int) else list(direction)
    if not functions or not all(map(callable, functions)):
        raise InvalidParameter(
            f"{owner}: `event` must be a function g(t, y) or a list of them; got {event!r}."
        )
    if len(ways) != len(functions) or not set(ways) <= {-1, 0, 1}:
        raise InvalidParameter(
            f"{owner}: `direction` must be 1, -1 or 0, or one of these for each event "
            f"({len(functions)}); got {direction!r}."
        )
    return [Event(*pair) for pair in zip(functions, ways, strict=True)]


class Sign:
    """Reads the sign of g at the end of every step and finds the zero inside one."""

    def __init__(self, event: Event, field: Field) -> None:
        self.event, self.field = event, field
        self.before: float | None = None

    @torch.no_grad()
    def change(self, step: Step) -> float | None:
        """Return the time of the event if it lies in the step."""
        if self.before is None:
            self.before = self._value(step.t0, step.y0)
        before, after = self.before, self._value(step.t1, step.y1)
        self.before = after
        if before == 0 or before * after > 0:  # a zero at the very start is where we come from
            return None
        if (after - before) * self.event.direction < 0:
            return None
        return float(brentq(lambda t: self._inside(step, t), step.t0, step.t1, xtol=1e-14))

    def _inside(self, step: Step, t: float) -> float:
        return self._value(t, step.at([t], self.field)[0])

    def _value(self, t: float, y: Tensor) -> float:
        value = torch.as_tensor(self.event.function(y.new_tensor(t), self.field.packing.unpack(y)))
        if value.numel() != 1:
            raise ShapeMismatch(
                f"odeint: `event(t, y)` must be one number, since the batch shares its time; got "
                f"shape {tuple(value.shape)}. Reduce it, for example with `.min()`."
            )
        return float(value)


def watch(
    steps: Iterable[Step], events: Sequence[Event], field: Field
) -> tuple[list[Step], Happened | None]:
    """Return the steps up to the one in which the first event happens, and that event."""
    signs = [Sign(event, field) for event in events]
    kept: list[Step] = []
    for step in steps:
        kept.append(step)
        times = [(sign.change(step), i) for i, sign in enumerate(signs)]
        found = [Happened(time, i) for time, i in times if time is not None]
        if found:
            return kept, min(found, key=lambda happened: abs(happened.time - step.t0))
    return kept, None


def up_to(happened: float, t: Tensor, times: list[float]) -> tuple[Tensor, list[float]]:
    """Return the output times before the event, followed by that of the event."""
    direction = times[-1] - times[0]
    before = [x for x in times if (happened - x) * direction > 0]
    return torch.cat([t[: len(before)], t.new_tensor([happened])]), [*before, happened]


def move_with_event(event: Function, field: Field, t: float, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return time () and state (N,) of the event with the gradients of the implicit function.

    ``y`` is the state at the fixed time t and carries the gradients of the solution there.
    """
    unpack = field.packing.unpack

    def g(time: Tensor, state: Tensor) -> Tensor:
        return torch.as_tensor(event(time, unpack(state))).reshape(())

    time = y.new_tensor(t)
    value = g(time, y)
    if not value.requires_grad:
        return time, y
    slope = field(time, y.detach()).detach()
    by_time, by_state = time.clone().requires_grad_(), y.detach().requires_grad_()
    parts = torch.autograd.grad(g(by_time, by_state), (by_time, by_state), materialize_grads=True)
    rate = parts[0] + parts[1] @ slope
    if rate == 0:
        raise InvalidData(
            f"odeint: `event(t, y)` must cross zero with a slope for its time to have a gradient; "
            f"got a slope of 0 at t = {t:g}."
        )
    moved = time - (value - value.detach()) / rate
    return moved, y + (moved - time) * slope
