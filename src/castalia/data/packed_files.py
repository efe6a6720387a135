"""Bytes of files, unpacked where their names or their first bytes say that they are packed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from castalia.errors import CastaliaError, InvalidData
from castalia.utils.regular_files import open_regular
from castalia.utils.text import listing

__all__ = ["PACKINGS", "bare_name", "is_packed", "member", "most_unpacked", "open_bytes"]


FEW, TIMES = 2**25, 256  # bytes that any packed file may hold, and how often its own size more
WINDOW = 2**27  # bytes that unpacking an xz file may need; `xz -9` takes half of that


def most_unpacked(size: int) -> int:
    """Return how many bytes a packed file of a size may hold.

    >>> most_unpacked(1_000_000)
    289554432
    """
    return FEW + TIMES * size


class Bounded(io.RawIOBase):
    """Bytes of a packed file, as many as one of its size may hold."""

    def __init__(self, file: Any, path: Path, owner: str) -> None:
        self.file, self.path, self.owner = file, path, owner
        self.left = most_unpacked(path.stat().st_size)

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; 0 at the end."""
        count = self.file.readinto(buffer)
        self.left -= count
        if self.left < 0:
            raise InvalidData(
                f"{self.owner}: `{self.path}` must hold at most {FEW >> 20} MB and {TIMES} times "
                "its own size; it goes on. If you trust it, unpack it and read what was in it."
            )
        return int(count)


class XzFile(io.RawIOBase):
    """The bytes of an xz file, whose streams may ask for a window of `WINDOW` bytes only."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")
        self.unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, WINDOW)

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; 0 at the end."""
        while True:
            raw = self._packed()
            if raw is None:
                return 0
            piece = self.unpacker.decompress(raw, len(buffer))
            if piece:
                buffer[: len(piece)] = piece
                return len(piece)

    def _packed(self) -> bytes | None:
        """Return what to unpack next, nothing if some is left over, or None at the end."""
        if self.unpacker.eof:  # the next stream, behind zeros that fill up the one before
            raw = self.unpacker.unused_data.lstrip(b"\0")
            while not raw and (more := self.file.read(1 << 16)):
                raw = more.lstrip(b"\0")
            if not raw:
                return None
            self.unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, WINDOW)
            return raw
        if not self.unpacker.needs_input:
            return b""
        raw = self.file.read(1 << 16)
        if not raw:
            raise EOFError("it ends within a stream")
        return raw

    def close(self) -> None:
        """Close the file."""
        self.file.close()
        super().close()


def _member_bytes(path: Path) -> IO[bytes]:
    archive = zipfile.ZipFile(path)
    return archive.open(member(archive, path))


PACKINGS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    ".gz": ("gzip", gzip.open),
    ".bz2": ("bzip2", bz2.open),
    ".xz": ("xz", XzFile),
    ".zip": ("zip", _member_bytes),
}
_DAMAGE = (
    EOFError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # an encrypted member
    UnicodeDecodeError,  # a member's name
)


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
        with open_regular(path) as file:
            if opener is None:
                yield file
                return
        with opener(path) as packed:
            yield io.BufferedReader(Bounded(packed, path, owner), 1 << 16)
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
