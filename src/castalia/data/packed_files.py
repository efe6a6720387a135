"""Bytes of files, unpacked where their names or their first bytes say that they are packed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from castalia.errors import CastaliaError, InvalidData
from castalia.utils.text import listing

__all__ = ["PACKINGS", "bare_name", "is_packed", "member", "open_bytes"]


def _member_bytes(path: Path) -> IO[bytes]:
    archive = zipfile.ZipFile(path)
    return archive.open(member(archive, path))


PACKINGS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    ".gz": ("gzip", gzip.open),
    ".bz2": ("bzip2", bz2.open),
    ".xz": ("xz", lzma.open),
    ".zip": ("zip", _member_bytes),
}
_DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def is_packed(path: str | Path) -> bool:
    """Whether a file's name says that it is packed.

    >>> is_packed("a.csv.xz"), is_packed("a.csv")
    (True, False)
    """
    return Path(path).suffix.lower() in PACKINGS


def bare_name(path: str | Path) -> str:
    """Return a file's name in small letters, without the ending of its packing.

    >>> bare_name("data/A.csv.BZ2")
    'a.csv'
    """
    name = Path(path).name.lower()
    return name[: -len(Path(name).suffix)] if is_packed(name) else name


def member(archive: zipfile.ZipFile, path: Path) -> str:
    """Return the one file in a zip archive; folders and what macOS adds do not count."""
    names = [
        name
        for name in archive.namelist()
        if not name.endswith("/") and not name.startswith(("__MACOSX/", "."))
    ]
    if len(names) != 1:
        raise InvalidData(
            f"read: `{path}` must hold one file; it holds {len(names)}: "
            f"{listing(names, 'and', 5)}. Unpack it, and name the file you mean."
        )
    return names[0]


@contextmanager
def open_bytes(
    path: Path, owner: str, damaged: type[CastaliaError] = InvalidData
) -> Iterator[IO[bytes]]:
    """Open a file for reading, unpacked by its ending; what is wrong with it is one sentence."""
    kind, opener = PACKINGS.get(path.suffix.lower(), ("", None))
    try:
        with opener(path) if opener is not None else path.open("rb") as file:
            yield file
    except _DAMAGE as error:
        raise damaged(
            f"{owner}: `{path}` must be a whole {kind} file; it is damaged or cut off ({error})."
        ) from error
    except OSError as error:
        if opener is bz2.open and error.errno is None:  # bz2 has no error of its own
            raise damaged(
                f"{owner}: `{path}` must be a whole {kind} file; it is damaged ({error})."
            ) from error
        raise InvalidData(
            f"{owner}: `{path}` must be a file that can be read; got {error.strerror or error}."
        ) from error
