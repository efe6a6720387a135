"""Bootstrap samples: as many draws with replacement as there are rows.

A row is in such a sample with probability 1 - (1 - 1/N)^N, which tends to 1 - 1/e = 0.632.
Reference: 1979, Efron, Bootstrap methods: another look at the jackknife, Annals of Statistics 7.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from castalia.data import read

__all__ = ["bootstrap_counts", "by_content", "row_codes"]

MOST_DRAWS = 100  # a row, on average; more differ too little from drawing without chance


def bootstrap_counts(
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    samples: int,
    random: np.random.Generator,
    classes: int = 0,
) -> np.ndarray:
    """Return how often each of some samples holds each row, (samples, N).

    Rows are laid out on a line, each as long as its weight, and numbers fall on it evenly. The rows
    are laid out by content, so a row of weight 2 and a row written twice are drawn alike, whatever
    the order of the table.

    Parameters
    ----------
    X, y
        Rows and targets.
    weight
        How often each row counts; the number of draws is their sum, and at least the number of
        rows.
    samples
        Number of samples.
    random
        Source of the draws.
    classes
        Draw a sample again until it holds this many distinct targets.

    Examples
    --------
    >>> X, y = np.arange(1000.0)[:, None], np.zeros(1000)
    >>> counts = bootstrap_counts(X, y, samples=1, random=np.random.default_rng(0))
    >>> int(counts.sum()), float((counts > 0).mean())
    (1000, 0.633)
    """
    n = len(y)
    order = by_content(X, y)
    line = np.cumsum(np.ones(n) if weight is None else weight[order])
    draws = int(np.clip(round(line[-1]), n, MOST_DRAWS * n))
    counts = np.zeros((samples, n), dtype=np.int64)
    for sample in counts:
        while not sample.any() or (classes > 1 and len(np.unique(y[sample > 0])) < classes):
            hits = np.searchsorted(line, random.random(draws) * line[-1], side="right")
            sample[order] = np.bincount(np.minimum(hits, n - 1), minlength=n)
    return counts


def by_content(X: Any, y: np.ndarray) -> np.ndarray:
    """Return an order of the rows that depends on what is in them; streams keep theirs."""
    columns = list(y.reshape(len(y), -1).T)
    if isinstance(X, np.ndarray):
        return np.lexsort((*columns, *X.T))
    if issparse(X):
        return np.lexsort((*columns, row_codes(X)))
    data = read(X)
    if data.streaming:
        return np.arange(len(y))
    return np.lexsort((*columns, *(_sortable(data.column(name)) for name in data.columns)))


def row_codes(X: Any) -> np.ndarray:
    """Return a number for each row of a CSR matrix, the same for equal rows and no others.

    >>> from scipy.sparse import csr_array
    >>> row_codes(csr_array([[0.0, 2.0], [1.0, 0.0], [0.0, 2.0]])).tolist()
    [1, 0, 1]
    """
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    cells = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    rows = [X.indices[i:j].tobytes() + X.data[i:j].tobytes() for i, j in cells]
    return np.unique(np.array(rows, dtype=object), return_inverse=True)[1]


def _sortable(column: np.ndarray) -> np.ndarray:
    return column.astype(str) if column.dtype.kind == "O" else column
