"""How well maps of labels agree: intersection over union, and shares of pixels.

IoU_k = TP_k / (TP_k + FP_k + FN_k), from one confusion matrix over all pixels of all maps, which
is gathered chunk by chunk: large maps never become one-hot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.label_maps import as_maps, confusion, iou_from

__all__ = ["boundary_accuracy", "class_iou", "mean_iou", "pixel_accuracy"]

Labels = Sequence[Any] | np.ndarray | None


def class_iou(y_true: Any, y_pred: Any, *, labels: Labels = None, void: Any = None) -> np.ndarray:
    """Return intersection over union of every class.

    Parameters
    ----------
    y_true, y_pred
        Maps of labels, (N, H, W), or lists of (H, W) of different sizes; arrays or tensors.
    labels
        Labels in the order of the result; by default all that occur in either, sorted.
    void
        True label of pixels that count neither way.

    Returns
    -------
    ndarray, (K,)
        NaN for a class that is neither there nor predicted.

    Examples
    --------
    >>> class_iou([[0, 0, 1, 1]], [[0, 1, 1, 1]]).round(3).tolist()
    [0.5, 0.667]
    """
    return iou_from(confusion("class_iou", y_true, y_pred, labels, void)[1])


def mean_iou(y_true: Any, y_pred: Any, *, labels: Labels = None, void: Any = None) -> float:
    """Return the mean of ``class_iou`` over the classes that are there or predicted.

    Parameters
    ----------
    y_true, y_pred
        Maps of labels, (N, H, W), or lists of (H, W).
    labels
        Labels that count; by default all that occur in either.
    void
        True label of pixels that count neither way.

    Examples
    --------
    >>> round(mean_iou([[0, 0, 1, 255]], [[0, 0, 1, 0]], void=255), 3)
    1.0
    """
    counts = _counted("mean_iou", y_true, y_pred, labels, void)
    return float(np.nanmean(iou_from(counts)))


def pixel_accuracy(y_true: Any, y_pred: Any, *, void: Any = None) -> float:
    """Return the share of counted pixels whose label is right.

    Parameters
    ----------
    y_true, y_pred
        Maps of labels, (N, H, W), or lists of (H, W).
    void
        True label of pixels that count neither way.

    Examples
    --------
    >>> pixel_accuracy([[0, 0, 1, 1]], [[0, 1, 1, 1]])
    0.75
    """
    counts = _counted("pixel_accuracy", y_true, y_pred, None, void)
    return float(np.trace(counts) / counts.sum())


def boundary_accuracy(y_true: Any, y_pred: Any, *, width: int = 2, void: Any = None) -> float:
    """Return the share of right pixels among those near a border between two true labels.

    Large areas are easy and hide whether outlines are sharp; this counts outlines alone.

    Parameters
    ----------
    y_true, y_pred
        Maps of labels, (N, H, W), or lists of (H, W).
    width
        How many pixels from a border a pixel may lie, rows and columns each.
    void
        True label of pixels that count neither way.

    References
    ----------
    2009, Kohli, Ladicky, Torr, Robust higher order potentials for enforcing label consistency, IJCV
    82.

    Examples
    --------
    >>> truth = np.repeat([[0, 0, 0, 0, 1, 1, 1, 1]], 3, axis=0)[None]
    >>> boundary_accuracy(truth, np.roll(truth, -1, axis=2), width=1)
    0.5
    """
    from scipy.ndimage import maximum_filter, minimum_filter

    if width < 1:
        raise InvalidParameter(f"boundary_accuracy: `width` must be at least 1; got {width!r}.")
    right = near = 0
    side = 2 * width + 1
    for true, predicted in zip(as_maps(y_true), as_maps(y_pred), strict=True):
        band = maximum_filter(true, side) != minimum_filter(true, side)
        band &= True if void is None else true != void
        right, near = right + int((true == predicted)[band].sum()), near + int(band.sum())
    if not near:
        raise InvalidData("boundary_accuracy: `y_true` must hold a border between two labels.")
    return right / near


def _counted(owner: str, y_true: Any, y_pred: Any, labels: Labels, void: Any) -> np.ndarray:
    counts = confusion(owner, y_true, y_pred, labels, void)[1]
    if not counts.sum():
        raise InvalidData(
            f"{owner}: `y_true` must hold a pixel that counts; got none, void={void!r}."
        )
    return counts
