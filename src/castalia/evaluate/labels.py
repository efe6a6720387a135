"""Matching labels to the columns of a probability table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from castalia.errors import InvalidData, ShapeMismatch
from castalia.utils.text import listing, shorten

__all__ = ["columns", "positions", "probabilities"]


def probabilities(probability: Any, owner: str) -> np.ndarray:
    """Return probabilities as (n, K) float64 rows that sum to one.

    A single column is the probability of the second of two classes.
    """
    table = np.asarray(probability, dtype=float)
    if table.ndim == 1 or (table.ndim == 2 and table.shape[1] == 1):
        table = np.column_stack([1 - table.ravel(), table.ravel()])
    if table.ndim != 2:
        raise ShapeMismatch(f"{owner}: `probability` must have shape (n, K); got {table.shape}.")
    if not np.isfinite(table).all() or (table < -1e-6).any():
        raise InvalidData(f"{owner}: `probability` must be finite and not negative.")
    total = table.sum(axis=1, keepdims=True)
    if (np.abs(total - 1) > 1e-2).any():
        raise InvalidData(
            f"{owner}: each row of `probability` must sum to 1; got {float(total.min()):.4g} to "
            f"{float(total.max()):.4g}. Apply a softmax to scores."
        )
    return table.clip(0) / total  # float32 rows miss one by more than scikit-learn allows


def columns(y_true: Any, count: int, classes: Sequence[Any] | None, owner: str) -> np.ndarray:
    """Return the label of each of ``count`` probability columns."""
    if classes is not None:
        labels = np.asarray(classes)
    else:
        labels = np.unique(np.asarray(y_true))
        if len(labels) != count and np.issubdtype(labels.dtype, np.integer):
            labels = np.arange(count)
    if len(labels) != count:
        raise ShapeMismatch(
            f"{owner}: `probability` must have one column per class ({len(labels)}); got {count}. "
            f"Pass `classes` in column order."
        )
    return labels


def positions(y_true: Any, labels: np.ndarray, owner: str) -> np.ndarray:
    """Return the column of each row's true label."""
    place = {label: i for i, label in enumerate(labels.tolist())}
    truth = np.asarray(y_true).tolist()
    unknown = sorted({str(v) for v in truth if v not in place})
    if unknown:
        raise InvalidData(
            f"{owner}: every label in `y_true` must be one of the classes "
            f"{listing([shorten(v, 20) for v in labels], last='and', most=6)}; "
            f"got {listing(unknown, last='and', most=6)}."
        )
    return np.fromiter((place[v] for v in truth), dtype=np.intp, count=len(truth))
