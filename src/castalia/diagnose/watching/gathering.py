"""Reading many small tensors with one transfer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

__all__ = ["gather"]


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
