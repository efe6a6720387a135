"""Handwritten digits for the experiments: MNIST where it is at hand, else scikit-learn's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

from castalia.data.images import load_images
from castalia.errors import InvalidData

__all__ = ["Digits", "digits"]


@dataclass(frozen=True)
class Digits:
    """Rows of pixels between 0 and 1 and their digits, to learn from and to test on."""

    name: str
    side: int  # pixels of an edge
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


def digits(rows: int, test: int, *, small: bool = False) -> Digits:
    """Return so many digits, or as many as there are.

    Parameters
    ----------
    rows, test
        How many to learn from, and to test on.
    small
        Take scikit-learn's 1797 digits of 8 x 8 pixels, also where MNIST is in the cache.
    """
    if not small:
        try:
            train, held = load_images("mnist"), load_images("mnist", "test")
        except InvalidData:
            return digits(rows, test, small=True)
        (x, y), (x_test, y_test) = _flat(*train, 255, rows), _flat(*held, 255, test)
        return Digits("MNIST", 28, x, y, x_test, y_test)
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    x, y = _flat(images[order], labels[order], 16, len(labels))
    rows, held_rows = min(rows, len(y) - min(test, 797)), min(test, 797)
    held_at = slice(len(y) - held_rows, None)
    return Digits("scikit-learn's digits", 8, x[:rows], y[:rows], x[held_at], y[held_at])


def _flat(
    images: np.ndarray, labels: np.ndarray, white: float, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows with pixels between 0 and 1, (N, D)."""
    return images[:rows].reshape(len(images[:rows]), -1) / white, labels[:rows].astype(np.int64)
