"""Rows that are images, as matplotlib draws them."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.errors import ShapeMismatch

__all__ = ["as_images", "stretched"]


def as_images(owner: str, rows: Any, shape: tuple[int, ...] | None = None) -> np.ndarray | None:
    """Return rows as images with channels last, (N, H, W) or (N, H, W, 3); None if they are none.

    Parameters
    ----------
    owner
        Who asks; named in errors.
    rows
        Images with 1 or 3 channels first, last, or without; with ``shape``, rows of pixels.
    shape
        Height and width, perhaps channels, of images whose pixels are columns.

    Examples
    --------
    >>> as_images("doctest", np.zeros((5, 3, 8, 9))).shape
    (5, 8, 9, 3)
    >>> as_images("doctest", np.zeros((5, 64)), (8, 8)).shape
    (5, 8, 8)
    """
    if rows is None or (shape is None and len(getattr(rows, "shape", ())) < 3):
        return None
    table = np.asarray(rows)
    if shape is not None:
        pixels = int(np.prod(table.shape[1:]))
        if int(np.prod(shape)) != pixels:
            raise ShapeMismatch(
                f"{owner}: `shape` must have as many pixels as a row has columns, {pixels}; got "
                f"{shape}."
            )
        table = table.reshape(len(table), *shape)
    if table.ndim == 4 and table.shape[1] in (1, 3) and table.shape[3] not in (1, 3):
        table = table.transpose(0, 2, 3, 1)
    if table.ndim == 4 and table.shape[3] == 1:
        table = table[..., 0]
    return table if table.ndim == 3 or (table.ndim == 4 and table.shape[3] == 3) else None


def stretched(images: np.ndarray) -> np.ndarray:
    """Return each image stretched to between 0 and 1; a constant one becomes 0.

    >>> stretched(np.array([[[2.0, 4.0]], [[7.0, 7.0]]])).tolist()
    [[[0.0, 1.0]], [[0.0, 0.0]]]
    """
    images = images.astype(float)
    if not images.size:
        return images
    over = tuple(range(1, images.ndim))
    low = images.min(axis=over, keepdims=True)
    span = images.max(axis=over, keepdims=True) - low
    found: np.ndarray = (images - low) / np.where(span > 0, span, 1.0)
    return found
