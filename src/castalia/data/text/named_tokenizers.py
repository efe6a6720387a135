"""The tokenizer of a model of texts: one that was given, one by name, or one that suits them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from castalia.data.tokenizers import (
    BPETokenizer,
    ByteBPETokenizer,
    CharTokenizer,
    PretrainedTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    UnigramTokenizer,
    WhitespaceTokenizer,
    WordPieceTokenizer,
    WordPunctTokenizer,
)
from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["TOKENIZERS", "choose_tokenizer", "default_tokenizer", "padding_of"]

TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "characters": CharTokenizer,
    "words": WordPunctTokenizer,
    "whitespace": WhitespaceTokenizer,
    "bpe": BPETokenizer,
    "byte-bpe": ByteBPETokenizer,
    "wordpiece": WordPieceTokenizer,
    "unigram": UnigramTokenizer,
    "sentencepiece": SentencePieceTokenizer,
}
SMALL = 1 << 21  # characters of a text that is learnt letter by letter
LARGEST, SHARE = 32_000, 200  # pieces of a vocabulary; characters for each


def choose_tokenizer(
    asked: Any, texts: Iterable[str], owner: str, default: str | None = None
) -> Tokenizer:
    """Return a fitted tokenizer.

    Parameters
    ----------
    asked
        A tokenizer, which is fitted on the texts unless it already is; a name of ``TOKENIZERS``;
        or None.
    texts
        What it is fitted on; gone through twice at most.
    owner
        Whom errors name.
    default
        The name that None stands for; None: characters for texts of up to two million, byte BPE
        for longer ones.

    Examples
    --------
    >>> type(choose_tokenizer(None, ["a short text"], "fit")).__name__
    'CharTokenizer'
    """
    if isinstance(asked, str) and asked not in TOKENIZERS:
        raise InvalidParameter(
            f"{owner}: `tokenizer` must be a tokenizer, None, or {listing(TOKENIZERS)}; got "
            f"{asked!r}.{did_you_mean(asked, TOKENIZERS)}"
        )
    if asked is None:
        made = TOKENIZERS[default]() if default is not None else default_tokenizer(texts)
    else:
        made = TOKENIZERS[asked]() if isinstance(asked, str) else asked
    if hasattr(made, "backend_") or isinstance(made, PretrainedTokenizer):
        return made
    return replace(made).fit(texts)


def default_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """Return characters for a small text, byte BPE with a vocabulary to its measure otherwise."""
    size = sum(len(text) for text in texts)
    if size <= SMALL:
        return CharTokenizer()
    return ByteBPETokenizer(vocabulary_size=min(LARGEST, size // SHARE), min_count=2)


def padding_of(tokenizer: Tokenizer) -> tuple[int, int]:
    """Return the id that fills up and the number of ids; it is a new one where there is none."""
    padding, known = tokenizer.find_id("pad"), len(tokenizer)
    return (known, known + 1) if padding is None else (padding, known)
