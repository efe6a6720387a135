"""A file that a page sends: kept only while it is read, under a name of our own, never run."""

from __future__ import annotations

import base64
import binascii
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from castalia.errors import InvalidData

__all__ = ["MOST_UPLOADED", "uploaded"]

MOST_UPLOADED = 16_000_000  # bytes


@contextmanager
def uploaded(body: Mapping[str, Any], ending: str) -> Iterator[Path]:
    """Write the base64 of ``body["file"]`` to a file with an ending; it goes at the end.

    Parameters
    ----------
    body
        What the page sent.
    ending
        Of the name, such as ``".csv"``.
    """
    try:
        content = base64.b64decode(str(body.get("file", "")), validate=True)
    except (binascii.Error, ValueError):
        content = b""
    if not 0 < len(content) <= MOST_UPLOADED:
        raise InvalidData(f"studio: choose a file of 1 to {MOST_UPLOADED:,} bytes.")
    with tempfile.TemporaryDirectory(prefix="castalia-") as folder:
        path = Path(folder) / f"upload{ending}"
        path.write_bytes(content)
        yield path
