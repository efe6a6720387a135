"""What a tokenizer can be fitted on: texts, files, streams of either, counted words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, repeat
from numbers import Integral
from pathlib import Path
from typing import Any

from castalia.data.utf8_files import read_lines
from castalia.errors import InvalidData

__all__ = ["texts_of"]


def texts_of(source: Any, owner: str = "Tokenizer.fit") -> Iterator[str]:
    """Yield the texts of a source, one at a time.

    Parameters
    ----------
    source
        A text; a path, or several, to UTF-8 files that are read line by line; an iterable of
        texts; or a mapping from words to how often they occur.
    owner
        Whom errors name.
    """
    if isinstance(source, str):
        return iter((_text(source, 0, owner),))
    if isinstance(source, Path):
        return read_lines(source, owner)
    if isinstance(source, Mapping):
        return chain.from_iterable(repeat(*_counted(pair, owner)) for pair in source.items())
    if not isinstance(source, Iterable):
        raise InvalidData(
            f"{owner}: the texts must be strings, paths or a mapping of words to counts; got "
            f"{type(source).__name__}."
        )
    return _each(source, owner)


def _each(source: Iterable[Any], owner: str) -> Iterator[str]:
    for place, text in enumerate(source):
        if isinstance(text, Path):
            yield from read_lines(text, owner)
        else:
            yield _text(text, place, owner)


def _counted(pair: tuple[Any, Any], owner: str) -> tuple[str, int]:
    word, count = pair
    if not isinstance(count, Integral) or count < 0:
        raise InvalidData(
            f"{owner}: the count of {word!r} must be a whole number of at least 0; got {count!r}."
        )
    return _text(word, 0, owner), int(count)


def _text(text: Any, place: int, owner: str) -> str:
    if not isinstance(text, str):
        raise InvalidData(
            f"{owner}: every text must be a string; got {type(text).__name__} {text!r} at place "
            f"{place}."
        )
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:
        raise InvalidData(
            f"{owner}: every text must be Unicode; got half a surrogate pair, "
            f"{text[error.start]!r}, at character {error.start} of text {place}."
        ) from error
    return text
