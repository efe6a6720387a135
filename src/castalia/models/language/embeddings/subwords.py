"""Parts of words: character n-grams, and vectors that are means over them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from castalia.data.tokenizers import character_ngrams
from castalia.models.language.embeddings.vector_rows import add_rows, move_rows

__all__ = ["Bags", "SubwordRows", "make_bags"]


@dataclass(frozen=True)
class Bags:
    """The rows that make up each word: its own, if it has one, and those of its n-grams.

    Attributes
    ----------
    rows : Tensor of int64, (total,)
    start, size : Tensor of int64, (words,)
        Where each word's rows begin, and how many they are.
    """

    rows: Tensor
    start: Tensor
    size: Tensor

    def of(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows of words, one behind the other, and where each begins."""
        size = self.size[words]
        first = size.cumsum(0) - size
        at = torch.arange(int(size.sum()), device=size.device)
        return self.rows[at + torch.repeat_interleave(self.start[words] - first, size)], first


def make_bags(
    words: Sequence[str], shortest: int, longest: int, buckets: int, *, own: int, known: bool
) -> Bags:
    """Hash the n-grams of words into ``buckets`` rows behind the ``own`` rows of whole words.

    With ``known``, the words are those that own a row.
    """
    found = [
        [*([place] if known else []), *(own + zlib.crc32(g.encode()) % buckets for g in grams)]
        for place, grams in enumerate(character_ngrams(word, (shortest, longest)) for word in words)
    ]
    size = torch.tensor([len(rows) for rows in found])
    flat = np.array([row for rows in found for row in rows], dtype=np.int64)
    return Bags(torch.from_numpy(flat), size.cumsum(0) - size, size)


@dataclass(frozen=True)
class SubwordRows:
    """Input vectors of words as means over rows of a table."""

    table: Tensor
    bags: Bags

    @property
    def dim(self) -> int:
        """D."""
        return self.table.shape[1]

    def expected(self, p: Tensor) -> Tensor:
        """A row is named for every word that it is part of."""
        named = torch.repeat_interleave(p, self.bags.size)
        found = p.new_zeros(len(self.table))
        # Rows that no word names never move; any bound will do.
        return add_rows(found, self.bags.rows, named).clamp_(min=1e-12)

    def gather(self, words: Tensor) -> Tensor:
        """Take means, once for each different word."""
        distinct, back = words.unique(return_inverse=True)
        rows, first = self.bags.of(distinct)
        return embedding_bag(rows, self.table, first, mode="mean")[back]

    def add(self, words: Tensor, moves: Tensor, lr: float, most: Tensor) -> None:
        """Move every part of a word as the word should move, as the authors' program does."""
        distinct, back = words.unique(return_inverse=True)
        total = moves.new_zeros(len(distinct), self.dim)
        add_rows(total, back, moves)
        rows, _ = self.bags.of(distinct)
        spread = total.repeat_interleave(self.bags.size[distinct], dim=0)
        move_rows(self.table, rows, spread, lr, most)
