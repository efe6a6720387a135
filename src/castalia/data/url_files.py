"""Files at addresses, such as https://…, s3://… or memory://…: one is copied, many are streamed."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import has_magic
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from castalia.data.broken_files import Broken, open_each
from castalia.data.tables.joined_schema import joined_schema
from castalia.errors import InvalidData
from castalia.utils.imports import require
from castalia.utils.text import listing, plural, public, shorten

__all__ = ["is_url", "local_copy", "table_at", "without_password"]

FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".jsonl": "json"}
FORMATS |= {".arrow": "ipc", ".feather": "ipc"}
_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+://")


def is_url(source: Any) -> bool:
    """Whether something is an address rather than a path.

    >>> is_url("https://example.org/a.csv"), is_url("C:/a.csv"), is_url("a.csv")
    (True, False, False)
    """
    return isinstance(source, str) and bool(_SCHEME.match(source))


def without_password(source: Any) -> Any:
    """Return an address without user and password, to be shown or kept; a path as it is.

    >>> without_password("s3://me:secret@host/a.csv"), without_password("a b.csv")
    ('s3://host/a.csv', 'a b.csv')
    """
    return public(source) if is_url(source) else source


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
        except Exception as error:  # each file system has errors of its own
            raise _unreachable(url, owner, error) from error
        yield path


def table_at(url: str, broken: Broken = "raise") -> Any:
    """Return the pyarrow data set of a folder or a pattern; None: the address is of one file.

    Examples
    --------
    >>> table_at("https://example.org/a.csv") is None
    True
    """
    if url.startswith("http") or (Path(url).suffix and not has_magic(url)):
        return None
    fsspec = require("fsspec", caller="read", extra="url")
    try:
        system, path = fsspec.core.url_to_fs(url)
        if not has_magic(path) and system.isfile(path):
            return None
        found = system.glob(path) if has_magic(path) else system.find(path)
    except Exception as error:  # each file system has errors of its own
        raise _unreachable(url, "read", error) from error
    files = sorted(name for name in found if Path(name).name[0] not in "._")
    formats = {FORMATS.get(Path(name).suffix.lower()) for name in files}
    if len(formats) != 1 or None in formats:
        raise InvalidData(
            f"read: `{public(url)}` must be a file, or a folder or pattern of files of one of "
            f"{listing(FORMATS)}; it holds {plural(len(files), 'file')} of "
            f"{plural(len(formats), 'kind')}."
        )
    handler = pafs.PyFileSystem(pafs.FSSpecHandler(system))
    return _alike(files, handler, formats.pop(), broken)


def _alike(files: list[str], system: pafs.FileSystem, form: str | None, broken: Broken) -> Any:
    """Return the data set of files; one that is damaged, or has other columns, is named."""

    def columns(name: str) -> pa.Schema:
        try:
            return pads.dataset([name], filesystem=system, format=form).schema
        except (pa.ArrowException, OSError) as error:
            raise InvalidData(
                f"read: `{public(name)}` must be a whole table; {shorten(public(error), 120)}."
            ) from error

    found = open_each(files, columns, broken)
    schema = joined_schema([*found.values()], [*map(public, found)])
    return pads.dataset([*found], filesystem=system, format=form, schema=schema)


def _unreachable(url: str, owner: str, error: Exception) -> InvalidData:
    if isinstance(error, ImportError):  # fsspec says which package reads such addresses
        return InvalidData(f"{owner}: `{public(url)}` cannot be opened; {error}.")
    return InvalidData(
        f"{owner}: `{public(url)}` must be a file that can be fetched; got "
        f"{type(error).__name__}: {shorten(public(error), 120)}."
    )
