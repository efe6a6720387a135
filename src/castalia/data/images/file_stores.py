"""Where files lie: a folder, or a zip archive that is read without unpacking it."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Protocol

from castalia.data.packed_files import most_unpacked
from castalia.errors import InvalidData
from castalia.utils.regular_files import open_regular
from castalia.utils.text import did_you_mean

__all__ = ["Archive", "Folder", "Store", "is_hidden", "open_store"]


class Store(Protocol):
    """Files that have names, with ``/`` between folders."""

    def names(self, under: str = "") -> list[str]:
        """Return the names of all files below a folder of the store; opens none."""

    def folders(self, under: str = "") -> list[str]:
        """Return the names of the folders directly below one, sorted."""

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""

    def size(self, name: str) -> int:
        """Return the bytes of a file."""


class Folder:
    """Files of a folder and the folders in it, named by their path from it, with ``/``."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return self.path

    def names(self, under: str = "") -> list[str]:
        """Return the names of all files below a folder of the store, sorted; opens none."""
        return sorted(self._walk(under))

    def folders(self, under: str = "") -> list[str]:
        """Return the names of the folders directly below one, sorted."""
        with os.scandir(os.path.join(self.path, under)) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def _walk(self, under: str, around: frozenset[str] = frozenset()) -> Iterator[str]:
        """Yield names; a link to a folder that it lies in is not followed."""
        place = os.path.join(self.path, under)
        around |= {os.path.realpath(place)}
        with os.scandir(place) as entries:
            for entry in entries:
                name = f"{under}/{entry.name}" if under else entry.name
                if not entry.is_dir():
                    yield name
                elif not entry.is_symlink() or os.path.realpath(entry.path) not in around:
                    yield from self._walk(name, around)

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading; a name that is an absolute path may lie elsewhere."""
        return open_regular(os.path.join(self.path, name))

    def size(self, name: str) -> int:
        """Return the bytes of a file."""
        return os.stat(os.path.join(self.path, name)).st_size


class Archive:
    """Files of a zip archive. May be read by several threads, and sent to other processes."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise InvalidData(f"read: `{path}` must be a whole zip archive; {error}.") from error

    def __repr__(self) -> str:
        return self.path

    def __getstate__(self) -> str:
        return self.path

    def __setstate__(self, path: str) -> None:
        Archive.__init__(self, path)

    def names(self, under: str = "") -> list[str]:
        """Return the names of all files below a folder of the archive, sorted."""
        start = f"{under}/" if under else ""
        names = (name for name in self._zip.namelist() if name.startswith(start))
        return sorted(name for name in names if not name.endswith("/"))

    def folders(self, under: str = "") -> list[str]:
        """Return the names of the folders directly below one, sorted."""
        start = f"{under}/" if under else ""
        inner = (n[len(start) :] for n in self._zip.namelist() if n.startswith(start))
        return sorted({name.split("/")[0] for name in inner if "/" in name})

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading: its bytes in memory, as images are read to and fro."""
        try:
            found = self._zip.getinfo(name)
        except KeyError as error:
            raise FileNotFoundError(f"there is no `{name}` in the archive") from error
        if found.file_size > most_unpacked(found.compress_size):
            raise InvalidData(
                f"it unpacks to {found.file_size:,} bytes from {found.compress_size:,}"
            )
        return io.BytesIO(self._zip.read(found))

    def size(self, name: str) -> int:
        """Return the bytes of a file when unpacked."""
        return self._zip.getinfo(name).file_size


def open_store(path: str | PathLike[str], owner: str = "read") -> Store:
    """Return the files of a folder or of a zip archive."""
    place = os.fspath(path)
    if os.path.isdir(place):
        return Folder(place)
    if os.path.isfile(place) and place.lower().endswith(".zip"):
        return Archive(place)
    found = "is a file" if os.path.exists(place) else "is not there"
    raise InvalidData(
        f"{owner}: `{place}` must be a folder or a zip archive; it {found}.{_near(place)}"
    )


def _near(place: str) -> str:
    """Suggest a folder or archive of a similar name beside a missing one."""
    path = Path(place)
    if path.exists():
        return ""
    try:
        return did_you_mean(path.name, (other.name for other in path.parent.iterdir()))
    except OSError:
        return ""


def is_hidden(name: str) -> bool:
    """Whether a file is of the kind that systems leave in folders.

    >>> is_hidden("cats/.DS_Store"), is_hidden("__MACOSX/cats/a.jpg"), is_hidden("cats/a.jpg")
    (True, True, False)
    """
    return any(
        part.startswith((".", "__MACOSX")) or part == "Thumbs.db" for part in name.split("/")
    )
