"""Rules on the settings that several tokenizers share."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from castalia.data.tokenizers.special_tokens import token_of
from castalia.errors import InvalidParameter

__all__ = ["check_size", "check_unknown"]


def check_size(owner: Any, *, least: int = 1, optional: bool = False) -> None:
    """Check ``vocabulary_size``, which counts the special tokens too, and ``min_count``, if any."""
    name, size = type(owner).__name__, owner.vocabulary_size
    least += len(owner.special)
    rule = f"a whole number of at least {least}, special tokens included"
    if not (optional and size is None) and (not _whole(size) or size < least):
        raise InvalidParameter(f"{name}: `vocabulary_size` must be {rule}; got {size!r}.")
    least_count = getattr(owner, "min_count", 1)
    if not _whole(least_count) or least_count < 1:
        raise InvalidParameter(
            f"{name}: `min_count` must be a whole number of at least 1; got {least_count!r}."
        )


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_unknown(owner: Any) -> str:
    """Return the token for what is unknown; a tokenizer that needs one must have it."""
    unknown = token_of("unknown", owner.special)
    if unknown is None:
        raise InvalidParameter(
            f"{type(owner).__name__}: `special` must hold `<unk>` or `[UNK]` for what is not in "
            f"the vocabulary; got {owner.special!r}."
        )
    return unknown
