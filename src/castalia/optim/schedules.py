"""Learning-rate schedules: pure functions of the step, so a resumed training continues them exactly.

A schedule gives a factor for the base rate at step k of K.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "SCHEDULES",
    "Schedule",
    "build_schedule",
    "constant",
    "cosine",
    "exponential",
    "inverse_sqrt",
    "linear_decay",
    "step",
    "warmup",
]


@dataclass(frozen=True)
class Schedule:
    """A named factor of the learning rate over the steps.

    Calling it with step k and the total number of steps gives the factor.
    """

    name: str
    factor: Callable[[int, int], float] = field(repr=False)  # its repr differs between processes

    def __call__(self, k: int, total: int) -> float:
        return self.factor(k, max(total, 1))


def constant() -> Schedule:
    """The base rate throughout."""
    return Schedule("constant", lambda k, total: 1.0)


def linear_decay(tau: float = 1.0, floor: float = 0.01) -> Schedule:
    """(1 - a) + a floor with a = min(k / tau, 1): a straight line down to ``floor``, then flat.

    Parameters
    ----------
    tau
        Step where the floor is reached; a number up to 1 is a fraction of the training.
    floor
        Final factor.

    Examples
    --------
    >>> rate = linear_decay(tau=100)
    >>> [round(0.1 * rate(k, 1000), 4) for k in (0, 50, 100, 150)]
    [0.1, 0.0505, 0.001, 0.001]
    """

    def factor(k: int, total: int) -> float:
        a = min(k / _steps(tau, total), 1.0)
        return (1 - a) + a * floor

    return Schedule(f"linear_decay(tau={tau}, floor={floor})", factor)


def step(every: float = 1 / 3, factor: float = 0.1) -> Schedule:
    """Multiply by ``factor`` after each ``every`` steps (a fraction of the training when at most 1)."""
    return Schedule(
        f"step(every={every}, factor={factor})",
        lambda k, total: factor ** (k // _steps(every, total)),
    )


def exponential(final: float = 0.01) -> Schedule:
    """Fall geometrically to ``final`` at the end."""
    return Schedule(f"exponential(final={final})", lambda k, total: final ** (k / total))


def cosine(floor: float = 0.0) -> Schedule:
    """Half a cosine from 1 to ``floor``."""
    return Schedule(
        f"cosine(floor={floor})",
        lambda k, total: floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(k / total, 1))),
    )


def inverse_sqrt(tau: float = 0.05) -> Schedule:
    """Constant for ``tau`` steps, then falling as sqrt(tau / k)."""
    return Schedule(
        f"inverse_sqrt(tau={tau})",
        lambda k, total: math.sqrt(_steps(tau, total) / max(k, _steps(tau, total))),
    )


def warmup(schedule: Schedule, steps: float = 0.05) -> Schedule:
    """Rise linearly over the first ``steps`` (a fraction when at most 1), then follow another schedule.

    >>> rate = warmup(cosine(), steps=10)
    >>> [round(rate(k, 100), 2) for k in (0, 4, 9)]
    [0.1, 0.5, 0.98]
    """

    def factor(k: int, total: int) -> float:
        return min((k + 1) / _steps(steps, total), 1.0) * schedule(k, total)

    return Schedule(f"warmup({schedule.name}, steps={steps})", factor)


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "constant": constant,
    "linear_decay": linear_decay,
    "step": step,
    "exponential": exponential,
    "cosine": cosine,
    "inverse_sqrt": inverse_sqrt,
    "warmup_cosine": lambda: warmup(cosine()),
    "warmup_linear": lambda: warmup(linear_decay()),
}


def build_schedule(kind: Any) -> Schedule:
    """Return a schedule from None, a name, a ``Schedule`` or a callable ``(step, total) -> factor``."""
    if kind is None:
        return constant()
    if isinstance(kind, Schedule):
        return kind
    if callable(kind):
        return Schedule(getattr(kind, "__name__", "custom"), kind)
    if kind not in SCHEDULES:
        raise InvalidParameter(
            f"Training: `schedule` must be {listing(SCHEDULES)}, a Schedule or None; got {kind!r}."
            f"{did_you_mean(str(kind), SCHEDULES)}"
        )
    return SCHEDULES[kind]()


def _steps(amount: float, total: int) -> int:
    """Turn a fraction of the training, or a number of steps, into steps."""
    return max(1, round(amount * total)) if amount <= 1 else int(amount)
