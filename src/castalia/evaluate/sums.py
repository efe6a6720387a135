"""Scores that are a function of sums over rows, and so can be resampled as one matrix product.

With n rows, a score gives each row m numbers (``parts``); any resample's score follows from the
sums of those numbers (``finish``). Counts of drawn rows, (R, n), times parts, (n, m), are then
the sums of all R resamples at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["SUMS", "Sums", "sums_of"]


@dataclass(frozen=True)
class Sums:
    """How a score is made of sums over rows."""

    parts: Callable[[np.ndarray, np.ndarray], np.ndarray]  # (n,), (n,) -> (n, m)
    finish: Callable[[np.ndarray], np.ndarray]  # (R, m) -> (R,)


def _with_count(values: np.ndarray) -> np.ndarray:
    values = values.reshape(len(values), -1).mean(axis=1)  # several outputs weigh alike
    return np.column_stack([values, np.ones(len(values))])


def _mean(sums: np.ndarray) -> np.ndarray:
    return sums[:, 0] / sums[:, 1]


def _hits(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    return _with_count((y == prediction).astype(float))


def _squares(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    return _with_count(np.square(prediction.astype(float) - y))


def _absolutes(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    return _with_count(np.abs(prediction.astype(float) - y))


def _variance_parts(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    centred = y.astype(float) - y.astype(float).mean()  # keeps the difference of squares exact
    error = np.square(prediction.astype(float) - y)
    return np.column_stack([error, centred, np.square(centred), np.ones(len(y))])


def _explained(sums: np.ndarray) -> np.ndarray:
    total = sums[:, 2] - np.square(sums[:, 1]) / sums[:, 3]
    known = total > 1e-12 * np.maximum(sums[:, 2], 1e-300)
    return np.where(known, 1 - sums[:, 0] / np.where(known, total, 1.0), np.nan)


def _class_parts(y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    _, code = np.unique(y, return_inverse=True)
    member = np.eye(code.max() + 1)[code]  # (n, K)
    return np.hstack([member * (y == prediction)[:, None], member])


def _mean_recall(sums: np.ndarray) -> np.ndarray:
    hits, size = np.split(sums, 2, axis=1)  # each (R, K)
    recall = np.divide(hits, size, out=np.full_like(hits, np.nan), where=size > 0)
    return np.asarray(np.nanmean(recall, axis=1))


SUMS: dict[str, Sums] = {
    "accuracy": Sums(_hits, _mean),
    "balanced_accuracy": Sums(_class_parts, _mean_recall),
    "mae": Sums(_absolutes, _mean),
    "mse": Sums(_squares, _mean),
    "r2": Sums(_variance_parts, _explained),
    "rmse": Sums(_squares, lambda sums: np.sqrt(_mean(sums))),
}

_SKLEARN = {
    "accuracy_score": "accuracy",
    "balanced_accuracy_score": "balanced_accuracy",
    "mean_absolute_error": "mae",
    "mean_squared_error": "mse",
    "r2_score": "r2",
    "root_mean_squared_error": "rmse",
}


def sums_of(score: Any, owner: str) -> Sums | None:
    """Find the sums behind a name or one of scikit-learn's functions; None for other functions."""
    if isinstance(score, str):
        if score not in SUMS:
            raise InvalidParameter(
                f"{owner}: `score` must be {listing(SUMS)} or a function of (y_true, prediction); "
                f"got {score!r}.{did_you_mean(score, SUMS)}"
            )
        return SUMS[score]
    if str(getattr(score, "__module__", "")).startswith("sklearn.metrics"):
        return SUMS.get(_SKLEARN.get(getattr(score, "__name__", ""), ""))
    return None
