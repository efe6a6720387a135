"""Probabilities of n-grams and weights of contexts: all a language model by counting knows.

For a context c that was seen and a word w,

    p(w | c) = prob[c w]               where the n-gram c w was seen,
               weight[c] p(w | c')     elsewhere,

with c' the context without its first word; an unseen context gives way to c'. In a *flat* table,
p(w | c') is the uniform distribution, for unseen contexts too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from castalia.base.saved_values import register
from castalia.models.language.ngrams.ngram_counts import find_windows, walk
from castalia.models.language.word_corpus import Corpus

__all__ = ["Table", "values_at"]


@register
@dataclass(frozen=True)
class Table:
    """A model of order n over V words.

    Attributes
    ----------
    keys : list of n ndarrays
        Sorted keys of the k-grams, k = 1 … n.
    prob : list of n ndarrays
        The probability of the last word of each k-gram after the others; on the first level for
        all V words.
    weight : list of n - 1 ndarrays
        What is left for unseen words after each k-gram, k = 1 … n-1.
    size
        V.
    flat
        Whether unseen words share what is left evenly.
    even
        Probability of a word that is drawn evenly, 1 / number of outcomes.
    """

    keys: list[np.ndarray]
    prob: list[np.ndarray]
    weight: list[np.ndarray]
    size: int
    flat: bool
    even: float

    @property
    def order(self) -> int:
        """N."""
        return len(self.keys)

    def probabilities(self, corpus: Corpus) -> np.ndarray:
        """Return the probability of every word after those before it in its text, (N,)."""
        windows = find_windows(corpus, self.keys, self.size)
        p = self.prob[0][corpus.ids]
        for k in range(1, self.order):
            context = np.where(corpus.place >= k, np.roll(windows[k - 1], 1), -1)
            p = np.where(context >= 0, self._left(k, context) * (self.even if self.flat else p), p)
            if self.flat:
                p = np.where((context < 0) & (corpus.place >= k), self.even, p)
            hit = windows[k]
            p = np.where(hit >= 0, values_at(self.prob[k], hit), p)
        return p

    def _left(self, k: int, context: np.ndarray) -> np.ndarray:
        return values_at(self.weight[k - 1], context)

    def distribution(self, context: list[int], outcomes: np.ndarray) -> np.ndarray:
        """Return the probability of every word after a context, (V,)."""
        p = self.prob[0].copy()
        for k in range(1, min(self.order - 1, len(context)) + 1):
            node = walk(self.keys, self.size, context[-k:])
            if self.flat:
                p = np.where(outcomes, self.even, 0.0)
            if node >= 0:
                low, high = np.searchsorted(
                    self.keys[k], [node * self.size, (node + 1) * self.size]
                )
                p *= self.weight[k - 1][node]
                p[self.keys[k][low:high] - node * self.size] = self.prob[k][low:high]
        return p


def values_at(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return values at places; at -1, anything."""
    return values[index] if len(values) else np.zeros(len(index))
