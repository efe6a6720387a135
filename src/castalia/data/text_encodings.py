"""Which encoding the bytes of a text file have: said by a mark, UTF-8, or that of Windows."""

from __future__ import annotations

import codecs
from pathlib import Path

from castalia.errors import InvalidData, InvalidParameter

__all__ = ["check_encoding", "check_text", "legacy_encoding", "marked_encoding"]

_MARKS = (  # longer ones first: that of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MAGIC = {
    b"PK\x03\x04": ("a zip archive or an Excel workbook", ".zip or .xlsx"),
    b"\x1f\x8b": ("a gzip file", ".gz"),
    b"BZh": ("a bzip2 file", ".bz2"),
    b"\xfd7zXZ": ("an xz file", ".xz"),
    b"PAR1": ("a Parquet file", ".parquet"),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", ""),
    b"%PDF": ("a PDF", ""),
    b"\x89PNG": ("a PNG image", ".png"),
    b"\xff\xd8\xff": ("a JPEG image", ".jpg"),
}
UNUSED = bytes((0x81, 0x8D, 0x8F, 0x90, 0x9D))  # bytes that Windows-1252 leaves undefined


def marked_encoding(head: bytes) -> str | None:
    """Return the encoding that a file's first bytes say, or None.

    >>> marked_encoding("a".encode("utf-16")), marked_encoding(b"a,b")
    ('utf-16', None)
    >>> marked_encoding("name;größe".encode("utf-16-le"))
    'utf-16-le'
    """
    found = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    if found is not None or not head:
        return found
    even, odd = head[0:200:2].count(0), head[1:200:2].count(0)
    half = len(head[:200]) // 2
    if half and odd > 0.7 * half and not even:
        return "utf-16-le"
    return "utf-16-be" if half and even > 0.7 * half and not odd else None


def legacy_encoding(sample: bytes) -> str:
    r"""Return what text that is not UTF-8 most probably is: Windows-1252, or Latin-1.

    >>> legacy_encoding("größe €".encode("cp1252")), legacy_encoding(b"\x81")
    ('cp1252', 'latin-1')
    """
    return "latin-1" if any(byte in UNUSED for byte in sample) else "cp1252"


def check_text(path: Path, head: bytes, owner: str) -> None:
    """Refuse a file whose first bytes are not those of a text."""
    for magic, (kind, ending) in _MAGIC.items():
        if head.startswith(magic):
            remedy = f" Give it the ending {ending}." if ending else " Export it as CSV first."
            raise InvalidData(
                f"{owner}: `{path}` must be text; its first bytes are those of {kind}.{remedy}"
            )
    if b"\0" in head and marked_encoding(head) is None:
        raise InvalidData(
            f"{owner}: `{path}` must be text; it holds the byte 0x00 at offset "
            f"{head.index(0)}. Export the table as CSV."
        )


def check_encoding(encoding: str | None, owner: str) -> str | None:
    """Return the usual name of an encoding, or refuse it."""
    if encoding is None:
        return None
    try:
        return codecs.lookup(encoding).name
    except LookupError as error:
        raise InvalidParameter(
            f"{owner}: `encoding` must be one that Python knows, such as 'utf-8', 'cp1252' or "
            f"'utf-16'; got {encoding!r}."
        ) from error
