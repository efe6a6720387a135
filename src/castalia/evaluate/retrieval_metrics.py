"""Scores of a search: whether what was looked for stands high among what was found.

recall@k   share of the relevant documents of a query among its first k
MRR        1 / rank of the first relevant document, 0 where there is none
nDCG@k     sum_i (gain of the i-th) / log2(i + 1), divided by the largest such sum

Each is a mean over queries. Shapes: Q queries, N documents.
References: 1999, Voorhees, The TREC-8 question answering track report; 2002, Järvelin, Kekäläinen,
Cumulated gain-based evaluation of IR techniques.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch

__all__ = ["mean_reciprocal_rank", "ndcg", "recall_at"]


def recall_at(y_true: Any, y_score: Any, *, k: int = 10) -> float:
    """Return the mean share of relevant documents among the k of the largest scores.

    Parameters
    ----------
    y_true
        Relevance of every document to every query, (Q, N), above 0 where it is relevant; or the
        number of the one right document of each query, (Q,).
    y_score
        Scores, (Q, N); of equal ones the first stands first.
    k
        How many documents are looked through.

    Examples
    --------
    >>> recall_at([[1, 0, 1]], [[0.9, 0.8, 0.1]], k=2)
    0.5
    """
    gains = _ranked(y_true, y_score, "recall_at", k) > 0
    return float((gains[:, :k].sum(axis=1) / gains.sum(axis=1)).mean())


def mean_reciprocal_rank(y_true: Any, y_score: Any) -> float:
    """Return the mean of 1 / rank of the first relevant document; arguments as ``recall_at``.

    Examples
    --------
    >>> mean_reciprocal_rank([1, 0], [[0.9, 0.8, 0.1], [0.5, 0.2, 0.1]])
    0.75
    """
    gains = _ranked(y_true, y_score, "mean_reciprocal_rank", 1) > 0
    return float((1 / (gains.argmax(axis=1) + 1)).mean())


def ndcg(y_true: Any, y_score: Any, *, k: int | None = None) -> float:
    """Return the mean normalised discounted gain of the first k documents.

    Parameters
    ----------
    y_true, y_score
        As for ``recall_at``; relevance may be of several grades.
    k
        How many documents are looked through; None: all.

    Examples
    --------
    >>> round(ndcg([[0, 2, 1]], [[0.9, 0.8, 0.1]]), 4)
    0.6697
    """
    gains = _ranked(y_true, y_score, "ndcg", 1 if k is None else k)
    discount = 1 / np.log2(np.arange(gains[:, :k].shape[1]) + 2)
    found, best = gains[:, :k] @ discount, -np.sort(-gains, axis=1)[:, :k] @ discount
    return float((found / best).mean())


def _ranked(y_true: Any, y_score: Any, owner: str, k: int) -> np.ndarray:
    """Return the relevance of the documents of each query in the order of their scores, (Q, N)."""
    if not isinstance(k, int) or k < 1:
        raise InvalidParameter(f"{owner}: `k` must be a whole number of at least 1; got {k!r}.")
    true, score = np.asarray(y_true), np.asarray(y_score, dtype=float)
    if score.ndim != 2 or true.shape not in (score.shape, score.shape[:1]) or not score.size:
        raise ShapeMismatch(
            f"{owner}: `y_score` must be (Q, N) and `y_true` the same or (Q,); got {score.shape} "
            f"and {true.shape}."
        )
    if true.ndim == 1:
        true = np.arange(score.shape[1]) == true[:, None]
    gains = np.take_along_axis(true.astype(float), np.argsort(-score, axis=1, kind="stable"), 1)
    lost = ~(gains > 0).any(axis=1)
    if lost.any() or (gains < 0).any() or not np.isfinite(gains).all():
        where = int(lost.argmax()) if lost.any() else int((~(gains >= 0)).any(axis=1).argmax())
        raise InvalidData(
            f"{owner}: every query must have a relevant document, and no relevance below 0; query "
            f"{where} does not. Leave it out."
        )
    return gains
