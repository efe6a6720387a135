"""Splits of rows for training, validation and test, and for cross-validation.

Each fold is a pair of row numbers, kept and held out, as scikit-learn's splitters give them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    TimeSeriesSplit,
)

from castalia.errors import InvalidData, InvalidParameter

__all__ = ["Fold", "grouped", "holdout", "kfold", "leave_one_out", "temporal"]

Fold = tuple[np.ndarray, np.ndarray]  # rows kept, rows held out

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
) -> Fold:
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
        held[_some_groups(np.asarray(groups), fraction, seed)] = True
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


def kfold(n: int, folds: int = 5, *, seed: int = 0, labels: ArrayLike | None = None) -> list[Fold]:
    """Hold out every row once, in shuffled folds of equal size.

    Examples
    --------
    >>> [len(held) for kept, held in kfold(10, 5)]
    [2, 2, 2, 2, 2]
    """
    _check_folds("kfold", folds, n, "rows")
    kind = KFold if labels is None else StratifiedKFold
    return list(kind(folds, shuffle=True, random_state=seed).split(np.empty((n, 0)), labels))


def leave_one_out(n: int) -> list[Fold]:
    """Hold out one row at a time.

    >>> [held.item() for kept, held in leave_one_out(3)]
    [0, 1, 2]
    """
    _check_folds("leave_one_out", n, n, "rows")
    return list(LeaveOneOut().split(np.empty((n, 0))))


def grouped(groups: ArrayLike, folds: int = 5, *, seed: int = 0) -> list[Fold]:
    """Hold out every group once; the rows of a group stay together.

    Parameters
    ----------
    groups
        The group of each row: a patient, a user, a document.
    folds
        Number of folds.
    seed
        Of the shuffling of groups.

    Examples
    --------
    >>> sorted(held.tolist() for kept, held in grouped(["a", "b", "a", "c"], 3))
    [[0, 2], [1], [3]]
    """
    found = np.asarray(groups)
    _check_folds("grouped", folds, len(np.unique(found)), "groups")
    splitter = GroupKFold(folds, shuffle=True, random_state=seed)
    return list(splitter.split(np.empty((len(found), 0)), None, found))


def temporal(order: ArrayLike, folds: int = 5, *, gap: int = 0) -> list[Fold]:
    """Hold out later rows only: each fold is trained on all rows before it.

    Parameters
    ----------
    order
        Times or other sortable values, one a row.
    folds
        Number of folds.
    gap
        Rows left out between the kept and the held-out ones.

    Examples
    --------
    >>> [(kept.tolist(), held.tolist()) for kept, held in temporal([3, 1, 2], 2)]
    [([1], [2]), ([1, 2], [0])]
    """
    rows = np.argsort(np.asarray(order), kind="stable")
    _check_folds("temporal", folds, len(rows) - 1, "rows after the first")
    pairs = TimeSeriesSplit(folds, gap=gap).split(rows)
    return [(rows[kept], rows[held]) for kept, held in pairs]


def _check_folds(owner: str, folds: int, most: int, what: str) -> None:
    if not 2 <= folds <= most:
        raise InvalidParameter(
            f"{owner}: `folds` must be from 2 to the number of {what}; got {folds} for {most}."
        )


def _some_groups(groups: np.ndarray, fraction: float, seed: int) -> np.ndarray:
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
