"""The adapter of documents: sentences of words, padded in both directions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.text.named_tokenizers import choose_tokenizer, padding_of
from castalia.data.text.text_adapter import TextAdapter
from castalia.data.text.token_rows import TokenRows
from castalia.data.tokenizers import Tokenizer, pad_batch
from castalia.protocols import Rows

__all__ = ["DocumentAdapter", "sentences_of"]

BLOCK = 1 << 17  # tokens of a block when predicting
_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|\n+")


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text: it is cut behind . ! ? … and at the ends of lines.

    >>> sentences_of("It is late. Is it? Yes")
    ['It is late.', 'Is it?', 'Yes']
    """
    return [part.strip() for part in _ENDS.split(text) if part and part.strip()]


class DocumentAdapter(Adapter):
    """Documents as token ids, (N, S, W): S sentences of W words, filled up with padding.

    Parameters
    ----------
    tokenizer
        A tokenizer, fitted or not; a name of ``TOKENIZERS``; None: words and punctuation marks.
    sentences
        Most sentences of a document; the others are left out.
    words
        Most tokens of a sentence; the others are left out.

    Examples
    --------
    >>> adapter = DocumentAdapter()
    >>> texts = adapter.check(["so good. buy it.", "bad."], "fit")
    >>> adapter.fit(texts).rows(texts, np.float32).take(torch.tensor([0, 1])).shape
    torch.Size([2, 2, 3])
    """

    def __init__(self, tokenizer: Any = None, *, sentences: int = 32, words: int = 64) -> None:
        self.asked, self.most = tokenizer, (sentences, words)
        self.tokenizer: Tokenizer | None = None
        self.vocabulary = self.padding = 0
        self.size = (0, 0)
        self.owner = "DocumentAdapter"

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs to be built."""
        return {"vocabulary": self.vocabulary, "padding": self.padding}

    @property
    def shape(self) -> torch.Size:
        """Shape of one row."""
        return torch.Size([1, *self.size])

    def check(self, X: Any, owner: str) -> np.ndarray:
        """Return documents as an array of strings, (N,)."""
        self.owner = owner
        return TextAdapter().check(X, owner)

    def fit(self, X: np.ndarray, sample_weight: np.ndarray | None = None) -> DocumentAdapter:
        """Learn the tokenizer, and how many sentences and words a row needs."""
        self.tokenizer = choose_tokenizer(self.asked, list(X), self.owner, default="words")
        self.padding, self.vocabulary = padding_of(self.tokenizer)
        documents = self.encode(X)
        longest = max(len(sentence) for document in documents for sentence in document)
        self.size = max(len(document) for document in documents), longest
        return self

    def encode(self, X: np.ndarray) -> list[list[list[int]]]:
        """Return, for each document, the ids of each sentence; at least one of each."""
        tokenizer: Any = self.tokenizer
        sentences, words = self.most
        cut = [sentences_of(text)[:sentences] for text in X]
        flat = iter(tokenizer.encode([sentence for document in cut for sentence in document]))
        found = [[next(flat)[:words] for _ in document] for document in cut]
        return [[row for row in document if row] or [[self.padding]] for document in found]

    def pad(self, documents: list[list[list[int]]]) -> Tensor:
        """Return documents as one tensor, (N, S, W)."""
        sentences, words = self.size
        even = [(doc + [[]] * (sentences - len(doc)))[:sentences] for doc in documents]
        flat = [row for document in even for row in document]
        ids = pad_batch(flat, self.padding, length=words, longer="cut").ids
        return torch.from_numpy(ids.astype(np.int32)).unflatten(0, (-1, sentences))

    def rows(self, X: np.ndarray, dtype: Any) -> Rows:
        """Return documents as rows of a training."""
        return TokenRows(self.pad(self.encode(X)))

    def blocks(self, X: np.ndarray, dtype: Any) -> Iterator[Tensor]:
        """Yield rows block by block, for prediction."""
        step = max(1, BLOCK // self.shape.numel())
        for start in range(0, len(X), step):
            yield self.pad(self.encode(X[start : start + step])).long()
