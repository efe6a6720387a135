"""References and texts that are compared with them, checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from castalia.errors import InvalidData, ShapeMismatch
from castalia.utils.text import shorten

__all__ = ["text_pairs"]


def text_pairs(y_true: Any, y_pred: Any, owner: str) -> Iterator[tuple[Sequence[str], str]]:
    """Yield each text with its references, one or several.

    Parameters
    ----------
    y_true
        N references, or N lists of alternatives.
    y_pred
        N texts.
    owner
        Whom errors name.
    """
    if isinstance(y_true, str) or isinstance(y_pred, str):
        raise InvalidData(f"{owner}: `y_true` and `y_pred` must be lists of texts; got a text.")
    if len(y_true) != len(y_pred) or not len(y_true):
        raise ShapeMismatch(
            f"{owner}: `y_true` and `y_pred` must have one entry a text, and at least one; got "
            f"{len(y_true):,} and {len(y_pred):,}."
        )
    for place, (true, said) in enumerate(zip(y_true, y_pred, strict=True)):
        wanted = [true] if isinstance(true, str) else list(true)
        if not wanted or not all(isinstance(each, str) for each in [*wanted, said]):
            raise InvalidData(
                f"{owner}: references and texts must be strings; got "
                f"{shorten(repr((true, said)), 60)} at place {place}."
            )
        yield wanted, said
