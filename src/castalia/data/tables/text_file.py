"""What must be known of a text file before it is parsed: encoding, quotes, lines."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from castalia.errors import InvalidData

__all__ = ["TextFile", "inspect"]

_PIECE = 1 << 20


@dataclass(frozen=True)
class TextFile:
    """A text file that has been looked through once."""

    path: Path
    packed: bool
    lines: int
    quotes: int
    blanks: bool

    def pieces(self) -> Iterator[bytes]:
        """Yield the file's bytes in pieces."""
        yield from _pieces(self.path, self.packed)

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
        with _open(self.path, self.packed) as raw:
            text = io.TextIOWrapper(raw, "utf-8-sig", newline="")
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
        with _open(self.path, self.packed) as raw:
            text = io.TextIOWrapper(raw, "utf-8-sig")
            return list(islice((line for line in text if line.strip()), lines))


def inspect(path: Path, packed: bool) -> TextFile:
    """Look through a text file once: its encoding, lines and quotation marks.

    Raises
    ------
    InvalidData
        If it is empty, damaged or not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = returns = quotes = read = 0
    blanks, visible, last = False, False, b"\n"
    for piece in _pieces(path, packed):
        try:
            decoder.decode(piece)
        except UnicodeDecodeError as error:
            raise _undecodable(path, piece, lines, read, error) from error
        read += len(piece)
        visible = visible or bool(piece.strip(b"\xef\xbb\xbf \t\r\n"))
        joined = last + piece.replace(b"\r", b"")
        blanks = blanks or b"\n\n" in joined
        last = joined[-1:]
        lines += piece.count(b"\n")
        returns += piece.count(b"\r")
        quotes += piece.count(b'"')
    if not visible:
        raise InvalidData(f"read: `{path}` must hold a table; the file is empty.")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise _undecodable(path, b"", lines, read, error) from error
    # Files of old Macs end their lines with a carriage return alone.
    lines, blanks = (lines, blanks) if lines else (returns, returns > 0)
    return TextFile(path, packed, lines + (last != b"\n"), quotes, blanks)


def _undecodable(
    path: Path, piece: bytes, lines: int, read: int, error: UnicodeDecodeError
) -> InvalidData:
    line = lines + 1 + piece[: error.start].count(b"\n")
    offset = read + error.start - (len(error.object) - len(piece))  # bytes left of the piece before
    byte = error.object[error.start]
    return InvalidData(
        f"read: `{path}` must be UTF-8 text; line {line} holds the byte 0x{byte:02x} at "
        f"offset {offset}. "
        "Save the file as UTF-8, or give it the suffix of its real format."
    )


def _open(path: Path, packed: bool) -> Any:
    return gzip.open(path, "rb") if packed else path.open("rb")


def _pieces(path: Path, packed: bool) -> Iterator[bytes]:
    try:
        with _open(path, packed) as file:
            while piece := file.read(_PIECE):
                yield piece
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InvalidData(
            f"read: `{path}` must be a whole gzip file; it is damaged or cut off ({error})."
        ) from error
    except OSError as error:
        raise InvalidData(f"read: `{path}` cannot be read: {error.strerror or error}.") from error
