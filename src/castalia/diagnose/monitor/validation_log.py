"""Validation as it is seen or logged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from castalia.diagnose.monitor import module_facts as facts
from castalia.diagnose.monitor.host_transfer import gather
from castalia.diagnose.monitor.row_keeper import RowKeeper
from castalia.diagnose.record import Evaluation, Record

__all__ = ["ValidationLog"]

KEPT = 4  # batches of one validation whose rows are kept


class ValidationLog:
    """Gathers the batches of one validation and closes it.

    Attributes
    ----------
    again
        Whether the data being read are those that are trained on; None where it is not known.
    """

    def __init__(self, record: Record, keeper: RowKeeper) -> None:
        self.record, self.keeper = record, keeper
        self.again: bool | None = None
        self._since = 0  # first training step since the last validation
        self._begin()

    def _begin(self) -> None:
        self._place = 0  # where the rows of the last call lie
        self._modes: list[bool] = []
        self._losses: list[tuple[Tensor, int]] = []  # of each batch, and its rows
        self._right: list[tuple[Tensor, int]] = []
        self._inputs: Any = None
        self._kept = 0

    def forward(self, training: bool, inputs: Any) -> None:
        """Note a call of the module without gradients."""
        self._modes.append(training)
        place = facts.place(inputs)
        self.record.asked_again += place != 0 and place == self._place
        self._place = place
        self.record.silent_in_training_mode += training
        self.record.silent_in_evaluation_mode += not training
        self._keep(self._inputs, None, None)
        self._inputs = None if self.again else inputs
        if self.again is False:
            self.record.final["apart"] = 1.0

    def aside(self, inputs: Any) -> None:
        """Keep rows of data that are not trained on, of a call with gradients on."""
        self._keep(inputs, None, None)
        self.record.final["apart"] = 1.0

    def batch(self, loss: Any, outputs: Any, targets: Any, inputs: Any) -> None:
        """Note a batch of validation whose outputs and targets are known."""
        outputs, targets = facts.tensor(outputs), facts.tensor(targets)
        size = facts.rows(targets, outputs) or 1
        if (value := facts.tensor(loss)) is not None:
            self._losses.append((value.float().mean(), size))
        if (right := _right(outputs, targets)) is not None:
            self._right.append((right, size))
        self._keep(self._inputs if inputs is None else inputs, outputs, targets)
        self._inputs = None

    def _keep(self, inputs: Any, outputs: Any, targets: Any) -> None:
        if self._kept < KEPT and (inputs is not None or outputs is not None):
            self.keeper.validation(len(self.record.losses), inputs, outputs, targets)
            self._kept += 1

    def end_phase(self) -> None:
        """Close a validation that was seen but not logged: training goes on."""
        self.again = None
        if self._losses:
            self.end(None, None, False)
        elif self._modes or self._kept:
            self._keep(self._inputs, None, None)
            self._begin()

    def end(self, loss: float | None, score: float | None, logged: bool) -> None:
        """Close a validation."""
        self._keep(self._inputs, None, None)
        loss = _mean(self._losses) if loss is None else loss
        score = _mean(self._right) if score is None else score
        if self._modes:
            in_training = sum(self._modes) > len(self._modes) / 2
            self.record.validated_in_training_mode += in_training
            self.record.validated_in_evaluation_mode += not in_training
        steps = len(self.record.losses)
        recent = [v for v in self.record.losses[self._since :] if math.isfinite(v)]
        train = float(np.mean(recent)) if recent else None
        self.record.evaluations.append(Evaluation(steps, loss, score, train))
        self._since = steps
        self._begin()


def _mean(batches: list[tuple[Tensor, int]]) -> float | None:
    """Mean over the rows of all batches, read from their device in one go."""
    sizes = [size for _, size in batches]
    if not sum(sizes):
        return None
    return float(np.average([float(v) for v in gather([v for v, _ in batches])], weights=sizes))


def _right(outputs: Any, targets: Any) -> Tensor | None:
    """Share of the rows whose largest output is the target."""
    if not isinstance(outputs, Tensor) or not isinstance(targets, Tensor):
        return None
    if outputs.ndim != 2 or targets.ndim != 1 or targets.is_floating_point():
        return None
    if len(outputs) != len(targets) or not outputs.numel():
        return None
    return (outputs.argmax(dim=1) == targets.to(outputs.device)).float().mean()
