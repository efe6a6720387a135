"""The loss of every step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.diagnose.monitor.host_transfer import gather

__all__ = ["LossLog", "loss_of"]

MOST_WAITING = 256


class LossLog:
    """Fills the losses of a record; those on a device wait there, to be read many at once.

    Parameters
    ----------
    values
        The list to fill: NaN where a loss is not known (yet).
    unknown
        Filled with the steps whose loss is not known.

    Examples
    --------
    >>> losses = LossLog(values := [])
    >>> losses.add(1.0), losses.add(torch.tensor(0.5)), losses.read()
    (None, None, None)
    >>> values
    [1.0, 0.5]
    """

    def __init__(self, values: list[float], unknown: set[int] | None = None) -> None:
        self.values, self.unknown = values, set() if unknown is None else unknown
        self._waiting: list[tuple[int, Tensor]] = []
        self._sent: set[int] = set()  # steps whose losses are on their way

    def add(self, loss: Tensor | float | None) -> None:
        """Keep the loss of one more step."""
        if isinstance(loss, Tensor):
            self._waiting.append((len(self.values), loss))
            self.values.append(math.nan)
            if len(self._waiting) >= MOST_WAITING:
                self.read()
            return
        if loss is None:
            self.unknown.add(len(self.values))
        self.values.append(math.nan if loss is None else loss)

    def read(self) -> None:
        """Fetch the losses that wait on a device."""
        steps, losses = self.send()
        self.write(steps, gather(losses))

    def send(self) -> tuple[list[int], list[Tensor]]:
        """Return the losses that wait on a device, and their steps, for ``write``."""
        waiting, self._waiting = self._waiting, []
        steps = [step for step, _ in waiting]
        self._sent.update(steps)
        return steps, [loss for _, loss in waiting]

    def write(self, steps: list[int], losses: list[np.ndarray]) -> None:
        """Keep the numbers of what ``send`` returned."""
        self._sent.difference_update(steps)
        for step, value in zip(steps, losses, strict=True):
            self.values[step] = float(value)

    def latest(self, most: int = MOST_WAITING) -> list[float]:
        """Return the losses of the last steps that do not wait on a device."""
        waiting = self._sent.union(step for step, _ in self._waiting)
        first = max(0, len(self.values) - most)
        return [v for step, v in enumerate(self.values[first:], first) if step not in waiting]

    def complete(self, loss: Tensor | float | None) -> None:
        """Take what was logged after the step for its loss, where none was seen."""
        last = len(self.values) - 1
        unknown = last >= 0 and math.isnan(self.values[last])
        coming = last in self._sent or any(step == last for step, _ in self._waiting[-1:])
        if loss is None or not unknown or coming:
            return
        self.unknown.discard(last)
        if isinstance(loss, Tensor):
            self._waiting.append((last, loss.detach().float().mean()))
        else:
            self.values[last] = float(loss)


def loss_of(tensors: Sequence[Tensor], gradients: Sequence[Any]) -> Tensor | float | None:
    """Return the number whose gradient a backward pass takes; None where it cannot.

    On a device it stays a tensor: reading it would hold up the device.
    """
    if len(tensors) == 1 and tensors[0].numel() == 1:
        loss = tensors[0]
        return loss.item() if loss.is_cpu else loss.detach().reshape(())
    given = (*gradients, *(None,) * (len(tensors) - len(gradients)))
    if any(g is None and t.numel() != 1 for t, g in zip(tensors, given, strict=True)):
        return None
    parts = [
        (t.detach() * (1.0 if g is None else g.detach())).sum()
        for t, g in zip(tensors, given, strict=True)
    ]
    total = torch.stack([part.to(parts[0]) for part in parts]).sum() if parts else None
    return total.item() if total is not None and total.is_cpu else total
