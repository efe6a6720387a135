"""Stepping through time: equal steps between the output times, or steps chosen by their error.

Both integrators yield accepted steps; whoever consumes them samples outputs, keeps them for dense
output, or looks for an event. Shapes: N size of the state, T output times.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from castalia.autodiff.ode.adams import Adams
from castalia.autodiff.ode.control import Control, Norm
from castalia.autodiff.ode.failures import not_finite, step_too_small, too_many_steps
from castalia.autodiff.ode.field import Field
from castalia.autodiff.ode.ode_step import Step
from castalia.autodiff.ode.options import Options
from castalia.autodiff.ode.radau import ERROR_ORDER, Radau
from castalia.autodiff.ode.runge_kutta import RungeKutta
from castalia.autodiff.ode.tableaux import TABLEAUX

__all__ = ["Integrator", "build_integrator", "sample"]


class Method(Protocol):
    """What takes one step."""

    def restart(self) -> None:
        """Forget what earlier steps left."""

    def step(self, t: float, y: Tensor, f: Tensor, t1: float) -> Step:
        """Go from (t, y), where the derivative is f, to t1."""


class Integrator(Protocol):
    """What goes through all the times; counts its work."""

    steps: int
    rejected: int

    def run(self, times: Sequence[float], y: Tensor) -> Iterator[Step]:
        """Yield the accepted steps from the first time to the last."""


def build_integrator(
    options: Options, field: Field, y: Tensor, norm: Norm, keep: bool = False
) -> Integrator:
    """Return what the options ask for; ``keep`` makes every step own its memory."""
    if options.method == "radau":
        control = Control(options, norm, ERROR_ORDER, retreat=0.5)
        return Adaptive(options, field, Radau(field, y, control), control)
    tableau = TABLEAUX.get(options.method)
    if tableau is None:
        correct = options.method == "adams_moulton"
        return Fixed(options, field, Adams(options.order, field, y, correct))
    method = RungeKutta(tableau, field, y, keep)
    if tableau.error:
        return Adaptive(options, field, method, Control(options, norm, tableau.order))
    return Fixed(options, field, method)


@dataclass
class Fixed:
    """Equal steps of at most ``options.step`` between neighbouring output times."""

    options: Options
    field: Field
    method: Method
    steps: int = 0
    rejected: int = 0

    def run(self, times: Sequence[float], y: Tensor) -> Iterator[Step]:
        """Yield the steps; one between two times when no size is given."""
        self.method.restart()
        f: Tensor | None = self.field.first(times[0], y)
        for a, b in zip(times, times[1:], strict=False):
            n = 1 if self.options.step is None else math.ceil(abs(b - a) / self.options.step - 1e-6)
            for i in range(n):
                t, t1 = a + (b - a) * i / n, b if i == n - 1 else a + (b - a) * (i + 1) / n
                if self.steps >= self.options.max_steps:
                    raise too_many_steps(self.options, t, times, None)
                slope = self.field.at(t, y) if f is None else f
                step = self.method.step(t, y, slope, t1)
                self.steps += 1
                yield step
                y, f = step.y1, step.f1
            # one check at each output time: a non-finite state stays non-finite
            if not torch.isfinite(y).all():
                raise not_finite(self.options, a, b)


@dataclass
class Adaptive:
    """Steps as large as the tolerances allow."""

    options: Options
    field: Field
    method: Method
    control: Control
    steps: int = 0
    rejected: int = 0

    def run(self, times: Sequence[float], y: Tensor) -> Iterator[Step]:
        """Yield the accepted steps; the last ends at the last time exactly."""
        t, end = times[0], times[-1]
        self.method.restart()
        f = self.field.first(t, y)
        self.control.start(self.field, t, y, f, end - t)
        while t != end:
            step = self._accepted(t, y, f, times)
            yield step
            t, y = step.t1, step.y1
            f = self.field.at(t, y) if step.f1 is None else step.f1

    def _accepted(self, t: float, y: Tensor, f: Tensor, times: Sequence[float]) -> Step:
        """Try smaller and smaller steps until the error is small enough."""
        end, control, failed = times[-1], self.control, False
        while True:
            if self.steps + self.rejected >= self.options.max_steps:
                raise too_many_steps(self.options, t, times, (y, f, self.field))
            h, left = control.h or 0.0, abs(end - t)
            if h <= 16 * math.ulp(max(abs(t), abs(end))):
                raise step_too_small(self.options, t, times, y)
            # land on the end rather than leave a crumb before it
            t1 = end if 1.01 * h >= left else t + math.copysign(h, end - t)
            step = self.method.step(t, y, f, t1)
            ratio = control.ratio(step)
            if ratio <= 1.0:
                self.steps += 1
                control.accepted(abs(t1 - t), ratio, failed)
                if left < h:  # cut short by the end, not by its error
                    control.h = max(control.h or 0.0, h)
                return step
            self.rejected += 1
            failed = True
            control.rejected(abs(t1 - t), ratio)


def sample(steps: Iterable[Step], times: Sequence[float], y0: Tensor, field: Field) -> Tensor:
    """Return the states (T, N) at the output times, interpolated inside the steps."""
    found, done = [y0[None]], 1
    sign = math.copysign(1.0, times[-1] - times[0])
    ordered = [sign * t for t in times]
    for step in steps:
        reached = bisect_right(ordered, sign * step.t1, lo=done)
        if reached > done:
            found.append(step.at(times[done:reached], field))
            done = reached
    return torch.cat(found)
