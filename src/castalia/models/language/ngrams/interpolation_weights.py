"""Weights of a linear interpolation, fitted to text that was not counted.

p = sum_k w_k ML_k over the orders k = 0 … n, with order 0 the uniform distribution and all w_k
summing to one. They are kept as shares m_k, what order k takes of what the higher ones left:
w_n = m_n, w_(n-1) = (1 - m_n) m_(n-1), …; after an unseen context the orders below share alike.
Reference: 1980, Jelinek, Mercer, Interpolated estimation of Markov source parameters.
"""

from __future__ import annotations

import numpy as np

from castalia.models.language.ngrams.ngram_counts import find_windows
from castalia.models.language.ngrams.ngram_table import values_at
from castalia.models.language.ngrams.smoothing_methods import Counted
from castalia.models.language.word_corpus import Corpus

__all__ = ["fit_shares", "shares_of", "weights_of"]

STEPS, TOLERANCE = 200, 1e-5


def weights_of(shares: np.ndarray) -> np.ndarray:
    """Return the weights (w_0 … w_n) of shares (m_1 … m_n)."""
    passed = np.cumprod(1 - shares[::-1])[::-1]  # what the orders from k up leave
    above = np.append(passed[1:], 1.0)
    return np.append(passed[0], shares * above)


def shares_of(weights: np.ndarray) -> np.ndarray:
    """Return the shares (m_1 … m_n) of weights (w_0 … w_n)."""
    reached = np.cumsum(weights)[1:]
    return np.divide(weights[1:], reached, out=np.zeros(len(reached)), where=reached > 0)


def fit_shares(counted: Counted, held_out: Corpus) -> np.ndarray:
    """Return the shares (m_1 … m_n) that make held-out text most probable, by EM."""
    likely, seen = _orders(counted, held_out)  # (n + 1, T), (n, T)
    shares = np.full(len(seen), 0.5)
    for _ in range(STEPS):
        reach = np.where(seen, 1 - shares[:, None], 1.0)
        above = np.ones_like(likely)  # the chance that the orders above k pass on
        above[:-1] = np.cumprod(reach[::-1], axis=0)[::-1]
        own = np.concatenate([np.ones((1, likely.shape[1])), np.where(seen, shares[:, None], 0.0)])
        blame = own * above * likely
        blame /= np.maximum(blame.sum(axis=0), 1e-300)
        below = np.cumsum(blame, axis=0)[1:]
        taken, whole = (blame[1:] * seen).sum(axis=1), (below * seen).sum(axis=1)
        fresh = np.divide(taken, whole, out=shares.copy(), where=whole > 0)
        done = np.abs(fresh - shares).max() < TOLERANCE
        shares = fresh
        if done:
            break
    return shares


def _orders(counted: Counted, corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Return what each order says of every word, and whether it knew the context."""
    size = len(counted.outcomes)
    windows = find_windows(corpus, [level.keys for level in counted.levels], size)
    rows, known = [counted.even[corpus.ids]], []
    for k in range(len(counted.levels)):
        counts = counted.counts(k)
        total = counted.totals(k, counts)
        context = np.where(corpus.place >= k, np.roll(windows[k - 1], 1), -1) if k else 0
        context = np.broadcast_to(context, corpus.ids.shape)
        whole = np.where(context >= 0, values_at(total, context), 0.0)
        hits = np.where(windows[k] >= 0, values_at(counts, windows[k]), 0)
        rows.append(hits / np.maximum(whole, 1))
        known.append(whole > 0)
    wanted = counted.outcomes[corpus.ids]
    return np.stack(rows)[:, wanted], np.stack(known)[:, wanted]
