"""Arrays in NumPy's own format, whose headers are compared with their bytes before any memory."""

from __future__ import annotations

import math
import zipfile
import zlib
from io import BytesIO
from tokenize import TokenError
from typing import Any

import numpy as np

from castalia.data.packed_files import most_unpacked

__all__ = ["DAMAGE", "check_arrays", "read_array"]

# Whatever reading a damaged archive of arrays may raise.
DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError),  # of the archive
    *(ValueError, TypeError, SyntaxError, OverflowError, MemoryError, TokenError),  # of headers
    *(NotImplementedError, RuntimeError),  # a packing that zipfile does not know, a password
)


def read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Read an array of plain values from an archive; ValueError when it is not whole."""
    raw = _bytes(archive, member)
    shape, columns_first, dtype, start = _header(raw, member.filename)
    flat = np.frombuffer(raw, dtype, offset=start)
    return flat.reshape(shape, order="F" if columns_first else "C").copy()


def check_arrays(content: bytes) -> None:
    """Check the sizes of all parts of an archive, and of the arrays in it; ValueError if wrong."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        for member in archive.infolist():
            raw = _bytes(archive, member)
            if member.filename.endswith(".npy"):
                _header(raw, member.filename)


def _bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.file_size > most_unpacked(member.compress_size):
        raise ValueError(f"{member.filename} unpacks to {member.file_size:,} bytes")
    return archive.read(member)


def _header(raw: bytes, name: str) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Return shape, order, dtype and where the values begin; they must fill the rest."""
    file = BytesIO(raw)
    version = np.lib.format.read_magic(file)
    read: Any = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, columns_first, dtype = read(file)
    size = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or min(shape, default=1) < 0 or size != len(raw) - file.tell():
        raise ValueError(f"{name} must be plain numbers of the shape {shape}")
    return shape, columns_first, dtype, file.tell()
