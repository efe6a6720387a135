"""The parameter that chooses a tokenizer, and the tokenizer it stands for."""

from __future__ import annotations

from typing import Any

from castalia.base import Constraint
from castalia.data.text import TOKENIZERS
from castalia.data.tokenizers import Tokenizer
from castalia.utils.text import did_you_mean, listing

__all__ = ["TokenizerChoice", "make_tokenizer"]


class TokenizerChoice(Constraint):
    """A tokenizer, the name of one, or None."""

    def rule(self) -> str:
        """Say so."""
        return f"a tokenizer of castalia.data.tokenizers, None, or {listing(TOKENIZERS)}"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        named = isinstance(value, str) and value in TOKENIZERS
        return value is None or named or isinstance(value, Tokenizer)

    def hint(self, value: Any) -> str:
        """Suggest the nearest name."""
        return did_you_mean(str(value), TOKENIZERS)


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
