"""How often words stand near each other: words represented by their contexts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

from castalia.errors import InvalidData, InvalidParameter

__all__ = ["count_cooccurrences"]


def count_cooccurrences(
    texts: Sequence[Any], size: int, *, window: int = 5, by_distance: bool = False
) -> csr_matrix:
    """Count how often each word stands within a window of each other, inside texts.

    Parameters
    ----------
    texts
        Texts as arrays of word numbers, such as a tokenizer gives.
    size
        V, the number of words.
    window
        Farthest distance that counts, in words, to both sides.
    by_distance
        Whether a pair d words apart counts 1/d, as for GloVe, instead of 1.

    Returns
    -------
    csr_matrix of float64, (V, V)
        Symmetric; row w holds the contexts of word w.

    Examples
    --------
    >>> count_cooccurrences([[0, 1, 0, 2]], size=3, window=1).toarray()
    array([[0., 2., 1.],
           [2., 0., 0.],
           [1., 0., 0.]])
    """
    if not isinstance(window, int) or window < 1:
        raise InvalidParameter(
            f"count_cooccurrences: `window` must be a whole number of at least 1; got {window!r}."
        )
    flat = np.concatenate([np.zeros(0, np.int64), *(np.asarray(t, np.int64) for t in texts)])
    if len(flat) and not 0 <= flat.min() <= flat.max() < size:
        raise InvalidData(
            f"count_cooccurrences: word numbers must be at least 0 and below `size`, {size}; got "
            f"{flat.min()} to {flat.max()}."
        )
    text = np.repeat(np.arange(len(texts)), [len(t) for t in texts])
    found = csr_matrix((size, size))
    for distance in range(1, window + 1):
        together = text[distance:] == text[:-distance]
        left, right = flat[:-distance][together], flat[distance:][together]
        worth = np.full(len(left), 1 / distance if by_distance else 1.0)
        found = found + coo_matrix((worth, (left, right)), shape=(size, size)).tocsr()
    return (found + found.T).tocsr()
