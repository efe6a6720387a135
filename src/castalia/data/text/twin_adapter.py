"""The adapter of texts and pairs of texts that are read apart, each as an encoder reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor

from castalia.data.text.pair_adapter import BLOCK, PairAdapter
from castalia.data.text.token_rows import TokenRows, real_lengths
from castalia.errors import InvalidData
from castalia.protocols import Rows

__all__ = ["TwinAdapter"]


class TwinAdapter(PairAdapter):
    """Texts as rows (T,), pairs as rows (2, T), with begin and end around each text.

    Parameters
    ----------
    tokenizer, context
        As for ``PairAdapter``.

    Examples
    --------
    >>> import torch
    >>> adapter = TwinAdapter("words", context=8)
    >>> pairs = adapter.check([("so", "good"), ("bad", "so bad")], "fit")
    >>> adapter.fit(pairs).rows(pairs, None).take(torch.tensor([1]))
    tensor([[[2, 4, 3, 0, 0, 0, 0, 0],
             [2, 5, 4, 3, 0, 0, 0, 0]]])
    """

    def __init__(self, tokenizer: Any = None, *, context: int = 128) -> None:
        super().__init__(tokenizer, context=context)

    def check(self, X: Any, owner: str) -> np.ndarray:
        """Return texts, (N,), or pairs, (N, 2); to learn from, pairs only."""
        found = super().check(X, owner)
        if self.tokenizer is None and found.ndim == 1:
            raise InvalidData(
                f"{owner}: X must hold pairs of texts that belong together; got {found[0]!r}."
            )
        return found

    def encode(self, X: np.ndarray) -> list[list[int]]:
        """Return the ids of each text; of pairs one text after the other."""
        return super().encode(X.ravel())

    def _tensor(self, X: np.ndarray, length: int | None) -> Tensor:
        """Return ids, (N, T) of texts and (N, 2, T) of pairs."""
        ids = self.pad(self.encode(X), length)
        return ids if X.ndim == 1 else ids.unflatten(0, (-1, 2))

    def rows(self, X: np.ndarray, dtype: Any) -> Rows:
        """Return texts or pairs as rows of a training."""
        ids = self._tensor(X, self.length)
        lengths = real_lengths(ids, self.padding)
        return TokenRows(ids, lengths if X.ndim == 1 else lengths.amax(dim=1))

    def blocks(self, X: np.ndarray, dtype: Any) -> Iterator[Tensor]:
        """Yield texts or pairs block by block, each as long as it needs to be."""
        step = max(1, BLOCK // (2 * self.length))
        for start in range(0, len(X), step):
            yield self._tensor(X[start : start + step], None).long()
