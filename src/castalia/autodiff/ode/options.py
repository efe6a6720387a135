"""How an equation is to be integrated, checked before the first evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from castalia.autodiff.ode.tableaux import ADAMS_BASHFORTH
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.utils.text import did_you_mean, listing, shorten

__all__ = ["METHODS", "NORMS", "Options", "read_times"]

METHODS = ("dopri5", "radau", "rk4", "midpoint", "euler", "adams_bashforth", "adams_moulton")
NORMS = ("rms", "max")


@dataclass(frozen=True)
class Options:
    """The settings that ``odeint`` and ``solve`` share; their docstrings explain them."""

    method: str = "dopri5"
    rtol: float = 1e-6
    atol: float = 1e-8
    step: float | None = None
    order: int = 4
    norm: str = "rms"
    max_steps: int = 10_000
    owner: str = "odeint"

    def check(self, dtype: torch.dtype) -> None:
        """Refuse settings that cannot work for states of this type."""
        self._member("method", self.method, METHODS)
        self._member("norm", self.norm, NORMS)
        self._member("order", self.order, tuple(ADAMS_BASHFORTH))
        least = 4 * torch.finfo(dtype).eps
        if not self.rtol >= least:
            raise InvalidParameter(
                f"{self.owner}: `rtol` must be at least {least:.1e} for {dtype}, whose rounding "
                f"hides smaller errors; got {self.rtol!r}. Use float64 for a finer tolerance."
            )
        if not 0 <= self.atol < math.inf:
            raise InvalidParameter(f"{self.owner}: `atol` must be at least 0; got {self.atol!r}.")
        if self.step is not None and not 0 < self.step < math.inf:
            raise InvalidParameter(
                f"{self.owner}: `step` must be a positive number or None; got {self.step!r}. "
                "Its direction follows from `t`."
            )
        if self.max_steps < 1:
            raise InvalidParameter(
                f"{self.owner}: `max_steps` must be at least 1; got {self.max_steps!r}."
            )

    def _member(self, name: str, value: Any, known: tuple) -> None:
        if value not in known:
            raise InvalidParameter(
                f"{self.owner}: `{name}` must be {listing(known)}; got {value!r}."
                f"{did_you_mean(str(value), map(str, known))}"
            )


def read_times(t: Tensor | Sequence[float], like: Tensor, owner: str) -> tuple[Tensor, list[float]]:
    """Return the times as a tensor (T,) beside the state and as float64 numbers."""
    given = isinstance(t, Tensor)
    try:
        times = torch.as_tensor(t) if given else torch.as_tensor(t, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidData(f"{owner}: `t` must be a row of numbers; got {shorten(t)}.") from None
    if times.ndim != 1 or len(times) < 2:
        raise ShapeMismatch(
            f"{owner}: `t` must be one row of at least two times; got shape {tuple(times.shape)}."
        )
    numbers: list[float] = times.detach().double().tolist()
    if not all(map(math.isfinite, numbers)):
        raise InvalidData(f"{owner}: `t` must hold finite numbers; got {numbers}.")
    direction = numbers[-1] - numbers[0]
    for i, (a, b) in enumerate(zip(numbers, numbers[1:], strict=False)):
        if (b - a) * direction <= 0:
            raise InvalidData(
                f"{owner}: `t` must be strictly increasing or strictly decreasing; got "
                f"t[{i}] = {a:g} before t[{i + 1}] = {b:g}. Sort the times and drop repetitions."
            )
    return times if given and times.is_floating_point() else times.to(like), numbers
