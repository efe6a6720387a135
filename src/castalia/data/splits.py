"""Splitting rows for training, validation and test."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

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
    if order is not None:
        by_time = np.argsort(order, kind="stable")
        return np.sort(by_time[: n - size]), np.sort(by_time[n - size :])
    splitter: Any = ShuffleSplit(1, test_size=size, random_state=seed % 2**32)
    target: Any = None
    if groups is not None:
        if len(np.unique(groups)) < 2:
            raise InvalidData(
                "holdout: `groups` must hold two groups or more; got one. Split at random instead."
            )
        splitter = GroupShuffleSplit(1, test_size=fraction, random_state=seed % 2**32)
    elif labels is not None and _can_stratify(labels, size):
        splitter, target = (
            StratifiedShuffleSplit(1, test_size=size, random_state=seed % 2**32),
            labels,
        )
    kept, held = next(splitter.split(np.empty((n, 0)), target, groups))
    return np.sort(kept), np.sort(held)


def _can_stratify(labels: np.ndarray, size: int) -> bool:
    if labels.ndim != 1:
        return False
    counts = np.unique(labels, return_counts=True)[1]
    return len(counts) >= 2 and counts.min() >= 2 and len(counts) <= min(size, len(labels) - size)
