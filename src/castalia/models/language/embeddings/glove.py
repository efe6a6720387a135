"""GloVe: vectors whose products are logarithms of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from castalia.base import Interval
from castalia.data.word_vectors.cooccurrence import count_cooccurrences
from castalia.errors import InvalidData
from castalia.models.language.embeddings.vector_rows import add_rows, start_vectors
from castalia.models.language.embeddings.word_vector_estimator import Texts, WordVectorEstimator
from castalia.utils.devices import cpu_scope
from castalia.utils.seeds import generator, seed_from

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
    dim
        Size D of the vectors.
    min_count
        Words seen more rarely are left out before windows are formed.
    tokenizer
        Cuts texts; one that is not fitted is fitted on them. None cuts at white space.
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

    Attributes
    ----------
    words_ : list of str
        The V words, most frequent first.
    counts_ : ndarray of shape (V,)
        How often each was seen.
    vectors_ : ndarray of float32, (V, D)
        w + w', as the authors advise.
    word_vectors_, context_vectors_ : ndarray of float32, (V, D + 1)
        w and w', with b and b' in the last column.
    losses_ : ndarray of shape (epochs,)
        Mean weighted squared error of a pair.
    tokenizer_ : Tokenizer or None
        The tokenizer in use.

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
        device = self._place()
        random = generator(seed_from(self.random_state), device=device)
        row, column, count = (
            torch.as_tensor(part, device=device)
            for part in (counted.row.astype(np.int64), counted.col.astype(np.int64), counted.data)
        )
        with cpu_scope(device, self.batch_size * self.dim * 100):
            word, context = self._descend(row, column, count, random)
        self.word_vectors_, self.context_vectors_ = word, context
        return (word + context)[:, :-1]

    def _descend(
        self, i: Tensor, j: Tensor, x: Tensor, random: torch.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        logs, weight = x.log().float(), (x / self.x_max).clamp(max=1).pow(self.alpha).float()
        tables = [start_vectors(len(self.words_), self.dim + 1, random) for _ in range(2)]
        squares = [torch.ones_like(table) for table in tables]
        losses = []
        for _ in range(self.epochs):
            order = torch.randperm(len(x), generator=random, device=x.device)
            total = torch.zeros((), device=x.device)
            for at in order.split(self.batch_size):
                index = i[at], j[at]
                total += self._step(tables, squares, index, logs[at], weight[at])
            losses.append(float(total) / len(x))
        self.losses_ = np.array(losses)
        return tables[0].cpu().numpy(), tables[1].cpu().numpy()

    def _step(
        self,
        tables: list[Tensor],
        squares: list[Tensor],
        index: tuple[Tensor, Tensor],
        logs: Tensor,
        weight: Tensor,
    ) -> Tensor:
        """Make one step of AdaGrad; return the loss summed over the pairs."""
        word, context = (table.index_select(0, at) for table, at in zip(tables, index, strict=True))
        bias = word[:, -1] + context[:, -1]
        error = (word[:, :-1] * context[:, :-1]).sum(dim=1) + bias - logs  # (B,)
        pull = (weight * error)[:, None]
        word[:, -1] = context[:, -1] = 1  # what the biases are multiplied by
        for table, square, at, other in zip(tables, squares, index, (context, word), strict=True):
            gradient = pull * other
            add_rows(square, at, gradient.square())
            gradient *= -self.lr / square.index_select(0, at).sqrt()
            add_rows(table, at, gradient)
        return (weight * error.square()).sum()
