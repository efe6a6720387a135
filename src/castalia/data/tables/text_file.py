"""What must be known of a text file before it is parsed: encoding, quotes, lines."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from castalia.data.utf8_files import not_utf8, read_bytes
from castalia.errors import InvalidData

__all__ = ["TextFile", "inspect"]


@dataclass(frozen=True)
class TextFile:
    """What one pass over a text file finds."""

    path: Path
    packed: bool
    lines: int
    quotes: int
    blanks: bool

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
    """Find the encoding, lines and quotation marks of a text file in one pass.

    Raises
    ------
    InvalidData
        If it is empty, damaged or not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = returns = quotes = read = 0
    blanks, visible, last = False, False, b"\n"
    for piece in read_bytes(path, "read"):
        try:
            decoder.decode(piece)
        except UnicodeDecodeError as error:
            raise not_utf8("read", path, error, read, lines, piece) from error
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
        raise not_utf8("read", path, error, read, lines, b"") from error
    # Files of old Macs end their lines with a carriage return alone.
    lines, blanks = (lines, blanks) if lines else (returns, returns > 0)
    return TextFile(path, packed, lines + (last != b"\n"), quotes, blanks)


def _open(path: Path, packed: bool) -> Any:
    return gzip.open(path, "rb") if packed else path.open("rb")
