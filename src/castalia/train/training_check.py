"""Every rule on settings of a training, checked before the first step."""

from __future__ import annotations

import os
from typing import Any

from castalia.errors import InvalidParameter
from castalia.optim import (
    OPTIMIZERS,
    build_schedule,
    closure_kind,
    optimizer_class,
    optimizer_name,
)
from castalia.train.callbacks import Callback
from castalia.train.training import Training
from castalia.utils.devices import resolve_device
from castalia.utils.process_ranks import rank_and_world
from castalia.utils.text import did_you_mean, listing

__all__ = ["check_closure", "check_training"]

PRECISIONS = ("auto", "float32", "tf32", "bf16", "float64")
STEPS = ("auto", "plain")
STRATEGIES = ("auto", "single", "ddp", "fsdp")
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune")


def check_training(training: Training) -> None:
    """Raise ``InvalidParameter`` for the first setting that is wrong or contradicts another."""
    if not isinstance(training, Training):
        raise InvalidParameter(
            f"Estimator: `training` must be a castalia.Training or None; got {training!r}."
        )
    if optimizer_class(training.optimizer) is None:  # else a name, a class or an optimizer
        _choice("optimizer", optimizer_name(training.optimizer), OPTIMIZERS, callables=True)
    _choice("precision", training.precision, PRECISIONS)
    _choice("strategy", training.strategy, STRATEGIES)
    _choice("step", training.step, STEPS)
    _at_least("weight_decay", training.weight_decay, 0)
    _at_least("accumulate", training.accumulate, 1, whole=True)
    _at_least("patience", training.patience, 1, whole=True, optional=True)
    _at_least("workers", training.workers, 1, whole=True, optional=True)
    _at_least("shard", training.shard, 1, whole=True, optional=True)
    _at_least("checkpoint_every", training.checkpoint_every, 1, whole=True, optional=True)
    _check_clip(training.clip)
    if not isinstance(training.compile, bool) and training.compile not in ("auto", *COMPILE_MODES):
        raise InvalidParameter(
            f"Training: `compile` must be True, False, 'auto' or {listing(COMPILE_MODES)}; got "
            f"{training.compile!r}."
        )
    if not isinstance(training.watch, bool) and training.watch != "auto":
        raise InvalidParameter(
            f"Training: `watch` must be True, False or 'auto'; got {training.watch!r}."
        )
    build_schedule(training.schedule)
    resolve_device(training.device)
    for callback in training.callbacks:
        if not isinstance(callback, Callback):
            raise InvalidParameter(
                f"Training: `callbacks` must be castalia.Callback objects; got {callback!r}."
            )
    _check_validation(training)
    _check_strategy(training)
    _check_step(training)
    check_closure(training, optimizer_class(training.optimizer))


def check_closure(training: Training, optimizer: type | None) -> None:
    """Check what cannot go with an optimizer that evaluates a batch several times in a step."""
    kind = closure_kind(optimizer)
    if optimizer is None or kind is None:
        return
    name = optimizer_name(training.optimizer)
    name = name if isinstance(name, str) else optimizer.__name__
    if training.step == "plain":
        raise InvalidParameter(
            f"Training: `step` must be 'auto' with optimizer {name!r}, which evaluates a batch "
            "more than once; got 'plain'."
        )
    launched = _processes(training) > 1 and training.strategy == "auto"
    if training.strategy in ("ddp", "fsdp") or launched:
        raise InvalidParameter(
            f"Training: optimizer {name!r} runs in one process only; use strategy='single'."
        )
    if training.weight_decay:
        raise InvalidParameter(
            f"Training: `weight_decay` must be 0 with optimizer {name!r}; got "
            f"{training.weight_decay}. Add an L2 penalty instead."
        )
    if training.precision == "bf16":
        raise InvalidParameter(
            f"Training: `precision` must not be 'bf16' with optimizer {name!r}: it compares more "
            "digits of the loss than bf16 has. Use 'auto'."
        )
    if getattr(optimizer, "finds_length", False) and training.clip is not None:
        raise InvalidParameter(
            f"Training: `clip` must be None with optimizer {name!r}; got {training.clip}. It finds "
            "the length of its steps from the gradient as it is."
        )
    if kind == "gradients":
        return
    if training.recompute:
        raise InvalidParameter(
            f"Training: `recompute` must be False with optimizer {name!r}, which takes second "
            "derivatives."
        )
    if training.accumulate > 1:
        raise InvalidParameter(
            f"Training: `accumulate` must be 1 with optimizer {name!r}; got {training.accumulate}. "
            "Curvature is that of a whole batch: lower `batch_size` instead."
        )
    if training.compile not in ("auto", False):
        raise InvalidParameter(
            f"Training: `compile` must be 'auto' or False with optimizer {name!r}; got "
            f"{training.compile!r}. Compiled networks cannot be differentiated twice."
        )


def _check_clip(clip: Any) -> None:
    by_value = isinstance(clip, tuple) and len(clip) == 2 and clip[0] == "value"
    threshold = clip[1] if by_value else clip
    if clip is not None and not (_is_number(threshold) and threshold > 0):
        raise InvalidParameter(
            f"Training: `clip` must be a positive number, ('value', positive number) or None; got "
            f"{clip!r}."
        )


def _check_validation(training: Training) -> None:
    share = training.validation
    if not isinstance(share, tuple) and not (_is_number(share) and 0 <= share < 1):
        raise InvalidParameter(
            f"Training: `validation` must be a share from 0 up to 1, or (X, y); got {share!r}."
        )
    if training.patience is not None and not isinstance(share, tuple) and share == 0:
        raise InvalidParameter(
            f"Training: `patience={training.patience}` needs validation rows, but `validation=0`. "
            "Set validation=0.1 or patience=None."
        )
    if training.checkpoint_every is not None and training.run is None:
        raise InvalidParameter(
            f"Training: `checkpoint_every={training.checkpoint_every}` needs a place to write; "
            "set `run`."
        )


def _check_step(training: Training) -> None:
    several = _processes(training) > 1 and training.strategy != "single"
    if training.step == "plain" and (training.accumulate > 1 or several):
        got = "several processes" if several else f"`accumulate={training.accumulate}`"
        raise InvalidParameter(
            f"Training: `step='plain'` takes whole batches in one process; got {got}. "
            "Use step='auto'."
        )


def _check_strategy(training: Training) -> None:
    started = training.workers is not None or "WORLD_SIZE" in os.environ
    if training.strategy in ("ddp", "fsdp") and not started:
        raise InvalidParameter(
            f"Training: `strategy={training.strategy!r}` needs several processes; start the "
            "script with torchrun, or set `workers`."
        )
    if training.strategy == "single" and training.workers not in (None, 1):
        raise InvalidParameter(
            f"Training: `workers={training.workers}` needs strategy 'ddp', 'fsdp' or 'auto'; got "
            "'single'."
        )
    for name, given in (("shard", training.shard), ("offload", training.offload)):
        if given and training.strategy != "fsdp":
            raise InvalidParameter(
                f"Training: `{name}={given}` needs strategy 'fsdp'; got {training.strategy!r}."
            )
    if training.strategy == "fsdp" and training.average is not None:
        raise InvalidParameter(
            f"Training: `average={training.average!r}` is not available with strategy 'fsdp'; use "
            "'ddp' or average=None."
        )


def _processes(training: Training) -> int:
    """Return in how many processes a training runs."""
    return max(rank_and_world()[1], training.workers or 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _choice(name: str, value: Any, allowed: Any, callables: bool = False) -> None:
    if (isinstance(value, str) and value in allowed) or (callables and callable(value)):
        return
    raise InvalidParameter(
        f"Training: `{name}` must be {listing(allowed)}; got "
        f"{value!r}.{did_you_mean(str(value), allowed)}"
    )


def _at_least(
    name: str, value: Any, least: int, *, whole: bool = False, optional: bool = False
) -> None:
    if optional and value is None:
        return
    if not _is_number(value) or value < least or (whole and int(value) != value):
        kind = "a whole number" if whole else "a number"
        raise InvalidParameter(
            f"Training: `{name}` must be {kind} of at least "
            f"{least}{' or None' if optional else ''}; got {value!r}."
        )
