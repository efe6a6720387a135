"""What a set of texts may come as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from castalia.data.utf8_files import read_text
from castalia.errors import InvalidData
from castalia.utils.text import shorten

__all__ = ["as_texts", "first_row", "is_ids", "refuse_empty"]


def first_row(X: Any) -> Any:
    """Return the first of some rows, whatever they are numbered from; None where there are none.

    >>> first_row(["one", "two"]), first_row([])
    ('one', None)
    """
    return next(iter(X), None) if hasattr(X, "__len__") and hasattr(X, "__iter__") else None


def as_texts(X: Any, owner: str, *, ids: bool = False, what: str = "X") -> list[Any]:
    """Return texts as a list of strings; refuse what is none and say where it stands.

    Parameters
    ----------
    X
        A list, an array or a pandas series of strings; a ``pathlib.Path``, or a list of them, to
        files that hold a text each.
    owner
        Whom errors name.
    ids
        Whether texts may also be token ids, as lists or arrays of whole numbers.
    what
        What errors call X.

    Examples
    --------
    >>> as_texts(np.array(["one", "two"]), "fit")
    ['one', 'two']
    """
    rule = f"{owner}: {what} must be a list of texts"
    if isinstance(X, str):
        raise InvalidData(
            f"{rule}; got one string, {shorten(repr(X), 40)}. Put it in a list, or wrap the name "
            "of a file in `pathlib.Path`."
        )
    if isinstance(X, Path):
        return [read_text(X, owner)]
    if hasattr(X, "columns") and hasattr(X, "shape"):
        raise InvalidData(
            f"{rule}; got a table of {X.shape[1]} columns. Give the column that holds the texts."
        )
    if isinstance(X, Iterator):
        raise InvalidData(
            f"{rule}; got a {type(X).__name__}, which can be read only once. Put its texts in a "
            "list."
        )
    sized = hasattr(X, "__len__") and hasattr(X, "__iter__") and getattr(X, "ndim", 1) > 0
    if not sized or isinstance(X, Mapping | Set):
        raise InvalidData(f"{rule}; got {shorten(repr(X))}.")
    if not len(X):
        raise InvalidData(f"{owner}: {what} must hold at least one text; got none.")
    return [_text(text, place, owner, ids, what) for place, text in enumerate(X)]


def _text(text: Any, place: int, owner: str, ids: bool, what: str) -> Any:
    if isinstance(text, str):
        return str(text)  # numpy's strings too
    if isinstance(text, Path):
        return read_text(text, owner)
    if ids and is_ids(text):
        return np.asarray(text, dtype=np.int64)
    kinds = "a string or token ids" if ids else "a string"
    where = f"{place}" if what == "X" else f"{place} of {what}"
    raise InvalidData(
        f"{owner}: a text must be {kinds}; got {shorten(repr(text), 40)} at place {where}."
    )


def refuse_empty(texts: Iterable[str], owner: str) -> None:
    """Refuse texts of which one is empty."""
    empty = next((place for place, text in enumerate(texts) if not text.strip()), None)
    if empty is not None:
        raise InvalidData(
            f"{owner}: a text must hold at least one character; text {empty} is empty. Leave it "
            "out."
        )


def is_ids(text: Any) -> bool:
    """Whether a text is whole numbers in one dimension."""
    if hasattr(text, "dtype") and hasattr(text, "ndim"):
        whole = str(text.dtype).removeprefix("torch.").startswith(("int", "uint"))
        return text.ndim == 1 and whole
    whole_numbers = isinstance(text, Sequence) and not isinstance(text, str | bytes)
    return whole_numbers and all(type(i) is int for i in text)
