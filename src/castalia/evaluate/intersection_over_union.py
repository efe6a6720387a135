"""Intersection over union of boxes or of masks: how much two regions overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from castalia.errors import ShapeMismatch
from castalia.nn import box_iou

__all__ = ["iou"]


def iou(first: Any, second: Any, *, inclusive: bool = False) -> np.ndarray | float:
    """Return |A ∩ B| / |A ∪ B|, pair by pair: of boxes, or of two masks.

    Parameters
    ----------
    first, second
        Corners (x1, y1, x2, y2) of boxes, (…, 4); leading axes broadcast, so ``a[:, None]`` and
        ``b[None]`` give every pair. Or two masks of truth values and of one shape.
    inclusive
        Whether corners are pixels that belong to the box, as in PASCAL VOC's own measure.

    Returns
    -------
    numpy.ndarray or float
        From 0, apart, to 1, equal; NaN for two empty masks.

    See Also
    --------
    mean_iou : over the classes of maps of labels.
    mean_average_precision : of boxes with scores.

    Examples
    --------
    >>> round(iou([57, 133, 329, 265], [153, 95, 396, 218]), 6)
    0.294297
    >>> iou(np.array([True, True, False]), np.array([False, True, True]))
    0.3333333333333333
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.dtype == bool and b.dtype == bool:
        return _masks(a, b)
    if a.shape[-1:] != (4,) or b.shape[-1:] != (4,):
        raise ShapeMismatch(
            "iou: `first` and `second` must be boxes (…, 4) or masks of truth values; got shapes "
            f"{a.shape} and {b.shape}."
        )
    pair = (torch.as_tensor(boxes, dtype=torch.float64) for boxes in (a, b))
    found: np.ndarray = box_iou(*pair, inclusive=inclusive).numpy()
    return found if found.ndim else float(found)


def _masks(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        raise ShapeMismatch(f"iou: masks must have one shape; got {a.shape} and {b.shape}.")
    union = int((a | b).sum())
    return int((a & b).sum()) / union if union else float("nan")
