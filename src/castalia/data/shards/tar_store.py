"""Files inside tar archives, read by their position: nothing is unpacked."""

from __future__ import annotations

import io
import os
import tarfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from castalia.data.broken_files import Broken, open_each
from castalia.data.images.file_stores import is_hidden
from castalia.data.url_files import is_url
from castalia.errors import DataWarning, InvalidData
from castalia.utils.imports import require
from castalia.utils.regular_files import open_regular
from castalia.utils.text import plural, public, shorten

__all__ = ["TarStore"]

BLOCK = 512  # bytes, of which a tar file is made; at least one of zeros ends it


class TarStore:
    """Files of tar archives, each named by its archive and its name there.

    Building it reads the headers of the archives, once. From then on any file is read by its
    position, also at an address, so that rows can be shuffled over all archives, each process reads
    its own only, and a training that goes on reads none that it has had.

    Parameters
    ----------
    shards
        Paths or addresses of plain tar files.
    broken
        ``"raise"`` refuses an archive that is damaged or cut off; ``"skip"`` leaves it out, and
        says so in one warning.

    Attributes
    ----------
    shards : list of str
        The archives that are whole and hold a file.
    """

    def __init__(self, shards: Sequence[str], *, broken: Broken = "raise") -> None:
        self.text = f"`{public(shards[0])}`" + (
            f" and {plural(len(shards) - 1, 'shard')} more" if len(shards) > 1 else ""
        )
        start = len(os.path.commonprefix([os.path.dirname(shard) for shard in shards]))
        self._places: dict[str, tuple[str, int, int]] = {}
        self.shards, empty = list[str](), list[str]()
        for shard, found in open_each(shards, _members, broken).items():
            known = shard[start:].lstrip("/") if start else shard
            self._places |= {f"{known}/{name}": (shard, at, size) for name, at, size in found}
            (self.shards if found else empty).append(shard)
        if not self.shards:
            raise InvalidData(f"read: {self.text} must hold files; the shards are empty.")
        if empty:
            warnings.warn(
                f"read: {plural(len(empty), 'shard')} of {len(shards):,} hold no file, such as "
                f"`{public(empty[0])}`.",
                DataWarning,
                stacklevel=4,
            )

    def __repr__(self) -> str:
        return self.text.replace("`", "")

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return sum(size for _, _, size in self._places.values())

    def names(self, under: str = "") -> list[str]:
        """Return the names of all files, in the order of the archives."""
        return [name for name in self._places if name.startswith(under)]

    def folders(self, under: str = "") -> list[str]:
        """Return nothing: what a file belongs to is said by its name."""
        return []

    def shard(self, name: str) -> str:
        """Return which archive a file is in."""
        return self._place(name)[0]

    def size(self, name: str) -> int:
        """Return the bytes of a file."""
        return self._place(name)[2]

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading: its bytes in memory."""
        return io.BytesIO(self.read(name))

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        shard, start, size = self._place(name)
        found = _bytes(shard, start, size)
        if len(found) < size:
            raise InvalidData(f"read: `{public(shard)}` was cut off while it was read.")
        return found

    def _place(self, name: str) -> tuple[str, int, int]:
        try:
            return self._places[name]
        except KeyError:
            raise FileNotFoundError(f"there is no `{name}` in the shards") from None


def _members(shard: str) -> list[tuple[str, int, int]]:
    """Return name, position and size of every regular file of an archive; data is not read."""
    try:
        with _opened(shard) as file:
            return list(_walk(file))
    except (tarfile.TarError, OSError, ValueError, EOFError) as error:
        reason = shorten(public(getattr(error, "strerror", "") or error), 120)
        raise InvalidData(f"read: `{public(shard)}` must be a whole tar file; {reason}.") from error


def _walk(file: Any) -> Iterator[tuple[str, int, int]]:
    end = file.seek(0, os.SEEK_END)
    if end < BLOCK:
        raise tarfile.ReadError(f"it has {end} bytes")
    file.seek(end - BLOCK)
    if any(file.read(BLOCK)):
        raise tarfile.ReadError("it is cut off: the blocks of zeros at its end are not there")
    file.seek(0)
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for member in archive:
            archive.members = []  # type: ignore[attr-defined]  # tarfile would keep them all
            if member.isreg() and not member.issparse() and not is_hidden(member.name):
                yield member.name, member.offset_data, member.size


@contextmanager
def _opened(shard: str) -> Iterator[Any]:
    if not is_url(shard):
        with open_regular(shard) as file:
            yield file
        return
    fsspec = require("fsspec", caller="read", extra="url")
    try:
        with fsspec.open(shard, "rb") as remote:
            yield remote
    except (tarfile.TarError, OSError):
        raise
    except Exception as error:  # each file system has errors of its own
        raise OSError(0, f"{type(error).__name__}: {public(error)}") from error


def _bytes(shard: str, start: int, size: int) -> bytes:
    """Return bytes of an archive, which several threads may ask for."""
    if is_url(shard):
        fsspec = require("fsspec", caller="read", extra="url")
        system, path = fsspec.core.url_to_fs(shard)
        return bytes(system.cat_file(path, start=start, end=start + size)) if size else b""
    with open_regular(shard) as file:
        file.seek(start)
        return file.read(size)
