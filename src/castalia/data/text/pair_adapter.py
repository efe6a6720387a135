"""The adapter of texts and pairs of texts as encoders read them: ``begin a end b end``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.text.document_adapter import sentences_of
from castalia.data.text.named_tokenizers import choose_tokenizer, padding_of
from castalia.data.text.text_inputs import as_texts, first_row, refuse_empty
from castalia.data.text.token_rows import TokenRows, real_lengths
from castalia.data.tokenizers import Tokenizer, pad_batch
from castalia.data.tokenizers.special_frame import Frame, framed
from castalia.errors import InvalidData
from castalia.protocols import Rows

__all__ = ["PairAdapter", "as_pairs", "sentence_pairs"]

BLOCK = 1 << 17  # tokens of a block when predicting
MULTIPLE = 8  # rows are as long as the longest, rounded up to a multiple


def sentence_pairs(documents: Sequence[str]) -> list[tuple[str, str]]:
    """Return each sentence of each document with the one that follows it.

    >>> sentence_pairs(["It is late. Go. Now."])
    [('It is late.', 'Go.'), ('Go.', 'Now.')]
    """
    cut = [sentences_of(text) for text in documents]
    return [pair for parts in cut for pair in zip(parts[:-1], parts[1:], strict=True)]


def as_pairs(X: Any, owner: str) -> np.ndarray:
    """Return texts as an array of strings, (N,), or pairs of texts, (N, 2)."""
    if _is_pair(first_row(X)):
        for place, row in enumerate(X):
            if not _is_pair(row):
                raise InvalidData(
                    f"{owner}: every row must be a pair of texts, as the first one is; got {row!r} "
                    f"at place {place}."
                )
        both = [as_texts([row[k] for row in X], owner) for k in (0, 1)]
        found = np.array(list(zip(*both, strict=True)), dtype=object)
    else:
        found = np.array(as_texts(X, owner), dtype=object)
    refuse_empty(found if found.ndim == 1 else found[:, 0], owner)
    return found


def _is_pair(row: Any) -> bool:
    return isinstance(row, tuple | list | np.ndarray) and len(row) == 2


class PairAdapter(Adapter):
    """Texts or pairs of texts as token ids, filled up with padding; mask = (ids != padding).

    Parameters
    ----------
    tokenizer
        A tokenizer, fitted or not; a name of ``TOKENIZERS``; None: word pieces.
    context
        Most tokens of a row, begin and ends included; of a pair the longer text is cut first.
    apart
        Whether the two texts of a pair stay apart, rows (2, T) without begin and end, as the
        objective ``NextSentence`` wants them.

    Examples
    --------
    >>> adapter = PairAdapter("words", context=8)
    >>> texts = adapter.check([("so", "good"), ("bad", "so bad")], "fit")
    >>> adapter.fit(texts).rows(texts, np.float32).take(torch.tensor([0, 1]))
    tensor([[2, 5, 3, 6, 3, 0, 0, 0],
            [2, 4, 3, 5, 4, 3, 0, 0]])
    """

    def __init__(self, tokenizer: Any = None, *, context: int = 128, apart: bool = False) -> None:
        self.asked, self.context, self.apart = tokenizer, context, apart
        self.tokenizer: Tokenizer | None = None
        self.vocabulary = self.padding = self.end = self.length = 0
        self.begin: int | None = 0  # None: rows have none, as T5's
        self.double = False  # whether two end tokens stand between texts, as RoBERTa has it
        self.special = False  # whether special tokens written in texts are meant, as T5's sentinels
        self.owner = "PairAdapter"

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs to be built."""
        names = ("vocabulary", "padding", "begin", "end", "context")
        return {name: getattr(self, name) for name in names}

    @property
    def shape(self) -> torch.Size:
        """Shape of one row."""
        return torch.Size([1, self.length * (2 if self.apart else 1)])

    def check(self, X: Any, owner: str) -> np.ndarray:
        """Return texts, (N,), or pairs, (N, 2)."""
        self.owner, found = owner, as_pairs(X, owner)
        if self.apart and found.ndim == 1:
            raise InvalidData(
                f"{owner}: X must hold pairs of texts that follow each other; got {found[0]!r}. "
                "`castalia.data.text.sentence_pairs(documents)` makes them."
            )
        return found

    def fit(self, X: np.ndarray, sample_weight: np.ndarray | None = None) -> PairAdapter:
        """Learn the tokenizer and the length of a row."""
        texts = list(X.ravel())
        self.adopt(choose_tokenizer(self.asked, texts, self.owner, default="wordpiece"))
        longest = max(len(row) for row in self.encode(X))
        self.length = min(self.most, -(-longest // MULTIPLE) * MULTIPLE)
        return self

    def adopt(self, tokenizer: Tokenizer) -> PairAdapter:
        """Take over a fitted tokenizer."""
        self.tokenizer = tokenizer
        self.padding, self.vocabulary = padding_of(tokenizer)
        frame = tokenizer.frame
        if frame is None:
            self.begin, self.end = tokenizer.find_id("begin"), tokenizer.id_of("end")
        else:  # the file of another library says what stands around texts
            self.begin = frame.before[0] if frame.before else None
            self.end = frame.after[-1] if frame.after else tokenizer.id_of("end")
            self.double = len(frame.between) == 2
        self.length = self.most
        return self

    def exported(self) -> str:
        """Return the ``tokenizer.json`` of a folder, which says what stands around texts."""
        tokenizer: Any = self.tokenizer
        if tokenizer.frame is not None:
            return str(tokenizer.backend_.to_str())
        between = (self.end, self.end) if self.double else (self.end,)
        return framed(tokenizer.backend_, Frame(tuple(self._before()), between, (self.end,)))

    @property
    def most(self) -> int:
        """Most tokens of a row, or of each text of a pair that stays apart."""
        return (self.context - 3) // 2 if self.apart else self.context

    def encode(self, X: np.ndarray) -> list[list[int]]:
        """Return the ids of each row; of pairs that stay apart, first texts and then second."""
        if self.apart:
            return [row[: self.most] for row in self._ids(X.T.ravel())]
        if X.ndim == 1:
            room = self.context - 1 - len(self._before())
            rows = self._ids(X)
            return [[*self._before(), *row[:room], self.end] for row in rows]
        first, second = (self._ids(column) for column in X.T)
        return [self.join(a, b) for a, b in zip(first, second, strict=True)]

    def _ids(self, texts: np.ndarray) -> list[list[int]]:
        """Return the tokens of texts, without an end that is written there already."""
        tokenizer: Any = self.tokenizer
        rows: list[list[int]] = tokenizer.encode(list(texts), special=self.special)
        return [row[:-1] if row[-1:] == [self.end] else row for row in rows]

    def join(self, first: list[int], second: list[int]) -> list[int]:
        """Return ``begin a end b end``, cut to the context."""
        between = [self.end, self.end] if self.double else [self.end]
        room = self.room
        a = min(len(first), max(room // 2, room - len(second)))
        b = min(len(second), room - a)
        return [*self._before(), *first[:a], *between, *second[:b], self.end]

    @property
    def room(self) -> int:
        """Most tokens of the texts of a pair, without what stands around them."""
        return self.context - 1 - len(self._before()) - (2 if self.double else 1)

    def _before(self) -> list[int]:
        return [] if self.begin is None else [self.begin]

    def pad(self, rows: list[list[int]], length: int | None = None) -> Tensor:
        """Return rows of ids as one tensor, (N, T), or (N, 2, T) of texts apart."""
        ids = pad_batch(rows, self.padding, length=length, longer="cut").ids
        found = torch.from_numpy(ids.astype(np.int32))
        if not self.apart:
            return found
        return found.view(2, -1, found.shape[1]).transpose(0, 1).contiguous()

    def rows(self, X: np.ndarray, dtype: Any) -> Rows:
        """Return texts as rows of a training."""
        ids = self.pad(self.encode(X), self.length)
        lengths = real_lengths(ids, self.padding)
        return TokenRows(ids, lengths.amax(dim=1) if self.apart else lengths)

    def blocks(self, X: np.ndarray, dtype: Any) -> Iterator[Tensor]:
        """Yield rows of ids block by block, for prediction: each as long as it needs to be."""
        step = max(1, BLOCK // self.length)
        for start in range(0, len(X), step):
            yield self.pad(self.encode(X[start : start + step])).long()
