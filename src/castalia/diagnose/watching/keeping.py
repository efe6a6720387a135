"""Keeping a few rows of what passes by, on the host and within bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from castalia.diagnose.record import Record, Rows
from castalia.diagnose.watching import facts

__all__ = ["Keeper"]

MOST_BATCHES = 96
MOST_ROWS = 128
MOST_LABELS = 4096
MOST_COLUMNS = 1024
MOST_NUMBERS = 1 << 18


class Keeper:
    """Fills the rows of a record."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.last = -1
        self._attempt: tuple[Any, Any] | None = None

    def train(self, step: int, inputs: Any, outputs: Any, targets: Any) -> None:
        """Keep rows of a training batch."""
        self.last = step
        if isinstance(inputs, Tensor) and not self.record.input_shape:
            self.record.input_shape = tuple(inputs.shape[1:])
        self._add(self.record.train, step, inputs, outputs, targets)

    def validation(self, step: int, inputs: Any, outputs: Any, targets: Any) -> None:
        """Keep rows of a validation batch."""
        self._add(self.record.validation, step, inputs, outputs, targets)

    def _add(self, rows: Rows, step: int, inputs: Any, outputs: Any, targets: Any) -> None:
        if inputs is None and outputs is None and targets is None:
            return
        rows.add(step, inputs_of(inputs), outputs_of(outputs), labels_of(targets))
        if len(rows) > MOST_BATCHES:  # thin the middle: the first and the latest stay dense
            keep = [i for i in range(len(rows)) if i < 8 or i >= len(rows) // 2 or i % 2]
            rows.select(keep)

    def complete(self, step: int, told: dict[str, Any]) -> None:
        """Add what was told after a step to the rows kept of it."""
        rows = self.record.train
        if not rows.steps or rows.steps[-1] != step:
            self.train(step, *(facts.tensor(told.get(n)) for n in ("inputs", "outputs", "targets")))
            return
        for name, keep in (("inputs", inputs_of), ("outputs", outputs_of), ("targets", labels_of)):
            kept = getattr(rows, name)
            if kept[-1] is None and name in told:
                kept[-1] = keep(facts.tensor(told[name]))

    def attempt(self, outputs: Any, targets: Any) -> None:
        """Remember what a loss function is about to be given, in case it raises."""
        self._attempt = (outputs, targets)

    def succeeded(self) -> None:
        """Forget it: the loss function returned."""
        self._attempt = None

    def conclude(self) -> None:
        """Write down what a loss function that raised had been given."""
        if self._attempt is not None:
            outputs, targets = self._attempt
            if isinstance(outputs, Tensor) and isinstance(targets, Tensor):
                whole = not targets.is_floating_point() and targets.numel() > 0
                most = int(targets.max()) if whole else -1
                self.record.failed = (tuple(outputs.shape), tuple(targets.shape), most)

    def latent(self, output: Any) -> None:
        """Keep mean and log-variance of a latent code, the last two equal matrices of a tuple."""
        if not isinstance(output, tuple | list) or len(output) < 2:
            return
        matrices = [o for o in output if isinstance(o, Tensor) and o.ndim == 2]
        for i in range(len(matrices) - 1, 0, -1):
            if matrices[i].shape == matrices[i - 1].shape and len(output) >= 3:
                pair = matrices[i - 1], matrices[i]
                self.record.latent = tuple(p.detach().float().cpu().numpy() for p in pair)  # type: ignore[assignment]
                return


def inputs_of(value: Any) -> np.ndarray | None:
    """Return rows of inputs, flattened, at most so many columns taken evenly."""
    if not isinstance(value, Tensor) or value.ndim < 1 or value.is_complex():
        return None
    rows = value.detach()[:MOST_ROWS]
    flat = rows.reshape(rows.shape[0], -1)
    if flat.shape[1] > MOST_COLUMNS:
        flat = flat[:, :: -(-flat.shape[1] // MOST_COLUMNS)]
    return _numpy(flat)


def outputs_of(value: Any) -> np.ndarray | None:
    """Return rows of outputs, as many as fit."""
    if not isinstance(value, Tensor) or value.ndim < 1:
        return None
    each = max(value[:1].numel(), 1)
    return _numpy(value.detach()[: max(4, min(MOST_ROWS, MOST_NUMBERS // each))])


def labels_of(value: Any) -> np.ndarray | None:
    """Return targets, many of them where each is one number."""
    if not isinstance(value, Tensor) or value.ndim < 1:
        return None
    each = max(value[:1].numel(), 1)
    most = MOST_LABELS if each == 1 else max(4, min(MOST_ROWS, MOST_NUMBERS // each))
    return _numpy(value.detach()[:most])


def _numpy(value: Tensor) -> np.ndarray:
    value = value.cpu()
    return (value.float() if value.is_floating_point() else value).numpy().copy()
