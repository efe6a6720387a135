"""Validation distinguished from training by the order in which a script does things.

A loss computed without gradients belongs to validation, unless its targets are those of the
training batch or its data loader is one that was trained on. A phase of validation ends with the
next ``backward``. A loss with gradients of a module in evaluation mode may be either: it waits for
what comes next.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from castalia.diagnose.monitor import Doctor
from castalia.diagnose.script.loss_calls import LossCall
from castalia.diagnose.script.step_losses import Step

__all__ = ["Phases"]


@dataclass
class _Reading:
    """One reading of a data loader, from its first batch on."""

    dataset: Any = None  # a reference, see `_refer`
    kind: str = "unknown"  # then "training", "validation" or "training again"


@dataclass
class _Sums:
    """Losses and right answers of one phase of validation on one data set."""

    reading: _Reading
    losses: dict[str, tuple[Any, int]] = field(default_factory=dict)
    right: Tensor | None = None
    counted: Any = 0

    def add(self, call: LossCall) -> None:
        rows = len(call.targets) if call.targets.ndim else 1
        loss, n = self.losses.get(call.name, (0.0, 0))
        self.losses[call.name] = (loss + call.mean().float() * rows, n + rows)
        found = call.right()
        if found is not None:
            self.right = found[0] if self.right is None else self.right + found[0]
            self.counted = self.counted + found[1]

    def means(self) -> dict[str, float]:
        return {name: float(loss) / max(n, 1) for name, (loss, n) in self.losses.items()}

    def score(self) -> float | None:
        counted = int(self.counted)
        return None if self.right is None or not counted else float(self.right) / counted


@dataclass
class _Held:
    """A call of which it is not sure what it belongs to."""

    call: LossCall  # without its graph
    reading: _Reading
    loss: Any = None  # a weak reference to the loss with its graph, where it has one


class Phases:
    """What belongs to training and what to validation.

    Parameters
    ----------
    doctor
        Gives the doctor to tell; None where none, or no single one, is watching.
    """

    def __init__(self, doctor: Callable[[], Doctor | None]) -> None:
        self._doctor = doctor
        self._steps = 0
        self._step, self._last_step = Step(), Step()
        self._targets: Tensor | None = None  # of the last training batch
        self._trained: dict[int, Any] = {}
        self._reading = _Reading()
        self._held: list[_Held] = []  # of one batch, until it is sure what they are
        self._phase: dict[int, _Sums] = {}
        self._validated: Any = None  # the data set of the phases before

    def reads(self, dataset: Any) -> None:
        """A data loader begins to give batches of a data set."""
        self._reading = _Reading(_refer(dataset))

    def loss(self, call: LossCall, training: bool) -> None:
        """A loss was computed, by a module that is in training mode or not."""
        if call.loss.requires_grad and training:
            self._trains(call, weakref.ref(call.loss))
            return
        if not self._steps or _overlap(call.targets, self._targets):
            return  # before the first step, or of the training batch
        if self._held and not _overlap(call.targets, self._held[0].call.targets):
            self._accept()
        graph = weakref.ref(call.loss) if call.loss.requires_grad else None
        self._held.append(_Held(call.detached(), self._reading, graph))
        if self._phase and graph is None:  # surely validation: keep nothing longer than needed
            self._accept()

    def backward(self, root: Any) -> None:
        """A training step goes backward: a phase of validation is over."""
        if self._held and self._held[-1].loss is not None and not self._step.losses:
            held, self._held = self._held, []
            for one in held:  # trained in evaluation mode
                self._trains(one.call, one.loss)
        self._end_phase()
        self._steps += 1
        if self._reading.kind == "unknown":
            self._reading.kind = "training"
            if self._reading.dataset is not None:
                self._trained[id(_referred(self._reading.dataset))] = self._reading.dataset
        step, self._step = self._step, Step()
        if step.losses and isinstance(root, Tensor):
            step.end(root)
            self._last_step = step

    def end(self) -> None:
        """End the script's last phase, unless it is on another data set: a final test."""
        self._accept()
        if any(self._fits(sums.reading) for sums in self._sums()):
            self._end_phase()

    def _sums(self) -> list[_Sums]:
        return list(self._phase.values())

    def _trains(self, call: LossCall, loss: Any) -> None:
        if self._held and _overlap(call.targets, self._held[0].call.targets):
            self._held = []  # a measure of the training batch
        self._step.add(call, loss)
        self._targets = call.targets.detach() if call.targets.requires_grad else call.targets

    def _accept(self) -> None:
        """Take the calls that are held as validation."""
        held, self._held = self._held, []
        doctor = self._doctor()
        if not held or doctor is None or not self._is_validation(held[0].reading):
            return
        reading = held[0].reading
        sums = self._phase.setdefault(id(reading), _Sums(reading))
        for one in held:
            sums.add(one.call)
        if self._fits(reading) and sums is self._sums()[0]:
            first = held[0].call
            with torch.no_grad():
                doctor.log(loss=first.loss, outputs=first.outputs, targets=first.targets)

    def trains_on(self, dataset: Any) -> bool:
        """Whether steps were made on a data set."""
        return dataset is not None and _referred(self._trained.get(id(dataset))) is dataset

    def _is_validation(self, reading: _Reading) -> bool:
        if reading.kind == "unknown":
            trained = self.trains_on(_referred(reading.dataset))
            reading.kind = "training again" if trained else "validation"
        return reading.kind != "training again"

    def _fits(self, reading: _Reading) -> bool:
        """Whether it is of the data set of the phases before, as far as that is known."""
        known = _referred(self._validated)
        return known is None or _referred(reading.dataset) is known

    def _end_phase(self) -> None:
        self._accept()
        phase, self._phase = self._sums(), {}
        doctor = self._doctor()
        if not phase or doctor is None:
            return
        chosen = ([sums for sums in phase if self._fits(sums.reading)] or phase)[0]
        self._validated = chosen.reading.dataset
        loss, score = self._last_step.in_its_units(chosen.means()), chosen.score()
        if loss is not None or score is not None:
            doctor.validated(validation_loss=loss, validation_score=score)


def _refer(thing: Any) -> Any:
    """Return a weak reference where the thing allows one."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


def _referred(reference: Any) -> Any:
    return None if reference is None else reference()


def _overlap(a: Tensor, b: Tensor | None) -> bool:
    """Return whether two tensors share memory."""
    if b is None or a.device != b.device or not a.numel() or not b.numel():
        return False
    if a.layout != torch.strided or b.layout != torch.strided:
        return False
    (low, high), (first, last) = _extent(a), _extent(b)
    return low <= last and first <= high


def _extent(x: Tensor) -> tuple[int, int]:
    reach = sum((n - 1) * stride for n, stride in zip(x.shape, x.stride(), strict=True))
    return x.data_ptr(), x.data_ptr() + reach * x.element_size()
