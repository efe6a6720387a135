"""Matching labels to the columns of a probability table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.utils.text import listing, shorten

__all__ = ["class_table", "classes_of", "columns", "listed", "positions", "probabilities"]


def listed(values: Any) -> list[Any]:
    """Return labels as plain Python values; numbers among words stay numbers.

    >>> listed(np.array([1, 2])), listed((1, "two"))
    ([1, 2], [1, 'two'])
    """
    if hasattr(values, "tolist"):
        return list(values.tolist())
    return [v.item() if isinstance(v, np.generic) else v for v in values]


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


def classes_of(estimator: Any, owner: str, needs: str = "predict") -> list[Any]:
    """Return the classes of a fitted classifier."""
    if not (hasattr(estimator, "classes_") and hasattr(estimator, needs)):
        raise InvalidParameter(
            f"{owner}: `estimator` must be a fitted classifier with `{needs}`; got "
            f"{type(estimator).__name__}."
        )
    return list(estimator.classes_)


def class_table(
    y_true: Any, probability: Any, classes: Sequence[Any] | None, owner: str
) -> tuple[np.ndarray, list[Any], np.ndarray]:
    """Return the table of probabilities, (n, K), the label of each column, and each row's column.

    >>> class_table(["b", "a"], [0.7, 0.1], None, "doctest")[1:]
    (['a', 'b'], array([1, 0]))
    """
    table = probabilities(probability, owner)
    labels = columns(y_true, table.shape[1], classes, owner)
    return table, labels, positions(y_true, labels, owner)


def columns(y_true: Any, count: int, classes: Sequence[Any] | None, owner: str) -> list[Any]:
    """Return the label of each of ``count`` probability columns."""
    if classes is not None:
        labels = listed(classes)
    else:
        labels = np.unique(np.asarray(y_true)).tolist()
        if len(labels) != count and all(type(v) is int for v in labels):
            labels = list(range(count))
    if len(labels) != count:
        raise ShapeMismatch(
            f"{owner}: `probability` must have one column per class ({len(labels)}); got {count}. "
            f"Pass `classes` in column order."
        )
    return labels


def positions(y_true: Any, labels: list[Any], owner: str) -> np.ndarray:
    """Return the column of each row's true label."""
    place = {label: i for i, label in enumerate(labels)}
    truth = listed(y_true)
    unknown = sorted({str(v) for v in truth if v not in place})
    if unknown:
        raise InvalidData(
            f"{owner}: every label in `y_true` must be one of the classes "
            f"{listing([shorten(v, 20) for v in labels], last='and', most=6)}; "
            f"got {listing(unknown, last='and', most=6)}."
        )
    return np.fromiter((place[v] for v in truth), dtype=np.intp, count=len(truth))
