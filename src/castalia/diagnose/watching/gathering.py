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
    flat = torch.cat([t.detach().to(device, torch.float32).reshape(-1) for t in tensors])
    parts = np.split(flat.cpu().numpy(), np.cumsum([t.numel() for t in tensors])[:-1])
    return [part.reshape(tuple(t.shape)) for part, t in zip(parts, tensors, strict=True)]
