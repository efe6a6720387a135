"""Having the doctor watch a fit, and asking it afterwards.

The doctor lives floors above; it is found by its name in the catalogue, as every system is, and
only when a training is long enough to be worth watching.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

from castalia.catalog.doctor_paths import DIAGNOSIS, WATCHER
from castalia.train import Callback, Recorder, Training, build_strategy

__all__ = ["Watched", "is_watched", "remember", "watchers", "without_record"]

WORTH = 1.0  # seconds: shorter trainings are not slowed by sampling
STEP = 1e-4  # seconds a small step takes whatever its size
SPEED = {"cpu": 2e10}  # multiply-adds a second
DEVICE_SPEED = 2e13


def watchers(
    est: Any,
    training: Training,
    recorder: Recorder,
    device: torch.device,
    *,
    work: float,
    steps: int,
) -> list[Callback]:
    """Return the doctor as a callback, or nothing.

    Parameters
    ----------
    est
        The estimator being fitted.
    training
        Its ``watch`` decides; sharded networks are not watched.
    recorder
        Findings go to its run.
    device
        Where the training runs.
    work, steps
        Multiply-adds of a forward pass, and steps in all: by them the time is estimated.
    """
    strategy = build_strategy(training, device)
    if strategy.name == "fsdp" or strategy.rank:
        return []
    recorded = recorder.run is not None
    if not is_watched(training, device, work=work, steps=steps, recorded=recorded):
        return []
    return [_named(WATCHER)(recorder.run, est)]


def is_watched(
    training: Training, device: torch.device, *, work: float, steps: int, recorded: bool = False
) -> bool:
    """Whether a training is watched: by its setting, or because it is recorded or takes long."""
    seconds = steps * (STEP + 3 * work / SPEED.get(device.type, DEVICE_SPEED))
    return training.watch is True or (training.watch == "auto" and (recorded or seconds >= WORTH))


def _named(path: str) -> Any:
    package, _, name = path.partition(":")
    return getattr(import_module(package), name)


class Watched:
    """The attribute ``diagnosis_`` of estimators that the loop can fit."""

    def __get__(self, est: Any, owner: type | None = None) -> Any:
        """Return what the doctor found while the estimator was fitted, computed when asked for."""
        if est is None:
            return self
        if "_record" not in vars(est):
            raise AttributeError(
                f"{type(est).__name__}: has no `diagnosis_`: it was not fitted by gradients here. "
                "Use `castalia.diagnose.diagnose(est, X, y)`."
            )
        return _named(DIAGNOSIS)(est)


def remember(est: Any, callbacks: list[Callback]) -> None:
    """Keep what the doctor saw of this fit."""
    est._record = callbacks[0].record if callbacks else None  # type: ignore[attr-defined]


def without_record(state: Any) -> dict[str, Any]:
    """Leave what the doctor saw out of pickles: it holds rows of the data."""
    return {name: value for name, value in (state or {}).items() if name != "_record"}
