"""The adapter of sentences read in both directions: tokens between a begin and an end.

A token can come with the bytes it is written with, so that a network knows words it never met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.text.named_tokenizers import choose_tokenizer, padding_of
from castalia.data.text.text_adapter import TextAdapter
from castalia.data.text.text_inputs import first_row
from castalia.data.text.token_label_adapters import as_sentences
from castalia.data.text.token_rows import TokenRows
from castalia.data.tokenizers import Tokenizer
from castalia.errors import InvalidData
from castalia.protocols import Rows

__all__ = ["LETTERS", "SentenceAdapter", "spell"]

BLOCK = 1 << 16  # tokens of a block when predicting
MULTIPLE = 8  # rows are as long as the longest, rounded up to a multiple
# What stands in a spelling: 0 nothing, 1 + b a byte, then the ends of a word and whole marks.
BEGINS, ENDS, FIRST, LAST = 257, 258, 259, 260
LETTERS = 261  # numbers that a spelling may hold


class Sentence(NamedTuple):
    """What was read of a text.

    Attributes
    ----------
    ids
        Its tokens.
    numbers
        At the first piece of the n-th word n, elsewhere 0.
    pieces
        What each token stands for; nothing where tokens are not spelled.
    """

    ids: list[int]
    numbers: list[int]
    pieces: list[str]

    def cut(self, room: int) -> Sentence:
        """Return its first tokens."""
        return Sentence(self.ids[:room], self.numbers[:room], self.pieces[:room])


def spell(pieces: Sequence[str], width: int) -> np.ndarray:
    """Return how pieces are written, (n, width): ``BEGINS``, the bytes of UTF-8 + 1, ``ENDS``.

    Parameters
    ----------
    pieces
        Strings.
    width
        Numbers of a spelling; longer pieces lose their end, and the rest is 0.

    Examples
    --------
    >>> spell(["a", "abc"], 4)
    array([[257,  98, 258,   0],
           [257,  98,  99, 258]], dtype=int32)
    """
    found = np.zeros((len(pieces), width), dtype=np.int32)
    for row, piece in zip(found, pieces, strict=True):
        letters = np.frombuffer(piece.encode()[: width - 2], dtype=np.uint8)
        row[: len(letters) + 2] = [BEGINS, *(letters.astype(np.int32) + 1), ENDS]
    return found


class SentenceAdapter(Adapter):
    """Texts or lists of words as ``begin tokens end``, (N, 2 + W, T), filled up with padding.

    Along the second axis: the ids; at the first piece of the n-th word its number n, elsewhere 0 (a
    text's tokens are its words); and, where tokens are spelled, W numbers of ``spell``.

    Parameters
    ----------
    tokenizer
        A tokenizer, fitted or not; a name of ``TOKENIZERS``; None: words and punctuation marks.
    context
        Most tokens of a row, begin and end included.
    long
        What becomes of longer ones: ``"cut"`` keeps their beginning, ``"refuse"`` says which it is.
    spelled
        Most numbers of a spelling, at least 3; 0: tokens are not spelled.
    words
        Whether only lists of words will do.

    Examples
    --------
    >>> adapter = SentenceAdapter(context=8)
    >>> texts = adapter.check(["so good", "bad"], "fit")
    >>> adapter.fit(texts).rows(texts, None).take(torch.tensor([0, 1]))[:, 0]
    tensor([[2, 6, 5, 3, 0, 0, 0, 0],
            [2, 4, 3, 0, 0, 0, 0, 0]])
    """

    def __init__(
        self,
        tokenizer: Any = None,
        *,
        context: int = 128,
        long: str = "cut",
        spelled: int = 0,
        words: bool = False,
    ) -> None:
        self.asked, self.context, self.long = tokenizer, context, long
        self.spelled, self.words = spelled, words
        self.tokenizer: Tokenizer | None = None
        self.vocabulary = self.padding = self.begin = self.end = self.length = 0
        self.letters = 0  # W, as long as the longest word needs
        self.owner = "SentenceAdapter"

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs to be built."""
        return {name: getattr(self, name) for name in ("vocabulary", "padding", "letters")}

    @property
    def shape(self) -> torch.Size:
        """Shape of one row: it has a token at each of T places."""
        return torch.Size([1, self.length])

    def check(self, X: Any, owner: str) -> np.ndarray:
        """Return texts as strings, or lists of words as tuples of strings, (N,)."""
        self.owner = owner
        if self.words or isinstance(first_row(X), tuple | list | np.ndarray):
            return as_sentences(X, owner)
        return TextAdapter().check(X, owner)

    def fit(self, X: np.ndarray, sample_weight: np.ndarray | None = None) -> SentenceAdapter:
        """Learn the tokenizer and the sizes of a row."""
        texts = [text if isinstance(text, str) else " ".join(text) for text in X]
        self.adopt(choose_tokenizer(self.asked, texts, self.owner, default="words"))
        sentences = self.encode(X)
        if self.spelled and not self.letters:
            pieces = chain.from_iterable(pieces for _, _, pieces in sentences)
            self.letters = min(self.spelled, 2 + max(len(piece.encode()) for piece in pieces))
        longest = max(len(ids) for ids, _, _ in sentences) + 2
        self.length = min(self.context, -(-longest // MULTIPLE) * MULTIPLE)
        return self

    def adopt(self, tokenizer: Tokenizer) -> SentenceAdapter:
        """Take over a fitted tokenizer."""
        self.tokenizer, self.end = tokenizer, tokenizer.id_of("end")
        begin = tokenizer.find_id("begin")
        self.padding, self.vocabulary = padding_of(tokenizer)
        self.begin = self.end if begin is None else begin
        return self

    def encode(self, X: np.ndarray) -> list[Sentence]:
        """Return ids, numbers of words and pieces of each sentence, without begin and end."""
        listed = not isinstance(X[0], str)
        parts = list(chain.from_iterable(X)) if listed else list(X)
        ids = self._ids(parts)
        read = zip(ids, self._pieces(parts, ids), strict=True)
        found = []
        for place, text in enumerate(X):
            words = [next(read) for _ in text] if listed else [next(read)]
            sentence = _joined(words) if listed else _counted(*words[0])
            found.append(sentence.cut(self._room(place, len(sentence.ids))))
        return found

    def _ids(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of texts or words; one without any is the unknown token."""
        tokenizer: Any = self.tokenizer
        unknown = tokenizer.find_id("unknown")
        nothing = [self.end if unknown is None else unknown]
        return [row or nothing for row in tokenizer.encode(texts)]

    def _pieces(self, texts: list[str], ids: list[list[int]]) -> list[list[str]]:
        """Return what each token stands for in its text; nothing where tokens are not spelled."""
        if not self.spelled:
            return [[] for _ in texts]
        tokenizer: Any = self.tokenizer
        read = tokenizer.backend_.encode_batch(texts, add_special_tokens=False)
        cut = [
            [text[a:b] for a, b in found.offsets] for text, found in zip(texts, read, strict=True)
        ]
        return [
            pieces if len(pieces) == len(row) else [tokenizer.decode([i]) for i in row]
            for pieces, row in zip(cut, ids, strict=True)
        ]

    def _room(self, place: int, size: int) -> int:
        room = self.context - 2
        if self.long == "refuse" and size > room:
            raise InvalidData(
                f"{self.owner}: a text must have at most {room} tokens; text {place} has {size}. "
                "Raise `context`, or set long='cut' to keep its beginning."
            )
        return room

    def pad(self, X: np.ndarray, length: int | None = None) -> Tensor:
        """Return sentences as one tensor, (N, 2 + W, T)."""
        sentences = self.encode(X)
        sizes = np.array([len(ids) for ids, _, _ in sentences])
        steps = np.arange(sizes.max() + 2 if length is None else length)
        inside = (steps > 0) & (steps <= sizes[:, None])  # (N, T)
        found = np.zeros((len(X), 2 + self.letters, len(steps)), dtype=np.int32)
        found[:, 0] = self.padding
        found[:, 0, 0] = self.begin
        found[np.arange(len(X)), 0, sizes + 1] = self.end
        for axis in (0, 1):
            found[:, axis][inside] = [n for sentence in sentences for n in sentence[axis]]
        if self.letters:
            bytes_ = found[:, 2:].transpose(0, 2, 1)  # (N, T, W), a view
            bytes_[:, 0, 0], bytes_[np.arange(len(X)), sizes + 1, 0] = FIRST, LAST
            pieces = [piece for sentence in sentences for piece in sentence[2]]
            known, which = np.unique(np.array(pieces, dtype=object), return_inverse=True)
            bytes_[inside] = spell(known.tolist(), self.letters)[which]
        return torch.from_numpy(found)

    def rows(self, X: np.ndarray, dtype: Any) -> Rows:
        """Return sentences as rows of a training."""
        return TokenRows(self.pad(X, self.length))

    def blocks(self, X: np.ndarray, dtype: Any) -> Iterator[Tensor]:
        """Yield rows block by block, for prediction: each as long as it needs to be."""
        step = max(1, BLOCK // self.length)
        for start in range(0, len(X), step):
            yield self.pad(X[start : start + step]).long()


def _counted(ids: list[int], pieces: list[str]) -> Sentence:
    """Return a text whose tokens are its words."""
    return Sentence(ids, list(range(1, len(ids) + 1)), pieces)


def _joined(words: list[tuple[list[int], list[str]]]) -> Sentence:
    """Return a list of words, each of one or more pieces."""
    numbers = [
        number for n, (ids, _) in enumerate(words, 1) for number in [n] + [0] * (len(ids) - 1)
    ]
    ids, pieces = zip(*words, strict=True)
    return Sentence(list(chain(*ids)), numbers, list(chain(*pieces)))
