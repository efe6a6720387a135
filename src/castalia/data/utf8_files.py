"""Text of UTF-8 files, gzipped or not: whole, in pieces, or line by line."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from castalia.errors import CastaliaError, InvalidData

__all__ = ["not_utf8", "read_bytes", "read_lines", "read_pieces", "read_text"]


def read_text(path: str | Path, owner: str = "read_text") -> str:
    """Return the whole text of a UTF-8 file, gzipped or not; a byte order mark is left out.

    Parameters
    ----------
    path
        The file; a name that ends in ``.gz`` is unpacked.
    owner
        Whom errors name.
    """
    text = "".join(read_pieces(path, owner))
    if not text.strip():
        raise InvalidData(f"{owner}: `{path}` must hold a text; the file is empty.")
    return text


def read_pieces(path: str | Path, owner: str = "read_pieces", size: int = 1 << 16) -> Iterator[str]:
    """Yield the text of a UTF-8 file, gzipped or not, in pieces that end behind a line.

    A file larger than memory will do, one long line too: that is cut before a space, or anywhere.

    Parameters
    ----------
    path
        The file; a name that ends in ``.gz`` is unpacked.
    owner
        Whom errors name.
    size
        Bytes of a piece, about.
    """
    path, rest, decoder = Path(path), "", codecs.getincrementaldecoder("utf-8-sig")()
    offset = lines = 0  # before the bytes that are being decoded
    for raw in chain(read_bytes(path, owner, size), [b""]):
        try:
            text = rest + decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            raise not_utf8(owner, path, error, offset, lines, raw) from error
        offset, lines = offset + len(raw), lines + raw.count(b"\n")
        cut = text.rfind("\n") + 1 or max(text.rfind(" "), 0) or len(text)
        cut = cut if raw else len(text)
        rest = text[cut:]
        if cut:
            yield text[:cut]


def read_lines(path: str | Path, owner: str = "read_lines") -> Iterator[str]:
    """Yield the lines of a UTF-8 file, gzipped or not, without their ends.

    A file larger than memory will do: little more than one line is held at a time.

    Parameters
    ----------
    path
        The file; a name that ends in ``.gz`` is unpacked.
    owner
        Whom errors name.
    """
    held: list[str] = []  # the beginning of a line longer than a piece
    for piece in read_pieces(path, owner):
        first, *others = piece.split("\n")
        held.append(first)
        if others:
            *others, rest = "".join(held), *others
            yield from (line.removesuffix("\r") for line in others)
            held = [rest]
    if held and held != [""]:
        yield "".join(held).removesuffix("\r")


def read_bytes(
    path: Path, owner: str, size: int = 1 << 20, *, damaged: type[CastaliaError] = InvalidData
) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces, unpacked where its name ends in ``.gz``."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            while raw := file.read(size):
                yield raw
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise damaged(
            f"{owner}: `{path}` must be a whole gzip file; it is damaged or cut off ({error})."
        ) from error
    except OSError as error:
        raise InvalidData(
            f"{owner}: `{path}` must be a file that can be read; got {error.strerror or error}."
        ) from error


def not_utf8(
    owner: str, path: Path, error: UnicodeDecodeError, offset: int, lines: int, raw: bytes
) -> InvalidData:
    """Say where a file stops being UTF-8.

    Parameters
    ----------
    owner, path, error
        Who reads which file, and what the decoder met.
    offset, lines
        Bytes and lines before those that were being decoded.
    raw
        Bytes being decoded; the decoder may have kept some of those before.
    """
    before = offset - (len(error.object) - len(raw)) + error.start
    line = lines + error.object[: error.start].count(b"\n") + 1
    return InvalidData(
        f"{owner}: `{path}` must be UTF-8; got byte {error.object[error.start]:#04x} at offset "
        f"{before} (line {line}). Convert it first, with `iconv -f LATIN1 -t UTF-8` for instance."
    )
