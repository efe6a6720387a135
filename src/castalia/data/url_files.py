"""Files at addresses, such as https://…, s3://… or memory://…, brought to a local folder."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from castalia.errors import InvalidData
from castalia.utils.imports import require
from castalia.utils.text import shorten

__all__ = ["is_url", "local_copy"]

_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")


def is_url(source: Any) -> bool:
    """Whether something is an address rather than a path.

    >>> is_url("https://example.org/a.csv"), is_url("C:/a.csv"), is_url("a.csv")
    (True, False, False)
    """
    return isinstance(source, str) and bool(_SCHEME.match(source))


@contextmanager
def local_copy(url: str, owner: str = "read") -> Iterator[Path]:
    """Fetch a file by fsspec; the copy, which keeps its name, is deleted at the end."""
    fsspec = require("fsspec", caller=owner, extra="url")
    name = Path(unquote(urlsplit(url).path)).name or "table"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        try:
            with fsspec.open(url, "rb") as source, path.open("wb") as file:
                shutil.copyfileobj(source, file)
        except ImportError as error:  # fsspec says which package reads such addresses
            raise InvalidData(f"{owner}: `{url}` cannot be opened; {error}.") from error
        except Exception as error:  # each file system has errors of its own
            raise InvalidData(
                f"{owner}: `{url}` must be a file that can be fetched; got "
                f"{type(error).__name__}: {shorten(str(error), 120)}."
            ) from error
        yield path
