"""Sparse matrices made dense a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["dense_blocks"]

NUMBERS = 2**24  # of a block
ROWS = 65_536


def dense_blocks(X: Any, numbers: int = NUMBERS) -> Iterator[np.ndarray]:
    """Yield the rows of a scipy CSR matrix as dense arrays, of about ``numbers`` numbers each.

    >>> from scipy.sparse import eye_array
    >>> [block.shape for block in dense_blocks(eye_array(5, format="csr"), numbers=10)]
    [(2, 5), (2, 5), (1, 5)]
    """
    step = max(1, min(ROWS, numbers // max(1, X.shape[1])))
    for start in range(0, X.shape[0], step):
        yield X[start : start + step].toarray()
