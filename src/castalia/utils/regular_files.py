"""Files of strangers, read whole: regular ones only, and JSON no longer or deeper than ours."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from typing import Any, BinaryIO

__all__ = ["open_regular", "parse_json", "read_regular"]

DEEPEST = 64  # lists and objects inside one another
LONGEST = 2**28  # bytes


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    A pipe would be waited for and a device never ends: both are refused, also behind a link.

    Raises
    ------
    OSError
        When the file cannot be opened or is not a regular one.

    Examples
    --------
    >>> open_regular("/dev/null")
    Traceback (most recent call last):
    OSError: [Errno 22] it is not a regular file: '/dev/null'
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    return open(handle, "rb")


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a regular file, no more than it has when it is opened.

    Raises
    ------
    OSError
        When the file cannot be read, is not a regular one, or is larger than the memory.
    """
    with open_regular(path) as file:
        try:
            return file.read(os.fstat(file.fileno()).st_size)
        except (MemoryError, OverflowError):
            raise OSError(errno.EFBIG, "it is larger than the memory", os.fspath(path)) from None


def parse_json(raw: bytes | str, hook: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Return what a JSON text says, or raise ValueError.

    Unlike ``json.loads`` it refuses texts longer or deeper than the library writes.

    Parameters
    ----------
    raw
        The text.
    hook
        Takes every object; what it returns takes its place.

    Examples
    --------
    >>> parse_json('{"a": [1]}')
    {'a': [1]}
    >>> parse_json("[" * 100 + "]" * 100)
    Traceback (most recent call last):
    ValueError: deeper than 64 lists and objects
    """
    if len(raw) > LONGEST:
        raise ValueError(f"longer than {LONGEST >> 20} MB")
    try:
        value = json.loads(raw, object_hook=hook)
    except RecursionError:
        raise ValueError(f"deeper than {DEEPEST} lists and objects") from None
    _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Raise ValueError when lists and objects are nested deeper than files of ours may be."""
    level, depth = [value], 0
    while level := [node for node in level if isinstance(node, dict | list)]:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"deeper than {DEEPEST} lists and objects")
        level = [item for node in level for item in _items(node)]


def _items(node: dict[str, Any] | list[Any]) -> Any:
    return node.values() if isinstance(node, dict) else node
