"""Numbers copied to the host: many small tensors at once, or some without waiting for them.

A device is usually behind the program that it works for. Whoever waits for its numbers lets it run
out of work, which on a GPU costs a few milliseconds each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["PendingNumbers", "gather", "settle", "to_host"]

Act = Callable[[list[np.ndarray]], Any]


def gather(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """Return the tensors as float arrays of their shapes; a device is waited for once.

    >>> gather([torch.tensor(True), torch.tensor([1, 2])])
    [array(1., dtype=float32), array([1., 2.], dtype=float32)]
    """
    if not tensors:
        return []
    return _cut(_joined(tensors).cpu().numpy(), [t.shape for t in tensors])


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    """Return all numbers in one row, on the device of the first."""
    device = tensors[0].device
    kind = torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32
    return torch.cat([t.detach().to(device, kind).ravel() for t in tensors])


def _cut(flat: np.ndarray, shapes: Sequence[torch.Size]) -> list[np.ndarray]:
    ends = list(accumulate(shape.numel() for shape in shapes))
    return [part.reshape(s) for part, s in zip(np.split(flat, ends[:-1]), shapes, strict=True)]


class _Sent(NamedTuple):
    flat: np.ndarray
    arrival: Any  # an event of the device, or None
    parts: list[tuple[list[torch.Size], Act]]


class PendingNumbers:
    """Numbers of several measurements: copied at once, and read when the device has other work.

    Examples
    --------
    >>> numbers, found = PendingNumbers(), []
    >>> numbers.want([torch.ones(2), torch.tensor(3)], found.extend)
    >>> numbers.send(), found
    (None, [])
    >>> numbers.read(), found
    (True, [array([1., 1.], dtype=float32), array(3., dtype=float32)])
    """

    def __init__(self) -> None:
        self._wanted: list[tuple[list[Tensor], Act]] = []
        self._sent: _Sent | None = None  # replaced as a whole: threads may read

    def want(self, tensors: Sequence[Tensor], act: Act) -> None:
        """Call ``act`` with the numbers of these tensors when they are read."""
        self._wanted.append((list(tensors), act))

    def send(self) -> None:
        """Copy what is wanted to the host, without waiting for it."""
        self.read()
        wanted, self._wanted = self._wanted, []
        parts = [([t.shape for t in tensors], act) for tensors, act in wanted]
        tensors = [t for some, _ in wanted for t in some]
        flat = _joined(tensors) if tensors else torch.zeros(0)
        arrival = None
        copied = _copied(flat)
        if flat.is_cuda:
            arrival = torch.cuda.Event()
            arrival.record(torch.cuda.current_stream(flat.device))
        self._sent = _Sent(copied, arrival, parts) if parts else None

    def read(self) -> bool:
        """Hand out what was sent, in the order in which it was wanted; return whether any was."""
        sent, self._sent = self._sent, None
        if sent is None:
            return False
        if sent.arrival is not None:
            sent.arrival.synchronize()
        shapes = [shape for some, _ in sent.parts for shape in some]
        numbers = iter(_cut(sent.flat, shapes) if shapes else [])
        for some, act in sent.parts:
            act([next(numbers) for _ in some])
        return True


def to_host(value: Tensor) -> np.ndarray:
    """Return a copy of a tensor as an array, to be read after ``settle``: a GPU is not waited for.

    >>> to_host(torch.tensor([1, 2]))
    array([1, 2])
    """
    value = value.detach()
    return _copied(value.float() if value.is_floating_point() else value)


def _copied(value: Tensor) -> np.ndarray:
    if not value.is_cuda:
        return value.cpu().numpy().copy() if value.device.type == "cpu" else value.cpu().numpy()
    held = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
    held.copy_(value, non_blocking=True)
    return held.numpy()


def settle() -> None:
    """Wait for what ``to_host`` has asked for."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
