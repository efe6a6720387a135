"""Texts as one long array of word numbers, whatever they came as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from castalia.base.saved_values import register
from castalia.data.tokenizers import Tokenizer
from castalia.data.utf8_files import read_text
from castalia.errors import InvalidData
from castalia.utils.text import shorten

__all__ = [
    "BEGIN",
    "END",
    "UNKNOWN",
    "Corpus",
    "Vocabulary",
    "kind_of",
    "learn_words",
    "make_vocabulary",
    "opened",
    "pack",
    "tokenizer_vocabulary",
    "without_end",
]

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"


@dataclass(frozen=True)
class Corpus:
    """Texts one behind the other.

    Attributes
    ----------
    ids : ndarray of int64, (N,)
        Words of all texts, signs for beginning and end included.
    place : ndarray of int64, (N,)
        How many words stand before each in its text.
    text : ndarray of int64, (N,)
        The number of each word's text.
    n_texts
        Number of texts; an empty one may have no word.
    """

    ids: np.ndarray
    place: np.ndarray
    text: np.ndarray
    n_texts: int

    def __len__(self) -> int:
        return self.n_texts

    def take(self, texts: np.ndarray) -> Corpus:
        """Return the texts at which a mask, (n_texts,), is true."""
        kept = texts[self.text]
        return Corpus(self.ids[kept], self.place[kept], self.text[kept], self.n_texts)


@register
@dataclass(frozen=True)
class Vocabulary:
    """Numbers of words: those of a tokenizer, of a list of words, or numbers as they are.

    Attributes
    ----------
    words
        The words by number, ``<s>`` and ``</s>`` last; None where texts are numbers.
    size
        How many numbers there are, ``<s>`` and ``</s>`` included.
    outcomes : ndarray of bool, (size,)
        Which of them a text may hold; not ``<s>``, nor a tokenizer's special tokens.
    unknown
        The number of unknown words, or -1.
    """

    words: list[str] | None
    size: int
    outcomes: np.ndarray
    unknown: int

    @property
    def begin(self) -> int:
        """Number of ``<s>``."""
        return self.size - 2

    @property
    def end(self) -> int:
        """Number of ``</s>``."""
        return self.size - 1


def make_vocabulary(words: list[str] | None, size: int, reserved: Sequence[int]) -> Vocabulary:
    """Return a vocabulary of ``size`` numbers and the two signs, without some as outcomes."""
    outcomes = np.ones(size + 2, dtype=bool)
    outcomes[[*reserved, size]] = False
    unknown = words.index(UNKNOWN) if words is not None and UNKNOWN in words else -1
    return Vocabulary(words and [*words, BEGIN, END], size + 2, outcomes, unknown)


def without_end(vocabulary: Vocabulary) -> Vocabulary:
    """Return the vocabulary of texts without boundaries, where ``</s>`` never comes."""
    outcomes = vocabulary.outcomes.copy()
    outcomes[vocabulary.end] = False
    return replace(vocabulary, outcomes=outcomes)


def learn_words(texts: Sequence[Sequence[str]], min_count: int) -> Vocabulary:
    """Return the vocabulary of texts cut into words; rare ones are unknown."""
    counts = Counter(chain.from_iterable(texts))
    ignored = (UNKNOWN, BEGIN, END)
    common = [(-n, w) for w, n in counts.items() if n >= min_count and w not in ignored]
    words = [UNKNOWN, *(word for _, word in sorted(common))]
    return make_vocabulary(words, len(words), ())


def tokenizer_vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    """Return the vocabulary of a fitted tokenizer."""
    words = list(tokenizer.vocabulary)
    unknown = tokenizer.find_id("unknown")
    special = [tokenizer.find_id(token) for token in tokenizer.special]
    made = make_vocabulary(words, len(words), [i for i in special if i not in (None, unknown)])
    return replace(made, unknown=-1 if unknown is None else unknown)


def opened(X: Any, owner: str) -> Any:
    """Return texts with those read that are paths of files."""
    if isinstance(X, Path):
        return [read_text(X, owner)]
    if isinstance(X, list | tuple) and any(isinstance(text, Path) for text in X):
        return [read_text(text, owner) if isinstance(text, Path) else text for text in X]
    return X


def kind_of(owner: str, X: Any) -> str:
    """Return whether texts are ``"text"``, ``"words"`` or ``"ids"``; refuse anything else."""
    if isinstance(X, str):
        raise InvalidData(f"{owner}: X must be a list of texts; got one text. Put it in a list.")
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "iu":
        raise InvalidData(
            f"{owner}: X must be a list of texts; got one array of numbers. Put it in a list."
        )
    if isinstance(X, Mapping | Set) or hasattr(X, "columns"):
        raise InvalidData(
            f"{owner}: X must be a list of texts; got a {type(X).__name__}. Give the column that "
            "holds the texts."
        )
    if not hasattr(X, "__len__") or not hasattr(X, "__iter__"):
        raise InvalidData(f"{owner}: X must be a list of texts; got {shorten(repr(X))}.")
    if not len(X):
        raise InvalidData(f"{owner}: X must hold at least one text; got none.")
    kinds = {_kind(owner, place, text) for place, text in enumerate(X)} - {""}
    if len(kinds) > 1:
        raise InvalidData(f"{owner}: all texts must be of one kind; got {' and '.join(kinds)}.")
    return kinds.pop() if kinds else "words"


def _kind(owner: str, place: int, text: Any) -> str:
    if isinstance(text, str):
        return "text"
    if hasattr(text, "dtype") and hasattr(text, "ndim") and text.ndim == 1 and text.dtype != object:
        if str(text.dtype).removeprefix("torch.").startswith(("int", "uint")):
            return "ids"
    elif isinstance(text, list | tuple | np.ndarray):
        if not len(text):
            return ""
        if all(isinstance(word, str) for word in text):
            return "words"
        if all(isinstance(word, int | np.integer) and word is not True for word in text):
            return "ids"
    raise InvalidData(
        f"{owner}: a text must be a string, a list of words or an array of whole numbers; got "
        f"{shorten(repr(text))} at place {place}."
    )


def pack(texts: Sequence[Any], vocabulary: Vocabulary, *, boundaries: bool) -> Corpus:
    """Put the numbers of texts one behind the other."""
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    flat = [np.asarray(text, dtype=np.int64) for text in texts]
    ids = np.concatenate([np.zeros(0, np.int64), *flat])
    if boundaries:
        ends = np.cumsum(sizes)
        ids = np.insert(ids, ends, vocabulary.end)
        ids = np.insert(ids, ends - sizes + np.arange(len(sizes)), vocabulary.begin)
        sizes = sizes + 2
    text = np.repeat(np.arange(len(sizes)), sizes)
    first = np.cumsum(sizes) - sizes
    return Corpus(ids, np.arange(len(ids)) - first[text], text, len(sizes))
