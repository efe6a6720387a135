"""Tokenizers that other libraries trained, from their ``tokenizer.json``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

from castalia.data.tokenizers.tokenizer import Tokenizer
from castalia.errors import InvalidParameter

__all__ = ["PretrainedTokenizer"]


@dataclass(kw_only=True, eq=False)
class PretrainedTokenizer(Tokenizer):
    """A tokenizer read from a ``tokenizer.json``; it cannot be fitted again.

    Parameters
    ----------
    special, normalise
        Found in the file.

    Examples
    --------
    >>> from castalia.data.tokenizers import ByteBPETokenizer
    >>> state = ByteBPETokenizer(vocabulary_size=258).fit(["aa"]).state()
    >>> read = Tokenizer.from_state({**state, "class": "PretrainedTokenizer"})
    >>> type(read).__name__, read.tokens("aab")
    ('PretrainedTokenizer', ['aa', 'b'])
    """

    def _adopt(self, backend: Any) -> Self:
        """Take a backend over; how it was to pad and cut in its training concerns no text here."""
        backend.no_padding()
        backend.no_truncation()
        return super()._adopt(backend)

    def _untrained(self) -> Any:
        raise InvalidParameter(
            "PretrainedTokenizer: it is read from a file and cannot be fitted. Fit another kind, "
            "`ByteBPETokenizer` for instance."
        )

    def _train(self, backend: Any, texts: Iterator[str]) -> Any:
        raise NotImplementedError
