"""The tokenizer that an estimator was asked to use, with the special tokens it needs."""

from __future__ import annotations

from typing import Any

from castalia.data.text import TOKENIZERS
from castalia.data.tokenizers import Tokenizer

__all__ = ["make_tokenizer"]


def make_tokenizer(asked: Any, default: str, special: tuple[str, ...]) -> Tokenizer:
    """Return a tokenizer, fitted or not.

    Parameters
    ----------
    asked
        A tokenizer, which is taken as it is; a name of ``TOKENIZERS``; or None.
    default
        The name that None stands for.
    special
        Special tokens of one that is made here.
    """
    if isinstance(asked, Tokenizer):
        return asked
    made: Any = TOKENIZERS[asked or default]
    return made(special=special)
