"""Adapters of texts whose tokens are marked: words with tags, questions with their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.text.named_tokenizers import choose_tokenizer
from castalia.data.text.pair_adapter import MULTIPLE, PairAdapter, as_pairs
from castalia.data.text.token_rows import TokenRows, real_lengths
from castalia.errors import InvalidData
from castalia.protocols import Rows
from castalia.utils.text import shorten

__all__ = ["SpanAdapter", "WordAdapter", "as_sentences"]

BLOCK = 256  # rows of a block when predicting


def as_sentences(X: Any, owner: str, what: str = "X") -> np.ndarray:
    """Return lists of words as an array of tuples of strings, (N,)."""
    if isinstance(X, str) or not hasattr(X, "__len__") or not len(X):
        raise InvalidData(
            f"{owner}: {what} must hold at least one list of words; got {shorten(repr(X))}."
        )
    found = np.empty(len(X), dtype=object)
    for place, words in enumerate(X):
        plain = not isinstance(words, str) and hasattr(words, "__len__") and len(words) > 0
        if not plain or not all(isinstance(word, str) for word in words):
            raise InvalidData(
                f"{owner}: a text must be a list of words, at least one; got "
                f"{shorten(repr(words), 40)} at place {place} of {what}."
            )
        found[place] = tuple(str(word) for word in words)
    return found


class _MarkedAdapter(Adapter):
    """Rows of ids with marks beside them, (N, M, T); reading is left to a ``PairAdapter``."""

    marks = 2

    def __init__(self, reader: PairAdapter | None = None) -> None:
        self.reader = PairAdapter() if reader is None else reader

    @property
    def tokenizer(self) -> Any:
        """The fitted tokenizer."""
        return self.reader.tokenizer

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs to be built."""
        return self.reader.extra

    @property
    def shape(self) -> torch.Size:
        """Shape of one row: it has a token at each of T places."""
        return torch.Size([1, self.reader.length])

    def encode(self, X: np.ndarray) -> list[np.ndarray]:
        """Return ids and marks of each row, (M, T)."""
        raise NotImplementedError

    def _fit(self, X: np.ndarray, texts: list[str]) -> None:
        reader = self.reader
        reader.adopt(choose_tokenizer(reader.asked, texts, reader.owner, default="wordpiece"))
        longest = max(row.shape[1] for row in self.encode(X))
        reader.length = min(reader.context, -(-longest // MULTIPLE) * MULTIPLE)

    def pad(self, rows: list[np.ndarray], length: int) -> Tensor:
        """Return rows as one tensor, (N, M, T)."""
        found = np.zeros((len(rows), self.marks, length), dtype=np.int32)
        found[:, 0] = self.reader.padding
        for place, row in enumerate(rows):
            found[place, :, : row.shape[1]] = row[:, :length]
        return torch.from_numpy(found)

    def rows(self, X: np.ndarray, dtype: Any) -> Rows:
        """Return texts as rows of a training."""
        x = self.pad(self.encode(X), self.reader.length)
        return TokenRows(x, real_lengths(x[:, 0], self.reader.padding))

    def blocks(self, X: np.ndarray, dtype: Any) -> Iterator[Tensor]:
        """Yield rows block by block, for prediction: each as long as it needs to be."""
        for start in range(0, len(X), BLOCK):
            rows = self.encode(X[start : start + BLOCK])
            yield self.pad(rows, max(row.shape[1] for row in rows)).long()

    def state(self) -> dict[str, Any]:
        """Return what saving needs."""
        return {"reader": self.reader}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Any:
        """Return an adapter from its saved state."""
        return cls(state["reader"])


class WordAdapter(_MarkedAdapter):
    """Lists of words as ids, and at the first piece of the n-th word its number n, (N, 2, T).

    Parameters
    ----------
    reader
        Says how texts are read.

    Examples
    --------
    >>> adapter = WordAdapter(PairAdapter("words", context=8))
    >>> X = adapter.check([["so", "good"]], "fit")
    >>> adapter.fit(X).rows(X, None).take(torch.tensor([0]))[0, 1]
    tensor([0, 1, 2, 0, 0, 0, 0, 0])
    """

    def check(self, X: Any, owner: str) -> np.ndarray:
        """Return lists of words, (N,)."""
        self.reader.owner = owner
        return as_sentences(X, owner)

    def fit(self, X: np.ndarray, sample_weight: np.ndarray | None = None) -> WordAdapter:
        """Learn the tokenizer and the length of a row."""
        self._fit(X, [" ".join(words) for words in X])
        return self

    def encode(self, X: np.ndarray) -> list[np.ndarray]:
        """Return ids and numbers of words of each row, (2, T)."""
        reader, found = self.reader, []
        unknown = self.tokenizer.find_id("unknown")
        pieces = iter(self.tokenizer.encode([word for words in X for word in words]))
        for words in X:
            ids, numbers = [reader.begin], [0]
            for number in range(1, len(words) + 1):
                word = next(pieces) or [reader.end if unknown is None else unknown]
                ids += word
                numbers += [number] + [0] * (len(word) - 1)
            room = reader.context - 1
            found.append(np.array([[*ids[:room], reader.end], [*numbers[:room], 0]]))
        return found


class SpanAdapter(_MarkedAdapter):
    """Pairs (question, text) as ids, and where each piece of the text begins and ends, (N, 3, T).

    Places among the characters count from 1, so that 0 marks what is not of the text.

    Parameters
    ----------
    reader
        Says how texts are read.

    Examples
    --------
    >>> adapter = SpanAdapter(PairAdapter("words", context=8))
    >>> X = adapter.check([("who", "it was me")], "fit")
    >>> adapter.fit(X).rows(X, None).take(torch.tensor([0]))[0, 1:]
    tensor([[0, 0, 0, 1, 4, 8, 0, 0],
            [0, 0, 0, 2, 6, 9, 0, 0]])
    """

    marks = 3

    def check(self, X: Any, owner: str) -> np.ndarray:
        """Return pairs of texts, (N, 2)."""
        self.reader.owner, found = owner, as_pairs(X, owner)
        if found.ndim != 2:
            raise InvalidData(
                f"{owner}: a text must be a pair (question, text); got {found[0]!r} alone."
            )
        return found

    def fit(self, X: np.ndarray, sample_weight: np.ndarray | None = None) -> SpanAdapter:
        """Learn the tokenizer and the length of a row."""
        self._fit(X, list(X.ravel()))
        return self

    def encode(self, X: np.ndarray) -> list[np.ndarray]:
        """Return ids, beginnings and ends of each row, (3, T)."""
        reader, backend, found = self.reader, self.tokenizer.backend_, []
        questions = self.tokenizer.encode(list(X[:, 0]))
        texts = backend.encode_batch(list(X[:, 1]), add_special_tokens=False)
        for question, text in zip(questions, texts, strict=True):
            room = reader.room
            question = question[: room // 2]
            ids = text.ids[: room - len(question)]
            places = np.array(text.offsets[: len(ids)]).reshape(-1, 2).T  # (2, pieces)
            joined = reader.join(question, list(ids))
            row = np.zeros((3, len(joined)), dtype=np.int64)
            row[0] = joined
            first = len(joined) - 1 - len(ids)
            row[1, first:-1], row[2, first:-1] = places[0] + 1, places[1]
            found.append(row)
        return found
