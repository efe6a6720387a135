"""Optimizers and schedulers of torch by their names, in any case, and as names with arguments."""

from __future__ import annotations

import functools
from inspect import Parameter, signature
from typing import Any

import torch
from torch.optim import Optimizer, lr_scheduler

from castalia.errors import InvalidParameter
from castalia.utils.text import listing

__all__ = ["required_arguments", "torch_optimizer", "torch_scheduler", "unpacked"]


def torch_optimizer(name: str) -> type[Optimizer] | None:
    """Return the optimizer of torch that has this name.

    >>> torch_optimizer("nadam").__name__
    'NAdam'
    """
    return _find(torch.optim, name, Optimizer)


def torch_scheduler(name: str) -> type | None:
    """Return the scheduler of torch that has this name.

    >>> torch_scheduler("steplr").__name__
    'StepLR'
    """
    return _find(lr_scheduler, name, lr_scheduler.LRScheduler)


def _find(module: Any, name: str, base: type) -> Any:
    for own, value in vars(module).items():
        if own.lower() == name.lower() and isinstance(value, type) and issubclass(value, base):
            return None if value is base else value
    return None


def unpacked(kind: Any) -> tuple[Any, dict[str, Any]]:
    """Return a class or name and its arguments: of a pair, a ``functools.partial``, or alone.

    >>> unpacked(functools.partial(torch.optim.SGD, momentum=0.9))[1]
    {'momentum': 0.9}
    """
    if isinstance(kind, tuple | list) and len(kind) == 2 and isinstance(kind[1], dict):
        return kind[0], dict(kind[1])
    if isinstance(kind, functools.partial) and not kind.args:
        return kind.func, dict(kind.keywords)
    return kind, {}


def required_arguments(cls: type, arguments: dict[str, Any], owner: str) -> None:
    """Refuse arguments that a class does not have, and those that it needs and did not get.

    The first one, parameters or optimizer, is given by the training.
    """
    known = dict(list(signature(cls).parameters.items())[1:])
    wrong = [name for name in arguments if name not in known]
    needed = [n for n, p in known.items() if p.default is Parameter.empty and n not in arguments]
    if wrong or needed:
        got = repr(wrong[0]) if wrong else f"no {needed[0]!r}"
        raise InvalidParameter(
            f"Training: the arguments of {owner} {cls.__name__!r} must be "
            f"{listing(known, 'and')}; got {got}. Write ({cls.__name__!r}, {{…}})."
        )
