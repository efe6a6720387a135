"""What must be known of a text file before it is parsed: encoding, quotes, lines."""

from __future__ import annotations

import codecs
import csv
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from castalia.data.packed_files import is_packed, open_bytes
from castalia.data.text_encodings import (
    check_encoding,
    check_text,
    legacy_encoding,
    marked_encoding,
)
from castalia.data.utf8_files import not_utf8, read_bytes
from castalia.errors import DataWarning, InvalidData

__all__ = ["TextFile", "inspect", "sample_lines"]

_HEAD = 4096  # bytes that show what a file is
_UTF8 = ("utf-8", "utf-8-sig")
_NAMES = {"cp1252": "Windows-1252", "latin-1": "Latin-1"}


@dataclass(frozen=True)
class TextFile:
    """What one pass over a text file finds."""

    path: Path
    encoding: str
    lines: int
    quotes: int
    blanks: bool

    @property
    def plain(self) -> bool:
        """Whether the bytes on disk are UTF-8 as they are."""
        return self.encoding in _UTF8 and not is_packed(self.path)

    def line_of(self, record: int, delimiter: str) -> int:
        """Return the line on which a record starts, both counted from 1."""
        if not self.quotes and not self.blanks:
            return record
        for count, (line, _) in enumerate(self.records(delimiter), start=1):
            if count == record:
                return line
        return record

    def records(self, delimiter: str) -> Iterator[tuple[int, list[str]]]:
        """Yield ``(first line, fields)`` of every record; only for messages, since it is slow."""
        with self._text() as text:
            reader = csv.reader(text, delimiter=delimiter)
            start = 1
            try:
                for fields in reader:
                    if fields:
                        yield start, fields
                    start = reader.line_num + 1
            except csv.Error:
                return

    def head(self, lines: int) -> list[str]:
        """Return the first lines that are not blank."""
        with self._text(newline=None) as text:
            return list(islice((line for line in text if line.strip()), lines))

    @contextmanager
    def _text(self, newline: str | None = "") -> Iterator[IO[str]]:
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        with open_bytes(self.path, "read") as raw:
            yield io.TextIOWrapper(raw, encoding, newline=newline)

    @contextmanager
    def utf8(self) -> Iterator[Any]:
        """Open the file as a stream of UTF-8 bytes, whatever it is on disk."""
        with open_bytes(self.path, "read") as raw:
            yield raw if self.encoding in _UTF8 else io.BufferedReader(Recoded(raw, self.encoding))

    def pieces(self, size: int = 1 << 20) -> Iterator[bytes]:
        """Yield the file's bytes in UTF-8."""
        with self.utf8() as stream:
            while piece := stream.read(size):
                yield piece


class Recoded(io.RawIOBase):
    """Bytes of one encoding as those of UTF-8, without a byte order mark."""

    def __init__(self, raw: IO[bytes], encoding: str, size: int = 1 << 16) -> None:
        self.raw, self.size, self.held, self.ended = raw, size, b"", False
        self.decoder = codecs.getincrementaldecoder(encoding)()
        self.first = True

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; 0 at the end."""
        while not self.held and not self.ended:
            piece = self.raw.read(self.size)
            self.ended = not piece
            text = self.decoder.decode(piece, final=self.ended)
            self.held = (text.removeprefix("\ufeff") if self.first else text).encode()
            self.first = self.first and not text
        count = min(len(buffer), len(self.held))
        buffer[:count], self.held = self.held[:count], self.held[count:]
        return count


class Counts:
    """Lines and quotation marks of the bytes seen so far."""

    def __init__(self) -> None:
        self.lines = self.returns = self.quotes = 0
        self.blanks, self.visible, self.last = False, False, b"\n"

    def add(self, piece: bytes) -> None:
        """Take in the next bytes, in UTF-8."""
        self.visible = self.visible or bool(piece.strip(b"\xef\xbb\xbf \t\r\n"))
        joined = self.last + piece.replace(b"\r", b"")
        self.blanks = self.blanks or b"\n\n" in joined
        self.last = joined[-1:]
        self.lines += piece.count(b"\n")
        self.returns += piece.count(b"\r")
        self.quotes += piece.count(b'"')

    def file(self, path: Path, encoding: str) -> TextFile:
        """Return what was found."""
        if not self.visible:
            raise InvalidData(f"read: `{path}` must hold a table; the file is empty.")
        # Files of old Macs end their lines with a carriage return alone.
        lines, blanks = self.lines, self.blanks
        if not lines:
            lines, blanks = self.returns, self.returns > 0
        return TextFile(path, encoding, lines + (self.last != b"\n"), self.quotes, blanks)


def sample_lines(path: Path, lines: int) -> list[str]:
    """Return the first lines of a text file that are not blank, without reading all of it."""
    head = next(read_bytes(path, "read", _HEAD), b"")
    check_text(path, head, "read")
    encoding = marked_encoding(head) or "utf-8"
    with open_bytes(path, "read") as raw:
        text = io.TextIOWrapper(raw, encoding, errors="replace")
        return list(islice((line for line in text if line.strip()), lines))


def inspect(path: Path, encoding: str | None = None) -> TextFile:
    """Find the encoding, lines and quotation marks of a text file in one pass.

    What is not UTF-8 and has no byte order mark is taken as Windows-1252, with a warning.

    Parameters
    ----------
    path
        The file, packed or not.
    encoding
        Its encoding; None: found out.

    Raises
    ------
    InvalidData
        If it is empty, damaged, no text, or not in the encoding given.
    """
    head = next(read_bytes(path, "read", _HEAD), b"")
    given = check_encoding(encoding, "read")
    if given is None:
        check_text(path, head, "read")
    marked = given or marked_encoding(head) or "utf-8"
    try:
        return _inspect(path, marked)
    except UnicodeDecodeError as error:
        if given is not None:
            raise InvalidData(
                f"read: `{path}` must be {given}; got byte {error.object[error.start]:#04x}, which "
                "is none. Leave `encoding` out to have it detected."
            ) from error
    return _inspect_legacy(path)


def _inspect(path: Path, encoding: str) -> TextFile:
    counts, decoder = Counts(), codecs.getincrementaldecoder(encoding)()
    for piece in read_bytes(path, "read"):
        text = decoder.decode(piece)
        counts.add(piece if encoding in _UTF8 else text.encode())
    decoder.decode(b"", final=True)
    return counts.file(path, encoding)


def _inspect_legacy(path: Path) -> TextFile:
    """Take a file that is not UTF-8 as Windows-1252 or Latin-1, and say so."""
    names = {legacy_encoding(piece) for piece in read_bytes(path, "read")}
    encoding = "latin-1" if "latin-1" in names else "cp1252"
    warnings.warn(
        f"{_first_bad_byte(path)} It is read as {_NAMES[encoding]}; give its encoding (`encoding`, "
        "or --encoding) if letters look wrong.",
        DataWarning,
        stacklevel=6,
    )
    return _inspect(path, encoding)


def _first_bad_byte(path: Path) -> str:
    """Say where a file stops being UTF-8."""
    decoder, offset, lines = codecs.getincrementaldecoder("utf-8")(), 0, 0
    for piece in [*read_bytes(path, "read"), b""]:
        try:
            decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            return str(not_utf8("read", path, error, offset, lines, piece)).partition(" Conv")[0]
        offset, lines = offset + len(piece), lines + piece.count(b"\n")
    return f"read: `{path}` is not UTF-8."
