"""The adapter of texts as bags of n-grams: hashed words, runs of words and pieces of words.

Weight of n-gram g in a text: (1 + log tf) (1 + log((1 + N) / (1 + df))), scaled so that the runs of
words of a text, and its pieces of words, have length 1 each.

References: 2017, Joulin, Grave, Bojanowski, Mikolov, Bag of tricks for efficient text
classification, arXiv 1607.01759; 2009, Weinberger et al., Feature hashing for large scale multitask
learning, arXiv 0902.2206.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, hstack
from sklearn.preprocessing import normalize
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.text.text_inputs import as_texts, refuse_empty
from castalia.protocols import Rows

__all__ = ["BagRows", "NGramAdapter"]

BLOCK = 1024  # texts of a block when predicting
_TOKEN = re.compile(r"\w+|[^\w\s]")  # words, and signs one by one


class NGramAdapter(Adapter):
    """Texts as weighted n-grams: ids and weights, (N, T) each, filled up with weights of 0.

    n-grams are hashed and not kept; those that stand in no training text are left out.

    Parameters
    ----------
    words
        Longest run of words.
    characters
        Shortest and longest piece of a word between < and >; None: no pieces.
    min_count
        Texts that an n-gram must stand in.
    buckets
        Hash values; fewer save memory and let more n-grams share one.

    Attributes
    ----------
    vocabulary : int
        Number of different hash values in the training texts.

    Examples
    --------
    >>> adapter = NGramAdapter(words=1, characters=None)
    >>> texts = adapter.check(["so so good", "so bad"], "fit")
    >>> ids, weights = adapter.fit(texts).rows(texts, np.float32).take(torch.tensor([1]))
    >>> adapter.vocabulary, ids.shape, round(float(weights.square().sum()), 4)
    (3, torch.Size([1, 2]), 1.0)
    """

    def __init__(
        self,
        *,
        words: int = 2,
        characters: tuple[int, int] | None = (3, 6),
        min_count: int = 1,
        buckets: int = 2**22,
    ) -> None:
        self.words, self.characters = words, characters
        self.min_count, self.buckets = min_count, buckets
        self.known: list[np.ndarray] = []  # of each kind of n-gram: its hash values, in order
        self.rarity: list[np.ndarray] = []  # and the logarithm of how rare each is
        self.owner = "NGramAdapter"

    @property
    def vocabulary(self) -> int:
        """Number of different hash values in the training texts."""
        return sum(len(values) for values in self.known)

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs to be built."""
        return {"vocabulary": self.vocabulary}

    def check(self, X: Any, owner: str) -> np.ndarray:
        """Return texts as an array of strings, (N,)."""
        texts, self.owner = as_texts(X, owner), owner
        refuse_empty(texts, owner)
        return np.array(texts, dtype=object)

    def fit(self, X: np.ndarray, sample_weight: np.ndarray | None = None) -> NGramAdapter:
        """Learn which n-grams there are, and how rare each is."""
        self.known, self.rarity = [], []
        for hashes, begins in self._hashed(X):
            values, places = np.unique(hashes, return_inverse=True)
            texts = np.bincount(_counted(places, begins, len(values)).indices)
            kept = texts >= self.min_count
            self.known.append(values[kept])
            self.rarity.append(1 + np.log((1 + len(X)) / (1 + texts[kept])))
        return self

    def matrix(self, X: np.ndarray) -> csr_matrix:
        """Return the weights of the n-grams of each text, (N, vocabulary)."""
        parts = [
            _weighted(hashes, begins, known, rarity)
            for (hashes, begins), known, rarity in zip(
                self._hashed(X), self.known, self.rarity, strict=True
            )
        ]
        return hstack(parts, format="csr")

    def _hashed(self, X: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the hash values of all texts in a row, and where each text begins, a kind each."""
        tokens = [_TOKEN.findall(text.lower()) for text in X]
        yield _joined([_runs(row, self.words, self.buckets) for row in tokens])
        if self.characters is not None:
            low, high = self.characters
            pieces = lru_cache(None)(lambda word: _pieces(word, low, high, self.buckets))
            yield _joined([[h for word in row for h in pieces(word)] for row in tokens])

    def rows(self, X: np.ndarray, dtype: Any) -> Rows:
        """Return texts as rows of a training."""
        return BagRows(self.matrix(X).astype(dtype))

    def blocks(self, X: np.ndarray, dtype: Any) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield ids and weights block by block, for prediction."""
        for start in range(0, len(X), BLOCK):
            rows = self.rows(X[start : start + BLOCK], dtype)
            yield rows.take(torch.arange(len(rows)))


class BagRows(Rows):
    """Rows of a sparse matrix; a batch is places and values, (B, T) each.

    Examples
    --------
    >>> BagRows(csr_matrix([[0.0, 2.0], [0.0, 0.0]])).take(torch.tensor([0, 1]))
    (tensor([[1],
            [0]]), tensor([[2.],
            [0.]], dtype=torch.float64))
    """

    def __init__(self, matrix: csr_matrix) -> None:
        self.matrix = matrix

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def take(self, index: Tensor, width: int | None = None) -> tuple[Tensor, Tensor]:
        """Return the rows at these positions, filled up with place 0 and value 0."""
        part = self.matrix[index.cpu().numpy()]
        sizes = np.diff(part.indptr)
        real = np.arange(max(1, sizes.max(initial=0))) < sizes[:, None]  # (B, T)
        places = np.zeros(real.shape, dtype=np.int64)
        values = np.zeros(real.shape, dtype=part.dtype)
        places[real], values[real] = part.indices, part.data
        return torch.from_numpy(places), torch.from_numpy(values)


def _runs(tokens: Sequence[str], longest: int, buckets: int) -> list[int]:
    """Return the hash values of runs of words, up to so many."""
    return [
        zlib.crc32(" ".join(tokens[i : i + n]).encode()) % buckets
        for n in range(1, longest + 1)
        for i in range(len(tokens) - n + 1)
    ]


def _pieces(word: str, shortest: int, longest: int, buckets: int) -> list[int]:
    """Return the hash values of the pieces of a word between marks for its ends."""
    marked = f"<{word}>"
    return [
        zlib.crc32(marked[i : i + n].encode()) % buckets
        for n in range(shortest, longest + 1)
        for i in range(len(marked) - n + 1)
    ]


def _joined(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return lists one after the other, and where each begins."""
    begins = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    values = np.fromiter((h for row in rows for h in row), dtype=np.int64, count=begins[-1])
    return values, begins


def _weighted(
    hashes: np.ndarray, begins: np.ndarray, known: np.ndarray, rarity: np.ndarray
) -> csr_matrix:
    """Return the weights of one kind of n-grams, rows of length 1."""
    size = len(known)
    places = np.searchsorted(known, hashes).clip(max=max(size - 1, 0))
    seen = known[places] == hashes if size else np.zeros(len(hashes), dtype=bool)
    begins = np.concatenate([[0], np.cumsum(seen)])[begins]
    found = _counted(places[seen], begins, size)
    found.data = (1 + np.log(found.data)) * rarity[found.indices]
    return normalize(found, copy=False)


def _counted(places: np.ndarray, begins: np.ndarray, size: int) -> csr_matrix:
    """Return how often each place stands in each text, (N, size)."""
    found = csr_matrix((np.ones(len(places)), places, begins), shape=(len(begins) - 1, size))
    found.sum_duplicates()
    return found
