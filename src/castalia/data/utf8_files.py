"""Text of UTF-8 files, gzipped or not: whole, in pieces, or line by line."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Iterator
from pathlib import Path

from castalia.errors import InvalidData

__all__ = ["read_lines", "read_pieces", "read_text"]


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
    for raw in _bytes(path, owner, size):
        try:
            text = rest + decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            before = offset - (len(error.object) - len(raw)) + error.start
            line = lines + error.object[: error.start].count(b"\n") + 1
            raise InvalidData(
                f"{owner}: `{path}` must be UTF-8; got byte {error.object[error.start]:#04x} at "
                f"offset {before} (line {line}). Convert it first, with `iconv -f LATIN1 -t UTF-8` "
                "for instance."
            ) from error
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


def _bytes(path: Path, owner: str, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked, and an empty piece at the end."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while raw := file.read(size):
                yield raw
    except (OSError, EOFError) as error:
        said = getattr(error, "strerror", None) or error
        raise InvalidData(
            f"{owner}: `{path}` must be a file that can be read; got {said}."
        ) from error
    yield b""
