"""Learning-rate schedules: pure functions of the step, so a resumed training goes on exactly.

A schedule gives a factor for the base rate at step k of K.
"""

import math
from collections.abc import Callable, Mapping
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
    """A factor of the learning rate over the steps: a name and its arguments, so it can be saved.

    Calling it with step k and the total number of steps gives the factor.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, k: int, total: int) -> float:
        """Return the factor at step k of total."""
        return FACTORS[self.name](k, max(total, 1), **self.arguments)


def constant() -> Schedule:
    """Keep the base rate throughout."""
    return Schedule("constant")


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
    return Schedule("linear_decay", {"tau": tau, "floor": floor})


def step(every: float = 1 / 3, factor: float = 0.1) -> Schedule:
    """Multiply by ``factor`` after each ``every`` steps (a fraction when at most 1)."""
    return Schedule("step", {"every": every, "factor": factor})


def exponential(final: float = 0.01) -> Schedule:
    """Fall geometrically to ``final`` at the end."""
    return Schedule("exponential", {"final": final})


def cosine(floor: float = 0.0) -> Schedule:
    """Follow half a cosine from 1 to ``floor``."""
    return Schedule("cosine", {"floor": floor})


def inverse_sqrt(tau: float = 0.05) -> Schedule:
    """Stay for ``tau`` steps, then fall as sqrt(tau / k)."""
    return Schedule("inverse_sqrt", {"tau": tau})


def warmup(schedule: Schedule, steps: float = 0.05) -> Schedule:
    """Rise linearly over the first ``steps`` (a fraction when at most 1), then follow another.

    >>> rate = warmup(cosine(), steps=10)
    >>> [round(rate(k, 100), 2) for k in (0, 4, 9)]
    [0.1, 0.5, 0.98]
    """
    return Schedule("warmup", {"schedule": schedule, "steps": steps})


def _linear_decay(k: int, total: int, tau: float, floor: float) -> float:
    a = min(k / _steps(tau, total), 1.0)
    return (1 - a) + a * floor


def _cosine(k: int, total: int, floor: float) -> float:
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(k / total, 1)))


def _inverse_sqrt(k: int, total: int, tau: float) -> float:
    flat = _steps(tau, total)
    return math.sqrt(flat / max(k, flat))


def _warmup(k: int, total: int, schedule: Schedule, steps: float) -> float:
    return min((k + 1) / _steps(steps, total), 1.0) * schedule(k, total)


FACTORS: dict[str, Callable[..., float]] = {
    "constant": lambda k, total: 1.0,
    "linear_decay": _linear_decay,
    "step": lambda k, total, every, factor: factor ** (k // _steps(every, total)),
    "exponential": lambda k, total, final: final ** (k / total),
    "cosine": _cosine,
    "inverse_sqrt": _inverse_sqrt,
    "warmup": _warmup,
    "custom": lambda k, total, function: function(k, total),
}


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
    """Return a schedule from None, a name, a ``Schedule`` or a callable of step and total."""
    if kind is None:
        return constant()
    if isinstance(kind, Schedule):
        return kind
    if callable(kind):
        return Schedule("custom", {"function": kind})
    if kind not in SCHEDULES:
        raise InvalidParameter(
            f"Training: `schedule` must be {listing(SCHEDULES)}, a Schedule or None; got {kind!r}."
            f"{did_you_mean(str(kind), SCHEDULES)}"
        )
    return SCHEDULES[kind]()


def _steps(amount: float, total: int) -> int:
    """Turn a fraction of the training, or a number of steps, into steps."""
    return max(1, round(amount * total)) if amount <= 1 else int(amount)
