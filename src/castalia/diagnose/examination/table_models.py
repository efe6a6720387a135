"""Rows as a table, and the models of scikit-learn that are quick on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
from torch import Tensor

from castalia.diagnose.examination.effort import MOST_COLUMNS, TREES

__all__ = ["Table", "boosting", "columns_of", "guess", "linear", "one_thread"]

LIMIT = 10.0  # standard deviations beyond which a value says no more


def columns_of(x: Tensor, tokens: bool) -> np.ndarray:
    """Return rows as a table of numbers: values side by side, or how often each token occurs."""
    flat = x.reshape(len(x), -1)
    if not tokens:
        return flat.cpu().double().numpy()
    _, code = torch.unique(flat, return_inverse=True)
    counts = torch.zeros(len(x), int(code.max()) + 1, dtype=torch.float64, device=x.device)
    counts.scatter_add_(1, code, torch.ones_like(code, dtype=torch.float64))
    return counts.cpu().numpy()


@contextmanager
def one_thread() -> Iterator[None]:
    """Run scikit-learn on one thread: on a few thousand rows, others cost more in waiting."""
    with threadpool_limits(1):
        yield


class Table:
    """Scales columns and sums up wide rows; learned from some rows, applied to others.

    Missing values become the mean of their column.
    """

    def __init__(self, X: np.ndarray, seed: int = 0) -> None:
        finite = np.where(np.isfinite(X), X, np.nan)
        self._scale = StandardScaler().fit(finite)
        self._wide = X.shape[1] > MOST_COLUMNS
        if self._wide:
            count = min(64, len(X) - 1)
            self._pca = PCA(count, svd_solver="randomized", random_state=seed)
            self._pca.fit(self._scaled(finite))

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        scaled = self._scale.transform(np.where(np.isfinite(X), X, np.nan))
        return np.clip(np.nan_to_num(scaled), -LIMIT, LIMIT)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return the columns that models are given."""
        scaled = self._scaled(X)
        return self._pca.transform(scaled) if self._wide else scaled


def guess(task: str) -> Any:
    """Return the model that uses no column."""
    return DummyRegressor() if task == "regression" else DummyClassifier(strategy="most_frequent")


def linear(task: str) -> Any:
    """Return a linear model for a scaled table."""
    if task == "regression":
        return Ridge(1.0)
    if task == "multilabel":
        return RidgeClassifier(1.0)
    return LogisticRegression(C=1.0, max_iter=100, tol=1e-3)


def boosting(task: str, outputs: int, seed: int = 0) -> Any:
    """Return boosted trees, few enough to be quick; None where there are several targets."""
    if task == "multilabel" or (task == "regression" and outputs > 1):
        return None
    settings = {"early_stopping": False, "random_state": seed, "max_leaf_nodes": 15}
    if task == "regression":
        return HistGradientBoostingRegressor(max_iter=100, **settings)
    rounds = max(8, min(100, TREES // (outputs if outputs > 2 else 1)))
    return HistGradientBoostingClassifier(max_iter=rounds, learning_rate=0.2, **settings)
