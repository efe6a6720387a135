"""The size an image file claims, read before a decoder allocates memory for it.

Pillow's decoders of JPEG 2000 and WebP allocate what a header claims when the file is opened or
before its pixels are read, so that 1 kB of a damaged file could take gigabytes. Their headers are
therefore read here first. All other kinds allocate after `PIL.Image.Image.size` is known.
"""

from __future__ import annotations

import re
import struct
from typing import Any, BinaryIO, cast

from castalia.errors import InvalidData

__all__ = ["Capped", "bounded", "most_pixels"]

FEW, EACH = 2**23, 64  # pixels that any image may have, and more for each byte of its file
TILE = 2**12  # pixels that the records of one tile of a JPEG 2000 file weigh

_SIZ = re.compile(rb"\xff\x4f\xff\x51.{4}(.{34})", re.DOTALL)  # image and tile size, ISO 15444-1


def most_pixels(file: BinaryIO) -> int:
    """Return how many pixels a file of this size may have; the file is rewound."""
    size = file.seek(0, 2)
    file.seek(0)
    return FEW + EACH * size


def bounded(file: BinaryIO) -> BinaryIO:
    """Refuse a JPEG 2000 or WebP file whose header claims far more than the file could hold.

    Returns
    -------
    BinaryIO
        The same image, at its beginning, that reserves no more for a read than is left of it.
    """
    most = most_pixels(file)
    start, claimed = file.read(30), 0
    file.seek(0)
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        claimed = _webp_pixels(start)
    elif start[:4] == b"\xff\x4f\xff\x51" or start[4:8] == b"jP  ":
        claimed = max(map(_jpeg_2000_pixels, _SIZ.findall(file.read())), default=0)
        file.seek(0)
    if claimed > most:
        raise InvalidData(
            f"its header claims {claimed:,} pixels, more than {most:,}, the most for a file of its "
            "size"
        )
    return cast(BinaryIO, Capped(file))


class Capped:
    """A file whose reads reserve no more than it has left, whatever length its headers claim."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.size = file, file.seek(0, 2)
        file.seek(0)

    def read(self, length: int = -1) -> bytes:
        """Read so many bytes, or those that are left."""
        left = max(self.size - self.file.tell(), 0)
        return self.file.read(left if length is None or length < 0 else min(length, left))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def _webp_pixels(start: bytes) -> int:
    """Return width times height of the canvas, in whichever of three headers it stands."""
    start = start.ljust(30, b"\0")
    if start[12:16] == b"VP8X":  # 24 bits each, less one
        width, height = (int.from_bytes(start[at : at + 3], "little") + 1 for at in (24, 27))
    elif start[12:16] == b"VP8L":  # 14 bits each, less one
        packed = int.from_bytes(start[21:25], "little")
        width, height = (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    else:  # 14 bits each
        width, height = (int.from_bytes(start[at : at + 2], "little") & 0x3FFF for at in (26, 28))
    return width * height


def _jpeg_2000_pixels(siz: bytes) -> int:
    """Return what the image's components and the records of its tiles weigh, in pixels."""
    x, y, left, top, tile_x, tile_y, _, _, components = struct.unpack(">8IH", siz)
    width, height = max(x - left, 0), max(y - top, 0)
    tiles = -(-width // max(tile_x, 1)) * -(-height // max(tile_y, 1))
    return width * height * max(components // 4, 1) + tiles * TILE
