"""Tensors over the memory of arrays."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import Tensor

__all__ = ["shared_tensor"]


def shared_tensor(array: np.ndarray) -> Tensor:
    """Return a tensor over an array's own memory, of one that cannot be written to as well.

    Torch warns of those (memory maps, what scikit-learn hands to its workers), since a write
    would not be seen; so only tensors that nobody writes to are made here.

    >>> import numpy as np
    >>> shared_tensor(np.broadcast_to(np.float32(2), (3,)).copy()).tolist()
    [2.0, 2.0, 2.0]
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)
