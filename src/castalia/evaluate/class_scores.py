"""Scores of classifications one at a time and quickly, for thousands of resamples.

They equal those of ``castalia.evaluate.scores``. Shapes: n rows, K classes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from castalia.evaluate.metrics import top_calibration_error

__all__ = ["CLASS_SCORES", "f1_macro", "log_loss", "roc_auc"]

ClassScore = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def f1_macro(code: np.ndarray, prediction: np.ndarray, table: np.ndarray) -> float:
    """Return the mean of F1 over the classes that occur, from class numbers (n,).

    >>> round(f1_macro(np.array([0, 1, 1]), np.array([0, 1, 0]), np.empty(0)), 4)
    0.6667
    """
    classes = np.unique(np.concatenate([code, prediction]))[:, None]
    true, said = code == classes, prediction == classes  # (K, n)
    return float((2 * (true & said).sum(axis=1) / (true.sum(axis=1) + said.sum(axis=1))).mean())


def roc_auc(code: np.ndarray, prediction: np.ndarray, table: np.ndarray) -> float:
    """Return the area under the curve of each class against the rest, averaged, from (n, K).

    It is the share of pairs, one of the class and one of the rest, in which the first has the
    higher probability. NaN where there is one class only.

    >>> roc_auc(np.array([0, 1, 1]), np.empty(0), np.array([[0.9, 0.1], [0.3, 0.7], [0.95, 0.05]]))
    0.5
    """
    present, n = np.unique(code), len(code)
    if len(present) < 2:
        return float("nan")
    ranks = rankdata(table[:, present], axis=0)  # (n, K)
    mine = code[:, None] == present
    count = mine.sum(axis=0)
    pairs = (ranks * mine).sum(axis=0) - count * (count + 1) / 2
    return float((pairs / (count * (n - count))).mean())


def log_loss(code: np.ndarray, prediction: np.ndarray, table: np.ndarray) -> float:
    """Return the mean of -log p of the true class, from probabilities (n, K).

    >>> round(log_loss(np.array([0, 1]), np.empty(0), np.array([[0.5, 0.5], [0.75, 0.25]])), 4)
    1.0397
    """
    total = table.sum(axis=1)
    own = table[np.arange(len(code)), code] / total
    least = np.finfo(table.dtype).eps
    return float(-np.log(np.clip(own, least, 1 - least)).mean())


CLASS_SCORES: dict[str, ClassScore] = {
    "f1": f1_macro,
    "roc_auc": roc_auc,
    "log_loss": log_loss,
    "calibration_error": lambda code, prediction, table: top_calibration_error(code, table),
}
