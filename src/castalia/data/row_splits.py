"""Splitting rows for training, validation and test."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from castalia.errors import InvalidData

__all__ = ["holdout"]

# Fewer rows than this say nothing about a model; they serve better in training.
SMALLEST = 10


def holdout(
    n: int,
    fraction: float,
    *,
    seed: int,
    labels: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    order: np.ndarray | None = None,
    smallest: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Split row numbers into a kept and a held-out part, both ascending.

    Parameters
    ----------
    n
        Number of rows.
    fraction
        Share to hold out.
    seed
        Of the shuffling.
    labels
        Classes to keep in proportion, where every class has two rows or more.
    groups
        Rows of one group stay together.
    order
        Times or other sortable values: the latest rows are held out.
    smallest
        With fewer held-out rows than this, hold out none.

    Examples
    --------
    >>> kept, held = holdout(10, 0.2, seed=0)
    >>> len(kept), len(held)
    (8, 2)
    """
    size = int(n * fraction)
    if size < max(smallest, 1):
        return np.arange(n), np.arange(0)
    held = np.zeros(n, dtype=bool)
    if order is not None:
        held[np.argsort(order, kind="stable")[n - size :]] = True
    elif groups is not None:
        held[_grouped(np.asarray(groups), fraction, seed)] = True
    else:
        rng = np.random.default_rng(seed)
        shares = _shares(labels, size) if labels is not None else None
        if labels is None or shares is None:
            held[rng.choice(n, size, replace=False, shuffle=False)] = True
        else:
            for label, count in shares:
                rows = np.flatnonzero(labels == label)
                held[rng.choice(rows, count, replace=False, shuffle=False)] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def _grouped(groups: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    if len(np.unique(groups)) < 2:
        raise InvalidData(
            "holdout: `groups` must hold two groups or more; got one. Split at random instead."
        )
    splitter = GroupShuffleSplit(1, test_size=fraction, random_state=seed % 2**32)
    return next(splitter.split(np.empty((len(groups), 0)), None, groups))[1]


def _counted(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count each class; class numbers are counted without sorting, for they may be many."""
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < 2**16:
        counts = np.bincount(labels)
        return np.flatnonzero(counts), counts[counts > 0]
    return np.unique(labels, return_counts=True)


def _shares(labels: np.ndarray, size: int) -> list[tuple[Any, int]] | None:
    """Say how many rows of each class to hold out, by largest remainder; None if that cannot be."""
    if labels.ndim != 1:
        return None
    classes, counts = _counted(labels)
    if len(classes) < 2 or counts.min() < 2 or len(classes) > min(size, len(labels) - size):
        return None
    exact = counts * (size / len(labels))
    shares = np.floor(exact).astype(int)
    most = np.argsort(shares - exact, kind="stable")[: size - shares.sum()]
    shares[most] += 1
    return list(zip(classes, np.minimum(shares, counts - 1), strict=True))
