"""The tokenizer that an estimator was asked to use, with the special tokens it needs."""

from __future__ import annotations

from typing import Any

from castalia.base import Constraint
from castalia.data.text import TOKENIZERS
from castalia.data.tokenizers import Tokenizer

__all__ = ["TokenizerLike", "make_tokenizer"]


class TokenizerLike(Constraint):
    """A tokenizer, its name, or None."""

    def rule(self) -> str:
        """Say so."""
        return "a tokenizer of castalia.data.tokenizers, a name of one, or None"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        known = value is None or isinstance(value, Tokenizer)
        return known or (isinstance(value, str) and value in TOKENIZERS)


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
