"""A few rows of each batch, kept on the host and within bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.diagnose.monitor import module_facts as facts
from castalia.diagnose.monitor.host_transfer import settle, to_host
from castalia.diagnose.record import Record, Rows

__all__ = ["RowKeeper", "inputs_of"]

MOST_BATCHES = 96
MOST_ROWS = 128
MOST_LABELS = 4096
MOST_COLUMNS = 1024
MOST_NUMBERS = 1 << 18
TOO_MANY = 1 << 22  # numbers of one row


class RowKeeper:
    """Fills the rows of a record."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.last = -1
        self._attempt: tuple[tuple[int, ...], Tensor] | None = None

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

    def complete(self, step: int, logged: dict[str, Any]) -> None:
        """Add what was logged after a step to the rows kept of it."""
        rows = self.record.train
        if not rows.steps or rows.steps[-1] != step:
            self.train(
                step, *(facts.tensor(logged.get(n)) for n in ("inputs", "outputs", "targets"))
            )
            return
        for name, keep in (("inputs", inputs_of), ("outputs", outputs_of), ("targets", labels_of)):
            kept = getattr(rows, name)
            if kept[-1] is None and name in logged:
                kept[-1] = keep(facts.tensor(logged[name]))

    def attempt(self, outputs: Any, targets: Any) -> None:
        """Remember what a loss function is about to be given, in case it raises."""
        if isinstance(outputs, Tensor) and isinstance(targets, Tensor):
            self._attempt = tuple(outputs.shape), targets.detach()  # no graph is kept alive

    def succeeded(self) -> None:
        """Forget it: the loss function returned."""
        self._attempt = None

    def conclude(self) -> None:
        """Wait for the rows, and write down what a loss function that raised had been given."""
        settle()
        if self._attempt is not None:
            shape, targets = self._attempt
            whole = not targets.is_floating_point() and targets.numel() > 0
            self.record.failed = (shape, tuple(targets.shape), int(targets.max()) if whole else -1)

    def latent(self, output: Any) -> None:
        """Keep mean and log-variance of a latent code, the last two equal matrices of a tuple."""
        if not isinstance(output, tuple | list) or len(output) < 3:
            return
        matrices = [o for o in output if isinstance(o, Tensor) and o.ndim == 2]
        for mean, spread in zip(matrices[-2::-1], matrices[:0:-1], strict=True):
            if mean.shape == spread.shape and not _of_one_layer(mean, spread):
                self.record.latent = to_host(mean.detach()), to_host(spread.detach())
                return


def _of_one_layer(one: Tensor, other: Tensor) -> bool:
    """Whether two results are of one layer that was called twice: the codes of two rows, say."""
    first, second = one.grad_fn, other.grad_fn
    return first is not second and bool(ours := _nearest(first)) and ours == _nearest(second)


def _nearest(node: Any) -> set[int]:
    """Return which parameters are nearest above a result, a few operations away at most."""
    nodes = [node]
    for _ in range(4):
        nodes = [above for one in nodes if one is not None for above, _ in one.next_functions]
        if found := {id(one.variable) for one in nodes if hasattr(one, "variable")}:
            return found
    return set()


def inputs_of(value: Any) -> np.ndarray | None:
    """Return rows of inputs, flattened, at most so many columns taken evenly."""
    if not _can_be_kept(value) or value.is_complex():
        return None
    rows = value.detach()[:MOST_ROWS]
    columns = math.prod(rows.shape[1:])
    every = max(1, -(-columns // MOST_COLUMNS))
    if every > 1 and not rows.is_contiguous():  # flattening would copy all of it
        wanted = np.unravel_index(np.arange(0, columns, every), rows.shape[1:])
        return to_host(rows[(slice(None), *(torch.from_numpy(axis) for axis in wanted))])
    return to_host(rows.reshape(rows.shape[0], columns)[:, ::every])


def outputs_of(value: Any) -> np.ndarray | None:
    """Return rows of outputs, as many as fit; None of those whose rows are huge."""
    if not _can_be_kept(value) or value.is_complex():
        return None
    each = max(math.prod(value.shape[1:]), 1)
    if each > TOO_MANY:
        return None
    return to_host(value.detach()[: max(4, min(MOST_ROWS, MOST_NUMBERS // each))])


def labels_of(value: Any) -> np.ndarray | None:
    """Return targets, many of them where each is one number."""
    each = math.prod(value.shape[1:]) if isinstance(value, Tensor) else 0
    if each == 1 and _can_be_kept(value):
        return to_host(value.detach()[:MOST_LABELS])
    return outputs_of(value)


def _can_be_kept(value: Any) -> bool:
    """Whether there are rows to take: not of a number, nor of a sparse or nested tensor."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_meta:
        return False
    return value.ndim >= 1 and not value.is_quantized
