"""Learning-rate schedules: pure functions, so a resumed training goes on exactly.

A schedule gives a factor for the base rate at step k of K. One that reads the losses
(``plateau``) has a second factor, a function of the losses of the epochs so far.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import lr_scheduler

from castalia.errors import InvalidParameter
from castalia.optim.torch_names import required_arguments, torch_scheduler, unpacked
from castalia.utils.text import did_you_mean, listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "SCHEDULES",
    "Schedule",
    "build_schedule",
    "constant",
    "cosine",
    "cyclic",
    "exponential",
    "inverse_sqrt",
    "inverse_time",
    "linear_decay",
    "named_schedule",
    "one_cycle",
    "plateau",
    "step",
    "warmup",
]


@dataclass(frozen=True)
class Schedule:
    """A factor of the learning rate over the steps: a name and its arguments, so it can be saved.

    Calling it with step k and the total number of steps gives the factor. The rate in use is the
    base rate times this factor times ``drop`` of the losses so far.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, k: int, total: int) -> float:
        """Return the factor at step k of total."""
        return FACTORS[self.name](k, max(total, 1), **self.arguments)

    @property
    def follows_losses(self) -> bool:
        """Whether ``drop`` can be anything but 1."""
        inner = self.arguments.get("schedule")
        return self.name == "plateau" or (isinstance(inner, Schedule) and inner.follows_losses)

    def drop(self, losses: Sequence[float]) -> float:
        """Return the further factor that the losses of the finished epochs ask for.

        It is 1 but for ``plateau`` and a warm-up of it.
        """
        if self.name == "warmup":
            return float(self.arguments["schedule"].drop(losses))
        return _drop(losses, **self.arguments) if self.name == "plateau" else 1.0

    def plot(self, total: int = 1000, lr: float = 1.0, ax: Axes | None = None) -> Axes:
        """Draw the rate over the steps; return the axes.

        Parameters
        ----------
        total
            Steps of the training.
        lr
            The base rate.
        ax
            Where to draw; None: on a new figure.
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(layout="constrained").add_subplot()
        ax.plot(range(total), [lr * self(k, total) for k in range(total)])
        ax.set(xlabel="step", ylabel="learning rate" if lr != 1.0 else "factor of the rate")
        ax.set_ylim(bottom=0)
        return ax


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
    _require("linear_decay", "tau", tau, 0, math.inf, open_below=True)
    _require("linear_decay", "floor", floor, 0, math.inf)
    return Schedule("linear_decay", {"tau": tau, "floor": floor})


def step(every: float = 1 / 3, factor: float = 0.1) -> Schedule:
    """Multiply by ``factor`` after each ``every`` steps (a fraction when at most 1)."""
    _require("step", "every", every, 0, math.inf, open_below=True)
    _require("step", "factor", factor, 0, math.inf, open_below=True)
    return Schedule("step", {"every": every, "factor": factor})


def exponential(final: float = 0.01) -> Schedule:
    """Fall geometrically to ``final`` at the end."""
    _require("exponential", "final", final, 0, math.inf, open_below=True)
    return Schedule("exponential", {"final": final})


def cosine(floor: float = 0.0) -> Schedule:
    """Follow half a cosine from 1 to ``floor``."""
    _require("cosine", "floor", floor, 0, math.inf)
    return Schedule("cosine", {"floor": floor})


def inverse_sqrt(tau: float = 0.05) -> Schedule:
    """Stay for ``tau`` steps, then fall as sqrt(tau / k)."""
    _require("inverse_sqrt", "tau", tau, 0, math.inf, open_below=True)
    return Schedule("inverse_sqrt", {"tau": tau})


def inverse_time(decay: float) -> Schedule:
    """Fall as 1 / (1 + decay k): the ``decay`` of old Keras optimizers.

    >>> [round(inverse_time(0.5)(k, 10), 3) for k in range(4)]
    [1.0, 0.667, 0.5, 0.4]
    """
    _require("inverse_time", "decay", decay, 0, math.inf)
    return Schedule("inverse_time", {"decay": decay})


def cyclic(period: float = 0.25, floor: float = 0.1, shrink: float = 1.0) -> Schedule:
    """Rise from ``floor`` to 1 and back in straight lines, again and again (Smith 2017).

    Parameters
    ----------
    period
        Steps of a cycle; a number up to 1 is a fraction of the training.
    floor
        Lowest factor.
    shrink
        Factor of the height of each cycle to that of the one before; 0.5 is "triangular2".

    References
    ----------
    2017, Smith, Cyclical learning rates for training neural networks, arXiv 1506.01186.

    Examples
    --------
    >>> [round(cyclic(period=4, floor=0.2)(k, 100), 2) for k in range(6)]
    [0.2, 0.6, 1.0, 0.6, 0.2, 0.6]
    """
    _require("cyclic", "period", period, 0, math.inf, open_below=True)
    _require("cyclic", "floor", floor, 0, 1)
    _require("cyclic", "shrink", shrink, 0, 1)
    return Schedule("cyclic", {"period": period, "floor": floor, "shrink": shrink})


def one_cycle(rise: float = 0.3, start: float = 0.04, floor: float = 4e-6) -> Schedule:
    """Rise from ``start`` to the base rate, then fall to ``floor``, each along half a cosine.

    The base rate is the peak, so it may be several times what a constant rate could be. Momentum
    stays as it is.

    Parameters
    ----------
    rise
        Steps of the first part; a number up to 1 is a fraction of the training.
    start, floor
        Factors at the first and at the last step.

    References
    ----------
    2018, Smith, Topin, Super-convergence, arXiv 1708.07120.

    Examples
    --------
    >>> [round(one_cycle(rise=0.3)(k, 11), 3) for k in (0, 1, 2, 6, 10)]
    [0.04, 0.52, 1.0, 0.5, 0.0]
    """
    _require("one_cycle", "rise", rise, 0, math.inf, open_below=True)
    _require("one_cycle", "start", start, 0, 1)
    _require("one_cycle", "floor", floor, 0, 1)
    return Schedule("one_cycle", {"rise": rise, "start": start, "floor": floor})


def plateau(
    factor: float = 0.1,
    patience: int = 5,
    threshold: float = 1e-4,
    cooldown: int = 0,
    floor: float = 0.0,
) -> Schedule:
    """Multiply by ``factor`` when the loss has not fallen for ``patience`` epochs.

    The loop reads the validation loss, or the training loss where nothing is held out. As the
    factor is a function of the losses in the history, a resumed training goes on exactly and all
    processes agree.

    Parameters
    ----------
    factor
        Of the rate at each drop.
    patience
        Epochs without a better loss before a drop; torch, which drops one epoch later, would
        call this ``patience - 1``.
    threshold
        Share of the best loss by which a better one must fall below it.
    cooldown
        Epochs after a drop that do not count.
    floor
        Lowest factor.

    Examples
    --------
    >>> plateau(factor=0.5, patience=2).drop([1.0, 0.8, 0.9, 0.8])
    0.5
    """
    _require("plateau", "factor", factor, 0, 1)
    _require("plateau", "patience", patience, 1, math.inf)
    _require("plateau", "threshold", threshold, 0, 1)
    _require("plateau", "cooldown", cooldown, 0, math.inf)
    _require("plateau", "floor", floor, 0, 1)
    arguments = {"factor": factor, "patience": patience, "threshold": threshold}
    return Schedule("plateau", {**arguments, "cooldown": cooldown, "floor": floor})


def warmup(schedule: Any, steps: float = 0.05) -> Schedule:
    """Rise linearly over the first ``steps`` (a fraction when at most 1), then follow another.

    The other may be anything that ``Training(schedule=…)`` takes.

    >>> rate = warmup(cosine(), steps=10)
    >>> [round(rate(k, 100), 2) for k in (0, 4, 9)]
    [0.1, 0.5, 0.98]
    """
    _require("warmup", "steps", steps, 0, math.inf)
    return Schedule("warmup", {"schedule": build_schedule(schedule), "steps": steps})


def _linear_decay(k: int, total: int, tau: float, floor: float) -> float:
    a = min(k / _steps(tau, total), 1.0)
    return (1 - a) + a * floor


def _cosine(k: int, total: int, floor: float) -> float:
    return _half_cosine(1.0, floor, k / total)


def _inverse_sqrt(k: int, total: int, tau: float) -> float:
    flat = _steps(tau, total)
    return math.sqrt(flat / max(k, flat))


def _cyclic(k: int, total: int, period: float, floor: float, shrink: float) -> float:
    cycle, place = divmod(k / _steps(period, total), 1.0)
    return floor + (1 - floor) * (1 - abs(2 * place - 1)) * shrink**cycle


def _one_cycle(k: int, total: int, rise: float, start: float, floor: float) -> float:
    peak = _steps(rise, total) - 1
    if k < peak:
        return _half_cosine(start, 1.0, k / peak)
    return _half_cosine(1.0, floor, (k - peak) / max(total - 1 - peak, 1))


def _drop(
    losses: Sequence[float],
    factor: float,
    patience: int,
    threshold: float,
    cooldown: int,
    floor: float,
) -> float:
    drop, best, stale, rest = 1.0, math.inf, 0, 0
    for loss in losses:
        better = loss < best - threshold * abs(best) if math.isfinite(best) else loss < best
        best, stale = (loss, 0) if better else (best, stale + 1)
        if rest:
            rest, stale = rest - 1, 0
        if stale >= patience:
            drop, stale, rest = max(drop * factor, floor), 0, cooldown
    return drop


def _half_cosine(first: float, last: float, a: float) -> float:
    """Go from ``first`` at a = 0 to ``last`` at a = 1, and stay there."""
    return last + (first - last) * 0.5 * (1 + math.cos(math.pi * min(a, 1.0)))


def _warmup(k: int, total: int, schedule: Schedule, steps: float) -> float:
    return min((k + 1) / _steps(steps, total), 1.0) * schedule(k, total)


FACTORS: dict[str, Callable[..., float]] = {
    "constant": lambda k, total: 1.0,
    "linear_decay": _linear_decay,
    "step": lambda k, total, every, factor: factor ** (k // _steps(every, total)),
    "exponential": lambda k, total, final: final ** (k / total),
    "cosine": _cosine,
    "inverse_sqrt": _inverse_sqrt,
    "inverse_time": lambda k, total, decay: 1 / (1 + decay * k),
    "cyclic": _cyclic,
    "one_cycle": _one_cycle,
    "plateau": lambda k, total, **looks_at_losses: 1.0,
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
    "cyclic": cyclic,
    "one_cycle": one_cycle,
    "plateau": plateau,
    "warmup_cosine": lambda: warmup(cosine()),
    "warmup_linear": lambda: warmup(linear_decay()),
}


def build_schedule(kind: Any) -> Schedule:
    """Return a schedule from None, a name, a name and arguments, a ``Schedule`` or a callable.

    Names are those of ``SCHEDULES`` and of torch's schedulers, in any case. A scheduler of torch is
    stepped once for each step of the training, and rates among its arguments are factors of the
    base rate. A callable takes the step and the number of steps.

    >>> rate = build_schedule(("StepLR", {"step_size": 2, "gamma": 0.5}))
    >>> [rate(k, 10) for k in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """
    kind = named_schedule(kind)
    if kind is None:
        return constant()
    if isinstance(kind, Schedule):
        return kind
    name, arguments = unpacked(kind)
    if isinstance(name, str) and name.lower() in MAKERS:
        return MAKERS[name.lower()](**arguments)
    if callable(kind):
        return Schedule("custom", {"function": kind})
    raise InvalidParameter(
        f"Training: `schedule` must be {listing(SCHEDULES)}, a Schedule, a scheduler of torch or "
        f"None; got {kind!r}.{did_you_mean(str(kind), SCHEDULES)}"
    )


def named_schedule(kind: Any) -> Any:
    """Return torch's schedulers as a ``Schedule``, which can be saved; all else as it is.

    What can never be followed is refused: one that belongs to another optimizer, one that follows
    losses, and functions that do not take the step and the number of steps.

    >>> named_schedule(("ExponentialLR", {"gamma": 0.9})).name
    'torch'
    """
    made, arguments = unpacked(kind)
    if isinstance(made, str) and made.lower() not in MAKERS:
        made = torch_scheduler(made) or made
    if isinstance(made, type) and issubclass(made, lr_scheduler.LRScheduler):
        return _of_torch(made, arguments)
    if isinstance(made, lr_scheduler.LRScheduler):
        raise InvalidParameter(
            f"Training: `schedule` must not belong to an optimizer, which the training makes "
            f"itself; got a {type(made).__name__}. Write ({type(made).__name__!r}, {{…}}) with its "
            "arguments."
        )
    if callable(kind) and not isinstance(kind, Schedule | type):
        _check_function(kind)
    return kind


def _of_torch(cls: type, arguments: dict[str, Any]) -> Schedule:
    if issubclass(cls, lr_scheduler.ReduceLROnPlateau):
        raise InvalidParameter(
            "Training: `schedule` must be a function of the step; got ReduceLROnPlateau, which "
            "follows losses. Use castalia.optim.plateau."
        )
    required_arguments(cls, arguments, "scheduler")
    return Schedule("torch", {"scheduler": cls.__name__, "arguments": arguments})


def _check_function(function: Callable[..., float]) -> None:
    try:
        signature(function).bind(0, 1)
    except TypeError:
        raise InvalidParameter(
            "Training: a function as `schedule` must take the step and the number of steps; got "
            f"{getattr(function, '__name__', function)!r}{signature(function)}."
        ) from None
    except ValueError:  # built-in functions do not say
        return


class _Replay:
    """A scheduler of torch beside an optimizer of one number, whose rates are the factors."""

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        self.optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0, momentum=0.9)
        made: Any = torch_scheduler(name)
        self.scheduler = made(self.optimizer, **arguments)
        self.rates = [float(self.optimizer.param_groups[0]["lr"])]

    def at(self, k: int) -> float:
        """Return the factor at step k; the last one where the scheduler has ended."""
        with suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while len(self.rates) <= k:
                self.scheduler.step()
                self.rates.append(float(self.optimizer.param_groups[0]["lr"]))
        return self.rates[min(k, len(self.rates) - 1)]


_REPLAYS: dict[str, _Replay] = {}


def _torch(k: int, total: int, scheduler: str, arguments: Mapping[str, Any]) -> float:
    key = f"{scheduler} {sorted(arguments.items())}"
    if key not in _REPLAYS:
        _REPLAYS[key] = _Replay(scheduler, arguments)
    return _REPLAYS[key].at(k)


FACTORS["torch"] = _torch
MAKERS: dict[str, Callable[..., Schedule]] = {**SCHEDULES, "inverse_time": inverse_time}


def _steps(amount: float, total: int) -> int:
    """Turn a fraction of the training, or a number of steps, into steps."""
    return max(1, round(amount * total)) if amount <= 1 else int(amount)


def _require(
    owner: str, name: str, value: Any, low: float, high: float, open_below: bool = False
) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and low <= value <= high and not (open_below and value == low):
        return
    rule = f"{'above' if open_below else 'at least'} {low:g}" + (
        f" and at most {high:g}" if math.isfinite(high) else ""
    )
    raise InvalidParameter(f"{owner}: `{name}` must be {rule}; got {value!r}.")
