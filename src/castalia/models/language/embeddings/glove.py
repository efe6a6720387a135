"""GloVe: vectors whose products are logarithms of counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import torch
from torch import Tensor

from castalia.base import Interval
from castalia.data.word_vectors.cooccurrence import count_cooccurrences
from castalia.errors import InvalidData
from castalia.models.language.embeddings.epoch_runner import Tables
from castalia.models.language.embeddings.vector_rows import add_rows, start_vectors
from castalia.models.language.embeddings.word_vector_estimator import Texts, WordVectorEstimator
from castalia.utils.devices import cpu_scope
from castalia.utils.seeds import generator

__all__ = ["GloVe"]


@dataclass(kw_only=True, eq=False, repr=False)
class GloVe(WordVectorEstimator):
    """Word vectors whose products are the logarithms of how often words stand together.

    Minimises sum_ij f(X_ij) (w_i . w'_j + b_i + b'_j - log X_ij)^2 over the pairs that were
    counted, f(x) = min(1, (x / x_max)^alpha): a weighted log-bilinear regression, not a network.
    Counting needs one pass over the texts, whatever the number of epochs; `Word2Vec` needs no
    memory for the counts and mostly gives a little better vectors from as much text.

    Parameters
    ----------
    window
        Farthest distance of words that stand together; a pair d words apart counts 1/d.
    x_max
        Count from which on pairs have the full weight 1.
    alpha
        Exponent of the weights below; larger ones take rare pairs less seriously.
    epochs
        Passes over the counted pairs.
    batch_size
        Pairs of one step.
    lr
        Learning rate of AdaGrad.
    dim, min_count, tokenizer
        As for ``Word2Vec``.

    Attributes
    ----------
    vectors_ : ndarray of float32, (V, D)
        w + w', as the authors advise.
    word_vectors_, context_vectors_ : ndarray of float32, (V, D + 1)
        w and w', with b and b' in the last column.
    losses_ : ndarray of shape (epochs,)
        Mean weighted squared error of a pair.
    words_, counts_, tokenizer_, history_, n_iter_, stopped_, settings_, run_
        As for ``Word2Vec``.

    Shapes
    ------
    X: N texts, as strings or lists of words; ``transform`` gives (N, D), the mean of each text.

    Notes
    -----
    An epoch costs O(n D) for n pairs that were counted, memory 4 V D + 2 n numbers. Departs from
    the authors' program: batches instead of single pairs; the squares that AdaGrad divides by
    include those of the batch, which keeps the sum of many moves of one row in bounds.

    References
    ----------
    2014, Pennington, Socher, Manning, GloVe: global vectors for word representation.

    See Also
    --------
    Word2Vec : prediction instead of counts.
    castalia.data.word_vectors.cooccurrence.count_cooccurrences : the counts.

    Examples
    --------
    >>> texts = ["red green blue red blue green", "dog cat cow cat dog cow"] * 40
    >>> model = GloVe(dim=8, min_count=1, epochs=10, random_state=0).fit(texts)
    >>> model.similarity("red", "blue") > model.similarity("red", "cow")
    True
    """

    window: Annotated[int, Interval(1, whole=True)] = 10
    x_max: Annotated[float, Interval(0, closed="neither")] = 100.0
    alpha: Annotated[float, Interval(0)] = 0.75
    epochs: Annotated[int, Interval(1, whole=True)] = 15
    batch_size: Annotated[int, Interval(1, whole=True)] = 8192
    lr: Annotated[float, Interval(0, closed="neither")] = 0.05

    def _learn(self, texts: Texts) -> np.ndarray:
        size = len(self.words_)
        ends = np.flatnonzero(np.diff(texts.text)) + 1
        counted = count_cooccurrences(
            np.split(texts.ids, ends), size, window=self.window, by_distance=True
        ).tocoo()
        if not counted.nnz:
            raise InvalidData(
                "GloVe: some words must stand within one window; got texts of one known word each."
            )
        device, recorder = self._place(), self._recorder(texts)
        random = generator(recorder.seed, device=device)
        row, column, count = (
            torch.as_tensor(part, device=device)
            for part in (counted.row.astype(np.int64), counted.col.astype(np.int64), counted.data)
        )
        weight = (count / self.x_max).clamp(max=1).pow(self.alpha).float()
        tables = [start_vectors(size, self.dim + 1, random) for _ in range(2)]
        pairs = CountedPairs((row, column), count.log().float(), weight, tables)
        passes = GloVePasses(pairs, self.batch_size, self.lr, random)
        self._train(passes, random, recorder)
        self.word_vectors_, self.context_vectors_ = (table.cpu().numpy() for table in tables)
        return (self.word_vectors_ + self.context_vectors_)[:, :-1]


class CountedPairs(NamedTuple):
    """Pairs of words that were counted, and the tables of their vectors."""

    rows: tuple[Tensor, Tensor]  # of the word and of the other one, (n,) each
    logs: Tensor  # (n,)
    weight: Tensor  # (n,)
    tables: list[Tensor]  # two of (V, D + 1), a bias at the end of each row


class GloVePasses:
    """Passes over the pairs by AdaGrad; see ``EpochRunner``."""

    def __init__(
        self, pairs: CountedPairs, batch_size: int, lr: float, generator: torch.Generator
    ) -> None:
        self.pairs, self.batch_size, self.lr, self.random = pairs, batch_size, lr, generator
        self.squares = [torch.ones_like(table) for table in pairs.tables]
        names = ("words", "contexts")
        self.tables = Tables(
            dict(zip(names, pairs.tables, strict=True)),
            {f"{n}_squares": s for n, s in zip(names, self.squares, strict=True)},
        )

    def rate(self, progress: float) -> float:
        """Return the learning rate, which is constant."""
        return self.lr

    def loss(self, seen: Tensor) -> float:
        """Return the mean loss of a pair."""
        return float(seen[0]) / len(self.pairs.logs)

    @contextmanager
    def batches(self) -> Iterator[Sequence[Tensor]]:
        """Yield the pairs in random order."""
        n, table = len(self.pairs.logs), self.pairs.tables[0]
        with cpu_scope(table.device, self.batch_size * (table.shape[1] - 1) * 100):
            order = torch.randperm(n, generator=self.random, device=table.device)
            yield order.split(self.batch_size)

    def step(self, batch: Tensor, number: int, lr: float, seen: Tensor) -> Tensor:
        """Make one step of AdaGrad."""
        index = self.pairs.rows[0][batch], self.pairs.rows[1][batch]
        tables, weight = self.pairs.tables, self.pairs.weight[batch]
        word, context = (table.index_select(0, at) for table, at in zip(tables, index, strict=True))
        bias = word[:, -1] + context[:, -1]
        error = (word[:, :-1] * context[:, :-1]).sum(dim=1) + bias - self.pairs.logs[batch]  # (B,)
        pull = (weight * error)[:, None]
        word[:, -1] = context[:, -1] = 1  # what the biases are multiplied by
        found = zip(tables, self.squares, index, (context, word), strict=True)
        for table, square, at, other in found:
            gradient = pull * other
            add_rows(square, at, gradient.square())
            gradient *= -lr / square.index_select(0, at).sqrt()
            add_rows(table, at, gradient)
        total = (weight * error.square()).sum()
        seen[0] += total
        return total / len(batch)
