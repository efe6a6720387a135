"""The adapter of sequences: channels of numbers brought to one scale, categories numbered.

A step becomes one row of numbers: the scaled channels, the codes of the categories, and where words
are spelt, the codes of their letters.
Shapes: n sequences, T steps, C channels, W letters of a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from castalia.data.adapter_base import Adapter
from castalia.data.batches import TensorRows
from castalia.data.sequences.missing_steps import fill, refuse_missing
from castalia.data.sequences.sequence_rows import SequenceRows
from castalia.data.sequences.sequence_set import Sequences, as_sequences
from castalia.errors import InvalidData
from castalia.protocols import Rows

__all__ = ["SequenceAdapter"]

BLOCK = 1 << 20  # numbers of a block when predicting


class SequenceAdapter(Adapter):
    """Sequences of numbers, of categories, or of both; of any length.

    Parameters
    ----------
    categorical
        Channels to take as categories although they hold numbers, such as codes of events; those
        that hold words always are.
    missing
        What to do about NaN and infinity: ``"error"``, ``"forward"`` or ``"mean"``.
    letters
        Letters of each word that the network reads beside the word, at most; 0: none. Words that
        occur once then share a code.
    scaled
        Whether channels of numbers are brought to mean 0 and deviation 1.

    Examples
    --------
    >>> adapter = SequenceAdapter()
    >>> X = adapter.check([np.zeros((3, 2)), np.ones((1, 2))], "RNNClassifier")
    >>> adapter.fit(X).inputs
    2
    """

    def __init__(
        self,
        categorical: Sequence[int] = (),
        missing: str = "error",
        letters: int = 0,
        scaled: bool = True,
    ) -> None:
        self.categorical, self.missing, self.letters = list(categorical), missing, letters
        self.scaled = scaled
        self.inputs = self.channels = 0
        self.length = 0  # of all sequences of the fit; 0 where they differ
        self.usual = 1.0  # length, on average
        self.codes: list[int] = []  # the channels that are categories
        self.words: list[Any] = []  # their values in order
        self.alphabet: list[str] = []
        self.mean = self.middle = self.deviation = np.zeros(0)

    @property
    def categories(self) -> tuple[int, ...]:  # type: ignore[override]
        """Sizes of the categorical channels; slot 0 is for what was not seen."""
        return tuple(len(values) + 1 for values in self.words)

    @property
    def extra(self) -> Mapping[str, Any]:
        """Letters of a word, and how many codes they have: none, each, unknown."""
        return {"letters": self.letters, "alphabet": len(self.alphabet) + 2}

    @property
    def shape(self) -> torch.Size:
        """Channels and steps of a sequence."""
        return torch.Size([self.inputs, self.length] if self.length else [self.inputs])

    def check(self, X: Any, owner: str) -> Sequences:
        """Return X as sequences, after ``fit`` of as many channels."""
        found = as_sequences(X, owner)
        width = found[0].shape[1]
        if self.channels and width != self.channels:
            raise InvalidData(
                f"{owner}: sequences must have {self.channels} channels, as in fit; got {width}."
            )
        wrong = [i for i in self.categorical if not 0 <= i < width]
        if wrong:
            raise InvalidData(
                f"{owner}: `categorical` must name channels from 0 to {width - 1}; got {wrong[0]}."
            )
        if self.missing == "error":
            codes = _codes(found, self.categorical) if not self.channels else self.codes
            kept = [i for i in range(width) if i not in codes]
            names = [found.channels[i] for i in kept]
            refuse_missing([_numbers(each, kept, owner) for each in found], owner, names)
        return found

    def fit(self, X: Sequences, sample_weight: np.ndarray | None = None) -> SequenceAdapter:
        """Learn channels, scales and categories."""
        self.channels = X[0].shape[1]
        self.length = len(X[0]) if len(set(X.lengths.tolist())) == 1 else 0
        self.usual = float(X.lengths.mean())
        self.codes = _codes(X, self.categorical)
        numbers = np.concatenate([_numbers(each, self._kept, "fit") for each in X])
        numbers = np.where(np.isfinite(numbers), numbers.astype(np.float64), np.nan)
        there = np.isfinite(numbers).sum(axis=0).clip(1)
        self.mean = np.nansum(numbers, axis=0) / there
        spread = np.sqrt(np.nansum(np.square(numbers - self.mean), axis=0) / there)
        self.deviation = np.where((spread > 0) & self.scaled, spread, 1.0)
        self.middle = self.mean if self.scaled else np.zeros_like(self.mean)
        self.words = [self._values(X, channel) for channel in self.codes]
        self.letters = self.letters if self.words else 0
        spelt = self.words[-1] if self.letters else []
        self.alphabet = sorted({letter for word in spelt for letter in word})
        self.inputs = len(self._kept) + len(self.codes) + self.letters
        return self

    @property
    def _kept(self) -> list[int]:
        return [i for i in range(self.channels) if i not in self.codes]

    def _values(self, X: Sequences, channel: int) -> list[str]:
        """Return the values of a channel of categories; where words are spelt, those seen twice."""
        counts = Counter(str(value) for each in X for value in each[:, channel])
        return sorted(word for word, n in counts.items() if n > 1 or not self.letters)

    def rows(self, X: Sequences, dtype: Any) -> Rows:
        """Return sequences as rows of a training: one tensor where all are equally long."""
        codes = self.numbers()
        steps = [self.encoded(each, dtype, codes) for each in X]
        lengths = X.lengths
        if len(set(lengths.tolist())) == 1:
            return TensorRows(torch.from_numpy(np.stack(steps)))
        return SequenceRows(torch.from_numpy(np.concatenate(steps)), torch.from_numpy(lengths))

    def blocks(self, X: Sequences, dtype: Any) -> Iterator[Any]:
        """Yield sequences in order, as many as fit into a block."""
        lengths, start = X.lengths, 0
        while start < len(X):
            widest = np.maximum.accumulate(lengths[start:])
            room = widest * np.arange(1, len(widest) + 1) * max(1, self.inputs)
            stop = start + max(1, int(np.searchsorted(room, BLOCK, side="right")))
            rows = self.rows(X.take(np.arange(start, stop)), dtype)
            yield rows.take(torch.arange(len(rows)))
            start = stop

    def numbers(self) -> list[dict[str, int]]:
        """Return the code of every value of each channel of categories, and of every letter."""
        kept = [*self.words, self.alphabet]
        return [{value: i + 1 for i, value in enumerate(values)} for values in kept]

    def encoded(
        self, each: np.ndarray, dtype: Any, codes: list[dict[str, int]] | None = None
    ) -> np.ndarray:
        """Return the steps of a sequence as a network reads them, (T, inputs).

        ``codes`` are ``numbers()``, for whoever encodes many sequences.
        """
        *known, letters = self.numbers() if codes is None else codes
        numbers = fill(_numbers(each, self._kept, "predict"), self.missing, self.mean)
        parts = [((numbers - self.middle) / self.deviation).astype(dtype)]
        for channel, code in zip(self.codes, known, strict=True):
            found = [code.get(str(value), 0) for value in each[:, channel]]
            parts.append(np.array(found, dtype=dtype)[:, None])
        if self.letters:
            parts.append(self._spelt(each[:, self.codes[-1]], letters, dtype))
        return np.concatenate(parts, axis=1)

    def _spelt(self, words: np.ndarray, known: dict[str, int], dtype: Any) -> np.ndarray:
        """Return the letters of words, (T, W): from 1, 0 after the end; the middle is cut out."""
        half, found = self.letters // 2, np.zeros((len(words), self.letters), dtype=dtype)
        for row, word in zip(found, map(str, words), strict=True):
            short = word if len(word) <= self.letters else word[:half] + word[half - self.letters :]
            row[: len(short)] = [known.get(letter, len(known) + 1) for letter in short]
        return found


def _codes(X: Sequences, asked: Sequence[int]) -> list[int]:
    """Return the channels that are categories: those asked for, and those that hold words."""
    width = X[0].shape[1]
    held = {i for i in range(width) for each in X if each.dtype == object and _holds_words(each, i)}
    return sorted({*asked, *held})


def _holds_words(each: np.ndarray, channel: int) -> bool:
    return any(isinstance(value, str | bytes) for value in each[:, channel])


def _numbers(each: np.ndarray, kept: Sequence[int], owner: str) -> np.ndarray:
    """Return the channels that hold numbers, (T, kept)."""
    found = each[:, list(kept)]
    if found.dtype != object:
        return found
    try:
        return np.where(found == None, np.nan, found).astype(np.float64)  # noqa: E711
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"{owner}: a channel must hold numbers, or words in every sequence; {error}."
        ) from error
