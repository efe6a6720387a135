"""Which axis holds the channels: the last for NumPy and image files, the first for torch."""

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from castalia.errors import ShapeMismatch

__all__ = ["channels_first", "channels_last"]

Maps = TypeVar("Maps", np.ndarray, Tensor)


def channels_first(x: Maps) -> Maps:
    """Return (B, n..., C) as (B, C, n...), a view.

    Examples
    --------
    >>> channels_first(np.zeros((2, 192, 256, 3))).shape
    (2, 3, 192, 256)
    """
    return _move(x, -1, 1, "channels_first")


def channels_last(x: Maps) -> Maps:
    """Return (B, C, n...) as (B, n..., C), a view; ``[b, i, j]`` is then a feature vector.

    Examples
    --------
    >>> channels_last(torch.zeros(2, 3, 192, 256)).shape
    torch.Size([2, 192, 256, 3])
    """
    return _move(x, 1, -1, "channels_last")


def _move(x: Maps, source: int, target: int, owner: str) -> Maps:
    if x.ndim < 3:
        raise ShapeMismatch(
            f"{owner}: the array must have a batch axis, a channel axis and one or more of "
            f"positions; got {tuple(x.shape)}."
        )
    if isinstance(x, Tensor):
        return torch.movedim(x, source, target)
    return np.moveaxis(x, source, target)
