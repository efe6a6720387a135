"""Numbers copied to the host: many small tensors at once, or some without waiting for them.

A device is usually behind the program that it works for. Whoever waits for its numbers lets it run
out of work, which on a GPU costs a few milliseconds each time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

__all__ = ["gather", "settle", "to_host"]


def gather(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """Return the tensors as float arrays of their shapes; a device is waited for once.

    >>> gather([torch.tensor(True), torch.tensor([1, 2])])
    [array(1., dtype=float32), array([1., 2.], dtype=float32)]
    """
    if not tensors:
        return []
    device = tensors[0].device
    flat = torch.cat([t.detach().to(device, torch.float32).ravel() for t in tensors]).cpu().numpy()
    found, start = [], 0
    for tensor in tensors:
        end = start + tensor.numel()
        found.append(flat[start:end].reshape(tensor.shape))
        start = end
    return found


def to_host(value: Tensor) -> np.ndarray:
    """Return a copy of a tensor as an array, to be read after ``settle``: a GPU is not waited for.

    >>> to_host(torch.tensor([1, 2]))
    array([1, 2])
    """
    value = value.detach()
    value = value.float() if value.is_floating_point() else value
    if not value.is_cuda:
        return value.cpu().numpy().copy() if value.device.type == "cpu" else value.cpu().numpy()
    held = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
    held.copy_(value, non_blocking=True)
    return held.numpy()


def settle() -> None:
    """Wait for what ``to_host`` has asked for."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
