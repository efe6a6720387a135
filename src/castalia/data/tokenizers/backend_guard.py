"""Backends from untrusted JSON: what the `tokenizers` package raises becomes an error of ours.

The package raises bare ``Exception`` for what a file lacks, and where its own code gives up an
error below ``BaseException`` that ``except Exception`` does not see.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tokenizers as rust

from castalia.errors import CastaliaError, DamagedFile
from castalia.utils.text import shorten

__all__ = ["guarded", "read_backend"]

OURS = (CastaliaError, TypeError, AttributeError, UnicodeError)  # said better elsewhere
PASSED = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)
LARGEST = 2**24  # ids; a table of vectors has no more rows


def read_backend(text: str) -> Any:
    """Return the backend of the text of a ``tokenizer.json``."""
    try:
        backend = rust.Tokenizer.from_str(text)
        largest = max(backend.get_vocab(with_added_tokens=True).values(), default=-1)
    except PASSED:
        raise
    except BaseException as error:
        raise DamagedFile(
            f"Tokenizer: its JSON must be a tokenizer's; {shorten(error, 200)}."
        ) from None
    if largest >= LARGEST:
        raise DamagedFile(
            f"Tokenizer: the ids of its JSON must be below {LARGEST:,}; got {largest:,}."
        )
    return backend


@contextmanager
def guarded(owner: str) -> Iterator[None]:
    """Turn what the package raises while it encodes or decodes into ``DamagedFile``."""
    try:
        yield
    except (*OURS, *PASSED):
        raise
    except BaseException as error:
        raise DamagedFile(
            f"{owner}: its tokenizer.json must be able to read texts; it fails "
            f"({shorten(error, 200)})."
        ) from None
