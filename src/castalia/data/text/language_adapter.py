"""The adapter of language models: texts to one stream of tokens, cut into blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.batches import Samples
from castalia.data.row_splits import SMALLEST
from castalia.data.text.named_tokenizers import choose_tokenizer
from castalia.data.text.text_inputs import as_texts
from castalia.data.text.token_corpus import Corpus, CorpusRows, TokenFile, as_corpus
from castalia.data.text.token_rows import TokenRows, cut_blocks
from castalia.data.tokenizers import Tokenizer
from castalia.errors import InvalidData
from castalia.protocols import Rows

__all__ = ["LanguageAdapter"]

BLOCK = 1 << 18  # tokens of a block when predicting


class LanguageAdapter(Adapter):
    """Texts as one stream, ``</s> text </s> text … </s>``, cut into blocks of ``context`` tokens.

    The end token stands before the first text and behind each, so that every token has one before
    it. A block is (T + 1,): the first T ids are a row, the last T its targets. Since rows are
    blocks and not texts, ``check`` already makes them, and before ``fit`` it also learns the
    tokenizer. A tokenizer without an end token joins texts as they are.

    Parameters
    ----------
    tokenizer
        A tokenizer, fitted or not; a name of ``TOKENIZERS``; None: characters, or byte BPE for
        texts of more than two million. Texts may also be given as token ids.
    context
        Tokens of a block, T.
    stride
        Tokens between the beginnings of two training blocks; None: ``context``. With a smaller
        one blocks overlap, and a token is met at several positions of a block.
    rest
        Whether a last block, which overlaps the one before, holds what is left of the stream.

    Examples
    --------
    >>> adapter = LanguageAdapter(context=4)
    >>> adapter.check(["abab", "ab"], "fit")
    array([[3, 4, 5, 4, 5],
           [5, 3, 4, 5, 3]], dtype=int32)
    >>> adapter.vocabulary, adapter.end
    (6, 3)
    """

    def __init__(
        self,
        tokenizer: Any = None,
        *,
        context: int = 256,
        stride: int | None = None,
        rest: bool = True,
    ) -> None:
        self.asked, self.context, self.stride, self.rest = tokenizer, context, stride, rest
        self.tokenizer: Tokenizer | None = None
        self.vocabulary = 0  # number of ids
        self.network: dict[str, Any] | None = None  # sizes of a network that is there already
        self.fitted = False

    @property
    def end(self) -> int | None:
        """The id between texts, or None."""
        return None if self.tokenizer is None else self.tokenizer.find_id("end")

    @property
    def stops(self) -> tuple[int, ...]:
        """Tokens that end a text that is written."""
        return () if self.end is None else (self.end,)

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """What stands before and behind a text."""
        return list(self.stops), list(self.stops)

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs to be built."""
        found = {"vocabulary": self.vocabulary, "context": self.context}
        return found if self.network is None else {**found, "network": self.network}

    @property
    def shape(self) -> torch.Size:
        """Shape of one row: a token at each of T places."""
        return torch.Size([1, self.context])

    def check(self, X: Any, owner: str) -> np.ndarray | CorpusRows:
        """Return texts as blocks of ids, (N, T + 1); those of a ``Corpus`` stay in its file."""
        stride = None if self.fitted else self.stride
        X = as_corpus(X)
        if isinstance(X, Corpus):
            return CorpusRows(self._file(X, owner), self.context, stride, rest=self.rest)
        return cut_blocks(self.stream(X, owner), self.context, stride, rest=self.rest)

    def _file(self, corpus: Corpus, owner: str) -> TokenFile:
        """Return the ids of a corpus; before ``fit`` the tokenizer is learnt from it."""
        if self.vocabulary == 0:
            texts = corpus.sample() if self.asked in (None, "byte-bpe") else corpus
            self.tokenizer = choose_tokenizer(self.asked, texts, owner)
            self.vocabulary = len(self.tokenizer)
        if self.tokenizer is None:
            raise InvalidData(f"{owner}: it has no tokenizer; X must be token ids, got {corpus}.")
        return corpus.encode(self.tokenizer, owner)

    def stream(self, X: Any, owner: str) -> np.ndarray:
        """Return texts as one stream of ids, (L,), at least two of them."""
        X = as_corpus(X)
        if isinstance(X, Corpus):
            return self._file(X, owner).ids
        first, *others = self.streams(X, owner)
        before, after = self.frame
        shared = len(before) if before == after else 0  # between two texts it belongs to both
        stream = np.concatenate([first, *(other[shared:] for other in others)])
        if len(stream) < 2:
            raise InvalidData(
                f"{owner}: the texts must hold two tokens or more, one to be predicted from the "
                f"other; got {len(stream)}."
            )
        return stream

    def streams(self, X: Any, owner: str) -> list[np.ndarray]:
        """Return each text by itself, between end tokens; an empty text is refused."""
        texts = as_texts(X, owner, ids=True)
        words = [text for text in texts if isinstance(text, str)]
        if self.vocabulary == 0:
            self._learn(texts, words, owner)
        if words and self.tokenizer is None:
            raise InvalidData(
                f"{owner}: it has no tokenizer; texts must be token ids, got {words[0][:40]!r}."
            )
        before, after = self.frame
        found = iter(self.tokenizer.encode(words) if self.tokenizer is not None and words else [])
        ids = [next(found) if isinstance(text, str) else self._known(text, owner) for text in texts]
        empty = next((place for place, row in enumerate(ids) if not len(row)), None)
        if empty is not None:
            raise InvalidData(
                f"{owner}: a text must hold at least one token; text {empty} is empty. Leave it "
                "out."
            )
        return [np.concatenate([before, row, after]).astype(np.int64) for row in ids]

    def _learn(self, texts: list[Any], words: list[str], owner: str) -> None:
        """Learn the tokenizer from the texts, or the number of ids from the ids."""
        if words or isinstance(self.asked, Tokenizer):
            if words and not any(text.strip() for text in words):
                raise InvalidData(f"{owner}: the texts must hold at least one character; got none.")
            self.tokenizer = choose_tokenizer(self.asked, words, owner)
            self.vocabulary = len(self.tokenizer)
        else:
            self.vocabulary = 1 + max((int(text.max()) for text in texts if len(text)), default=0)

    def _known(self, ids: np.ndarray, owner: str) -> np.ndarray:
        wrong = (ids < 0) | (ids >= self.vocabulary)
        if wrong.any():
            raise InvalidData(
                f"{owner}: token ids must be at least 0 and below {self.vocabulary:,}, the size of "
                f"the vocabulary; got {ids[wrong][0]}."
            )
        return ids

    def fit(self, X: Any, sample_weight: np.ndarray | None = None) -> LanguageAdapter:
        """Nothing is left to learn; from now on, blocks do not overlap."""
        self.fitted = True
        return self

    def rows(self, X: np.ndarray | CorpusRows, dtype: Any) -> Rows:
        """Return the inputs of blocks as rows of a training, (N, T); of a corpus, whole blocks."""
        if isinstance(X, CorpusRows):
            return X
        return TokenRows(torch.from_numpy(X)[:, :-1])

    def split(
        self,
        samples: Samples,
        validation: float | Samples,
        seed: int,
        labels: np.ndarray | None = None,
    ) -> tuple[Samples, Samples]:
        """Hold out the end of the texts, or take the texts that were given.

        Blocks that share tokens with what is held out are not trained on.
        """
        if isinstance(validation, Samples):
            return samples, validation
        rows = len(samples)
        size = int(rows * validation)
        if size < SMALLEST:
            return samples, samples.subset(np.arange(0))
        sharing = -(-self.context // (self.stride or self.context)) - 1
        kept = np.arange(max(rows - size - sharing, 1))
        return samples.subset(kept), samples.subset(np.arange(rows - size, rows))

    def blocks(self, X: np.ndarray, dtype: Any) -> Iterator[Tensor]:
        """Yield inputs block by block, for prediction."""
        step = max(1, BLOCK // self.context)
        for start in range(0, len(X), step):
            yield torch.from_numpy(X[start : start + step, :-1]).long()
