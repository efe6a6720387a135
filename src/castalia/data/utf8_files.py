"""Text of UTF-8 files, packed or not: whole, in pieces, or line by line."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from castalia.data.packed_files import open_bytes
from castalia.data.text_encodings import marked_encoding
from castalia.errors import CastaliaError, InvalidData

__all__ = ["not_utf8", "read_bytes", "read_lines", "read_pieces", "read_text"]


def read_text(path: str | Path, owner: str = "read_text") -> str:
    """Return the whole text of a UTF-8 file, packed or not; a byte order mark is left out.

    Parameters
    ----------
    path
        The file; one whose name ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zip`` is unpacked.
    owner
        Whom errors name.
    """
    text = "".join(read_pieces(path, owner))
    if not text.strip():
        raise InvalidData(f"{owner}: `{path}` must hold a text; the file is empty.")
    return text


def read_pieces(path: str | Path, owner: str = "read_pieces", size: int = 1 << 16) -> Iterator[str]:
    """Yield the text of a UTF-8 file, packed or not, in pieces that end behind a line.

    A file larger than memory will do, one long line too: that is cut before a space, or anywhere.

    Parameters
    ----------
    path
        The file; one whose name ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zip`` is unpacked.
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
    """Yield the lines of a UTF-8 file, packed or not, without their ends.

    A file larger than memory will do: little more than one line is held at a time.

    Parameters
    ----------
    path
        The file; one whose name ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zip`` is unpacked.
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
    """Yield the bytes of a file in pieces, unpacked where its name says that it is packed."""
    with open_bytes(path, owner, damaged) as file:
        while raw := file.read(size):
            yield raw


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
    found = (marked_encoding(error.object) if not before else None) or "latin1"
    line = lines + error.object[: error.start].count(b"\n") + 1
    return InvalidData(
        f"{owner}: `{path}` must be UTF-8; got byte {error.object[error.start]:#04x} at offset "
        f"{before} (line {line}). Convert it first, with `iconv -f {found.upper()} -t UTF-8` for "
        "instance."
    )
