"""What writing by any language model shares: where a text stops, and where its prompt ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from castalia.base import Constraint
from castalia.data.tokenizers import Tokenizer
from castalia.errors import InvalidParameter

__all__ = ["check_setting", "continuation", "cut_behind", "stop_words"]


def check_setting(name: str, value: Any, rule: Constraint, owner: str) -> None:
    """Refuse a setting that breaks a rule."""
    if not rule.holds(value):
        raise InvalidParameter(f"{owner}: `{name}` must be {rule.rule()}; got {value!r}.")


def stop_words(stop: Any, owner: str) -> list[str]:
    """Return the pieces of text that end the writing; refuse anything else.

    >>> stop_words("end", "generate"), stop_words(None, "generate")
    (['end'], [])
    """
    if stop is None:
        return []
    words = list(stop) if isinstance(stop, list | tuple | set | frozenset) else [stop]
    if not all(isinstance(word, str) and word for word in words):
        raise InvalidParameter(
            f"{owner}: `stop` must be texts of one character or more; got {stop!r}."
        )
    return words


def cut_behind(text: str, words: Sequence[str]) -> str:
    """Return a text up to the end of whichever word comes to its end first.

    >>> cut_behind("one two three", ["three", "two"])
    'one two'
    """
    return text[: min((text.find(w) + len(w) for w in words if w in text), default=None)]


def continuation(tokenizer: Tokenizer, before: list[int], new: list[int]) -> str:
    """Return the text of new tokens as it stands behind others, its first space included."""
    whole, start = tokenizer.decode([*before, *new]), tokenizer.decode(before)
    return str(whole.removeprefix(start) if whole.startswith(start) else tokenizer.decode(new))
