"""What a set of texts may come as."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from castalia.errors import InvalidData
from castalia.utils.text import shorten

__all__ = ["as_texts", "is_ids", "read_text"]


def as_texts(X: Any, owner: str, *, ids: bool = False) -> list[Any]:
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

    Examples
    --------
    >>> as_texts(np.array(["one", "two"]), "fit")
    ['one', 'two']
    """
    if isinstance(X, str):
        raise InvalidData(
            f"{owner}: X must be a list of texts; got one string, {shorten(repr(X), 40)}. Put it "
            "in a list, or wrap the name of a file in `pathlib.Path`."
        )
    if isinstance(X, Path):
        return [read_text(X, owner)]
    if hasattr(X, "columns") and hasattr(X, "shape"):
        raise InvalidData(
            f"{owner}: X must be a list of texts; got a table of {X.shape[1]} columns. Give the "
            "column that holds the texts."
        )
    if not hasattr(X, "__len__") or not hasattr(X, "__iter__") or getattr(X, "ndim", 1) == 0:
        raise InvalidData(f"{owner}: X must be a list of texts; got {shorten(repr(X))}.")
    if not len(X):
        raise InvalidData(f"{owner}: X must hold at least one text; got none.")
    return [_text(text, place, owner, ids) for place, text in enumerate(X)]


def _text(text: Any, place: int, owner: str, ids: bool) -> Any:
    if isinstance(text, str):
        return str(text)  # numpy's strings too
    if isinstance(text, Path):
        return read_text(text, owner)
    if ids and is_ids(text):
        return np.asarray(text, dtype=np.int64)
    kinds = "a string or token ids" if ids else "a string"
    raise InvalidData(
        f"{owner}: a text must be {kinds}; got {shorten(repr(text), 40)} at place {place}."
    )


def is_ids(text: Any) -> bool:
    """Whether a text is whole numbers in one dimension."""
    if hasattr(text, "dtype") and hasattr(text, "ndim"):
        whole = str(text.dtype).removeprefix("torch.").startswith(("int", "uint"))
        return text.ndim == 1 and whole
    whole_numbers = isinstance(text, Sequence) and not isinstance(text, str | bytes)
    return whole_numbers and all(type(i) is int for i in text)


def read_text(path: str | Path, owner: str = "read_text") -> str:
    """Return the whole text of a UTF-8 file, gzipped or not; a byte order mark is left out.

    Parameters
    ----------
    path
        The file; a name that ends in ``.gz`` is unpacked.
    owner
        Whom errors name.
    """
    path = Path(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            raw = file.read()
    except (OSError, EOFError) as error:
        said = getattr(error, "strerror", None) or error
        raise InvalidData(
            f"{owner}: `{path}` must be a file that can be read; got {said}."
        ) from error
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InvalidData(
            f"{owner}: `{path}` must be UTF-8; got byte {raw[error.start]:#04x} at offset "
            f"{error.start} (line {line}). Convert it first, with `iconv -f LATIN1 -t UTF-8` for "
            "instance."
        ) from error
    if not text.strip():
        raise InvalidData(f"{owner}: `{path}` must hold a text; the file is empty.")
    return text
