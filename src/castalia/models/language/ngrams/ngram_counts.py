"""Counted n-grams as sorted arrays.

An n-gram is a node of a tree whose level k holds the k-grams. A node's key is
``parent * V + word``: its parent is the (k-1)-gram without the last word, and keys are sorted, so
a node's children lie side by side and are found by bisection. A node's *suffix* is the (k-1)-gram
without the first word: what a model backs off to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from castalia.models.language.word_corpus import Corpus

__all__ = ["Level", "count_ngrams", "find_windows", "walk"]


@dataclass(frozen=True)
class Level:
    """The distinct k-grams of a corpus; M of them.

    Attributes
    ----------
    keys : ndarray of int64, (M,)
        Sorted; on the first level the words themselves.
    parent, word : ndarray of int64, (M,)
    suffix : ndarray of int64, (M,)
    counts : ndarray of int64, (M,)
    initial : ndarray of bool, (M,)
        Whether it ever began a text.
    """

    keys: np.ndarray
    parent: np.ndarray
    word: np.ndarray
    suffix: np.ndarray
    counts: np.ndarray
    initial: np.ndarray


def count_ngrams(corpus: Corpus, size: int, order: int) -> list[Level]:
    """Count the 1-grams to n-grams of a corpus with ``size`` words, inside its texts."""
    ids, place = corpus.ids, corpus.place
    words, none = np.arange(size), np.zeros(size, dtype=np.int64)
    initial = np.isin(words, ids[place == 0])
    levels = [Level(words, none, words, none, np.bincount(ids, minlength=size), initial)]
    nodes = ids  # the node of the k-gram that ends at each place
    for k in range(2, order + 1):
        at = np.flatnonzero(place >= k - 1)
        keys, first, found, counts = np.unique(
            nodes[at - 1] * size + ids[at],
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        initial = np.zeros(len(keys), dtype=bool)
        initial[found[place[at] == k - 1]] = True
        suffix = nodes[at[first]]
        levels.append(Level(keys, keys // size, keys % size, suffix, counts, initial))
        nodes = np.full(len(ids), -1)
        nodes[at] = found
    return levels


def find_windows(corpus: Corpus, keys: list[np.ndarray], size: int) -> list[np.ndarray]:
    """Return the node of the k-gram that ends at each place, (N,) for every k; -1 for unseen."""
    windows = [corpus.ids]
    for level in keys[1:]:
        before = np.roll(windows[-1], 1)
        known = (before >= 0) & (corpus.place >= len(windows))
        windows.append(_find(level, before * size + corpus.ids, known))
    return windows


def _find(keys: np.ndarray, wanted: np.ndarray, known: np.ndarray) -> np.ndarray:
    if not len(keys):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(known & (keys[at] == wanted), at, -1)


def walk(keys: list[np.ndarray], size: int, words: list[int]) -> int:
    """Return the node of an n-gram, or -1."""
    node = words[0]
    for level, word in zip(keys[1:], words[1:], strict=False):
        at = int(np.searchsorted(level, node * size + word))
        if at == len(level) or level[at] != node * size + word:
            return -1
        node = at
    return node
