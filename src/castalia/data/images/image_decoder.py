"""One image from a file to 8-bit pixels, whatever its kind.

Grey and coloured, with 16 bits, a palette, transparency (laid on white), CMYK, turned as its EXIF
tag says. Pillow decodes and resizes without the interpreter's lock, so threads do this in parallel.
Shapes: H height, W width, C channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from castalia.data.images.image_bounds import bounded, most_pixels
from castalia.errors import InvalidData

__all__ = ["SUFFIXES", "Header", "as_decoded", "decode", "decode_labels", "examine", "header"]

SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".gif", ".tif", ".tiff", ".webp"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".jp2", ".tga", ".ico", ".avif"),
)

_GREY = ("1", "L", "LA", "La", "I", "F", "I;16", "I;16L", "I;16B", "I;16N")
_ORIENTATION = 0x0112  # EXIF
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_WHITE = (255, 255, 255, 255)
STRIP = 2**20  # pixels that are converted at a time


class Header(NamedTuple):
    """What the beginning of a file says about its image."""

    height: int
    width: int
    channels: int  # 1 or 3


@contextmanager
def _opened(file: BinaryIO) -> Iterator[Image.Image]:
    """Open an image, unless it has far more pixels than its file could tell apart."""
    most = most_pixels(file)
    with Image.open(bounded(file)) as image:
        if image.width * image.height > most:
            raise InvalidData(
                f"{image.width:,} x {image.height:,} pixels are more than {most:,}, the most for "
                "a file of its size"
            )
        yield image


def header(file: BinaryIO) -> Header:
    """Read the size an image has when turned upright, and its channels, without decoding it."""
    with _opened(file) as image:
        return _header(image)


def examine(file: BinaryIO) -> Header:
    """Return the header of an image after decoding it, as small as its format allows."""
    with _opened(file) as image:
        found = _header(image)
        image.draft("RGB" if image.mode == "RGB" else None, (8, 8))
        image.load()
        _eight_bits(image, "RGB")
        return found


def _header(image: Image.Image) -> Header:
    width, height = image.size
    if _lies_down(image):
        width, height = height, width
    return Header(height, width, 1 if image.mode in _GREY else 3)


def decode(file: BinaryIO, size: tuple[int, int] | None, channels: int) -> NDArray[np.uint8]:
    """Decode an image.

    Parameters
    ----------
    file
        The file, open for reading.
    size
        Height and width to which the image is resized; None keeps its own.
    channels
        1 for grey, 3 for red, green and blue, 4 with opacity.

    Returns
    -------
    ndarray of uint8, (H, W, C)
    """
    with _opened(file) as image:
        lies = _lies_down(image)
        if size is not None:
            # A JPEG can be decoded at 1/2, 1/4 or 1/8 for a fraction of the work.
            wanted = size if lies else size[::-1]  # (width, height) as the file has them
            image.draft("RGB" if channels == 3 and image.mode == "RGB" else None, wanted)
        flat = _eight_bits(_upright(image), _MODES[channels])
        if size is not None and flat.size != size[::-1]:
            flat = flat.resize(size[::-1], Image.Resampling.BILINEAR)
        return np.asarray(flat).reshape(flat.height, flat.width, channels)


def as_decoded(image: Image.Image) -> NDArray[np.uint8]:
    """Return the pixels of an opened image, (H, W, 1) or (H, W, 3), as those of its file.

    >>> as_decoded(Image.new("P", (4, 2))).shape
    (2, 4, 3)
    """
    channels = 1 if image.mode in _GREY else 3
    flat = _eight_bits(_upright(image), _MODES[channels])
    return np.asarray(flat).reshape(flat.height, flat.width, channels)


def decode_labels(file: BinaryIO) -> NDArray[Any]:
    """Decode a mask, whose numbers are classes: those of the palette or grey values as they are.

    Returns
    -------
    ndarray, (H, W) of integers, or (H, W, 3) for a coloured image
    """
    with _opened(file) as image:
        upright = _upright(image)
        if upright.mode == "LA":
            upright = upright.getchannel("L")
        elif upright.mode not in ("1", "L", "P", "I") and not upright.mode.startswith("I;16"):
            upright = upright.convert("RGB")
        found = np.asarray(upright)
        return found.astype(np.uint8) if found.dtype == np.bool_ else found


def _lies_down(image: Image.Image) -> bool:
    """Whether turning the image upright swaps its height and width."""
    return _orientation(image) >= 5


def _orientation(image: Image.Image) -> int:
    """Return how the camera was held, 1 to 8; only asked where it costs no decoding."""
    return image.getexif().get(_ORIENTATION, 1) if "exif" in image.info else 1


def _upright(image: Image.Image) -> Image.Image:
    turn = _TURNS.get(_orientation(image))
    return image if turn is None else image.transpose(turn)


def _eight_bits(image: Image.Image, mode: str) -> Image.Image:
    """Convert an image of any kind to 8-bit grey or colour, a large one strip by strip."""
    if image.mode == mode and "transparency" not in image.info:
        return image
    rows = max(1, STRIP // max(1, image.width))
    if rows >= image.height:
        return _converted(image, mode)
    out = Image.new(mode, image.size)
    for top in range(0, image.height, rows):
        part = image.crop((0, top, image.width, min(top + rows, image.height)))
        out.paste(_converted(part, mode), (0, top))
    return out


def _converted(image: Image.Image, mode: str) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return Image.fromarray(_grey_bytes(np.asarray(image))).convert(mode)
    if image.has_transparency_data and mode != "RGBA":
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, _WHITE), image)
    return image.convert(mode)


def _grey_bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Bring grey values of 16 bits, or floats from 0 to 1, to 0 … 255."""
    scale = 255.0 if values.dtype.kind == "f" else 1 / 257  # 65535 = 255 * 257
    return np.rint(values * np.float32(scale)).clip(0, 255).astype(np.uint8)
