"""The adapter of texts that have one label each: token ids, padded to one length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.text.named_tokenizers import choose_tokenizer, padding_of
from castalia.data.text.text_inputs import as_texts, refuse_empty
from castalia.data.text.token_rows import TokenRows, real_lengths
from castalia.data.tokenizers import Tokenizer, pad_batch
from castalia.errors import InvalidData, InvalidParameter
from castalia.protocols import Rows

__all__ = ["TextAdapter"]

BLOCK = 1 << 18  # tokens of a block when predicting
MULTIPLE = 8  # rows are as long as the longest text, rounded up to a multiple


class TextAdapter(Adapter):
    """Texts as rows of token ids, (N, T), filled up with padding; mask = (ids != padding).

    Parameters
    ----------
    tokenizer
        A tokenizer, fitted or not; a name of ``TOKENIZERS``; None: words and punctuation marks.
    context
        Most tokens of a row, boundaries included; rows are no longer than the longest text.
    long
        What becomes of texts with more tokens: ``"cut"`` keeps their beginning, ``"refuse"`` says
        which one it is.
    boundaries
        Whether the begin and end tokens stand around each text.

    Attributes
    ----------
    tokenizer : Tokenizer
        The fitted tokenizer.
    vocabulary : int
        Number of ids.
    padding : int
        The id that fills up; one more than the tokenizer's where it has none for it.
    length : int
        T.

    Examples
    --------
    >>> adapter = TextAdapter(context=6)
    >>> texts = adapter.check(["so good", "bad"], "fit")
    >>> adapter.fit(texts).rows(texts, np.float32).take(torch.tensor([0, 1]))
    tensor([[6, 5, 0, 0, 0, 0],
            [4, 0, 0, 0, 0, 0]])
    """

    def __init__(
        self,
        tokenizer: Any = None,
        *,
        context: int = 512,
        long: str = "cut",
        boundaries: bool = False,
    ) -> None:
        if long not in ("cut", "refuse"):
            raise InvalidParameter(f"TextAdapter: `long` must be 'cut' or 'refuse'; got {long!r}.")
        self.asked, self.context, self.long, self.boundaries = tokenizer, context, long, boundaries
        self.tokenizer: Tokenizer | None = None
        self.vocabulary = self.padding = self.length = 0
        self.owner = "TextAdapter"

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs to be built."""
        return {"vocabulary": self.vocabulary, "padding": self.padding, "context": self.length}

    @property
    def shape(self) -> torch.Size:
        """Shape of one row: a token at each of T places."""
        return torch.Size([1, self.length])

    def check(self, X: Any, owner: str) -> np.ndarray:
        """Return texts as an array of strings, (N,)."""
        texts, self.owner = as_texts(X, owner), owner
        refuse_empty(texts, owner)
        return np.array(texts, dtype=object)

    def fit(self, X: np.ndarray, sample_weight: np.ndarray | None = None) -> TextAdapter:
        """Learn the tokenizer and the length of a row."""
        self.tokenizer = choose_tokenizer(self.asked, list(X), self.owner, default="words")
        self.padding, self.vocabulary = padding_of(self.tokenizer)
        longest = max(len(row) for row in self.encode(X))
        self.length = min(self.context, -(-longest // MULTIPLE) * MULTIPLE)
        return self

    def encode(self, X: np.ndarray) -> list[list[int]]:
        """Return the ids of each text; those too long are cut or refused."""
        tokenizer: Any = self.tokenizer
        found: list[list[int]] = tokenizer.encode(list(X))
        room = self.context - 2 * self.boundaries
        sizes = np.array([len(row) for row in found])
        if self.long == "refuse" and (sizes > room).any():
            place = int((sizes > room).argmax())
            raise InvalidData(
                f"{self.owner}: a text must have at most {room} tokens; text {place} has "
                f"{sizes[place]}. Raise `context`, or set long='cut' to keep its beginning."
            )
        if not self.boundaries:
            return [row[:room] for row in found]
        begin, end = tokenizer.id_of("begin"), tokenizer.id_of("end")
        return [[begin, *row[:room], end] for row in found]

    def pad(self, rows: list[list[int]], length: int | None = None) -> Tensor:
        """Return rows of ids as one tensor, (N, T)."""
        ids = pad_batch(rows, self.padding, length=length, longer="cut").ids
        return torch.from_numpy(ids.astype(np.int32))

    def rows(self, X: np.ndarray, dtype: Any) -> Rows:
        """Return texts as rows of a training."""
        ids = self.pad(self.encode(X), self.length)
        return TokenRows(ids, real_lengths(ids, self.padding))

    def blocks(self, X: np.ndarray, dtype: Any) -> Iterator[Tensor]:
        """Yield rows of ids block by block, for prediction: each as long as it needs to be."""
        step = max(1, BLOCK // self.length)
        for start in range(0, len(X), step):
            rows = [row[: self.length] for row in self.encode(X[start : start + step])]
            yield self.pad([row or [self.padding] for row in rows]).long()
