"""Images that are seen the same way wherever they are: arrays in memory, or files.

Shapes: N images, C channels, H height, W width. Inside, channels come first, as in torch; numpy
arrays are taken and given with channels last, as in every image library.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from os import PathLike
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from PIL.Image import Image
from torch import Tensor

from castalia.data.images.image_decoder import as_decoded
from castalia.data.images.image_files import ImageFiles
from castalia.data.images.image_rows import images_at
from castalia.errors import InvalidData
from castalia.utils.shared_arrays import shared_tensor
from castalia.utils.text import plural, shorten

__all__ = ["Images", "ImageSource", "as_images", "resized"]

SAMPLED = 256  # images whose values give the scale of all

CHANNELS = (1, 3, 4)  # grey, colour, colour with transparency


class ImageSource(Protocol):
    """Where images come from: arrays or files."""

    @property
    def text(self) -> str:
        """What messages call them."""

    @property
    def channels(self) -> int:
        """Of every image."""

    @property
    def lazy(self) -> bool:
        """Whether finding their sizes takes time."""

    def __len__(self) -> int: ...

    def sizes(self) -> np.ndarray:
        """Return height and width of each, (N, 2)."""

    def pixels(self, index: np.ndarray, size: tuple[int, int], channels: int) -> Tensor:
        """Return these images at one size, (B, C, H, W): bytes, or floats of float arrays."""

    def largest(self) -> float:
        """Return the largest value of a pixel among some images, or an upper bound of it."""

    def take(self, index: np.ndarray) -> ImageSource:
        """Return some of the images."""

    def fingerprint(self) -> str:
        """Return a mark of the content."""


class Images:
    """N images, perhaps with what is known of each.

    Parameters
    ----------
    source
        Where the pixels are.
    target
        What is to be learnt, one entry an image: labels, masks, boxes; or None.

    Examples
    --------
    >>> images = as_images(np.zeros((2, 8, 6, 3), dtype=np.uint8))
    >>> images
    Images(the array of 2 images: 2 images, 8 x 6 pixels, 3 channels)
    >>> images.pixels(np.array([1]), (4, 3), 3).shape
    torch.Size([1, 3, 4, 3])
    """

    def __init__(self, source: ImageSource, target: Any = None) -> None:
        self.source, self.target = source, target

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        if self.source.lazy:  # looking would open every file
            return f"Images({self.source.text})"
        sizes = np.unique(self.sizes, axis=0)
        size = "of several sizes" if len(sizes) > 1 else f"{sizes[0, 0]} x {sizes[0, 1]} pixels"
        number, channels = plural(len(self), "image"), plural(self.channels, "channel")
        return f"Images({self.source.text}: {number}, {size}, {channels})"

    @property
    def sizes(self) -> np.ndarray:
        """Height and width of each image, (N, 2)."""
        return self.source.sizes()

    @property
    def channels(self) -> int:
        """1 for grey images, 3 for colour, 4 with transparency."""
        return self.source.channels

    def pixels(self, index: Any, size: tuple[int, int], channels: int) -> Tensor:
        """Return some images at one size.

        Parameters
        ----------
        index
            Positions, (B,).
        size
            Height and width.
        channels
            1, 3 or 4: grey becomes colour by repetition, colour grey by its luminance.

        Returns
        -------
        Tensor
            (B, C, H, W), bytes from 0 to 255, or floats as they are in an array of floats.
        """
        return self.source.pixels(np.asarray(index), size, channels)

    def take(self, index: Any) -> Images:
        """Return the images at these positions, with their targets."""
        rows = np.asarray(index)
        return Images(self.source.take(rows), _taken(self.target, rows))

    def features(self) -> Images:
        """Return the same images without their targets."""
        return Images(self.source)

    def fingerprint(self) -> str:
        """Return a mark of the pixels."""
        return self.source.fingerprint()


def _taken(target: Any, rows: np.ndarray) -> Any:
    if target is None or isinstance(target, np.ndarray | Tensor):
        return None if target is None else target[rows]
    return [target[i] for i in rows]


class ArrayImages:
    """Images of one size in one tensor, (N, C, H, W), bytes or float32."""

    lazy = False

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.text = f"the array of {plural(len(x), 'image')}"
        self.channels = int(x.shape[1])

    def largest(self) -> float:
        """Return the largest value among some of the images."""
        return _largest(self.x[:: -(-len(self.x) // SAMPLED)])

    def __len__(self) -> int:
        return len(self.x)

    def sizes(self) -> np.ndarray:
        """Return the one size, N times."""
        return np.tile(np.array(self.x.shape[2:]), (len(self.x), 1))

    def pixels(self, index: np.ndarray, size: tuple[int, int], channels: int) -> Tensor:
        """Return some images; nothing is copied where nothing changes and all are asked for."""
        whole = len(index) == len(self.x) and bool((index == np.arange(len(index))).all())
        x = self.x
        if not whole:
            x = images_at(x, torch.from_numpy(index).to(x.device))
        return recoloured(resized(x, size), channels)

    def take(self, index: np.ndarray) -> ArrayImages:
        """Return some of the images."""
        return ArrayImages(self.x[torch.from_numpy(index)])

    def fingerprint(self) -> str:
        """Return a hash of shape and pixels."""
        found = hashlib.sha256(f"{tuple(self.x.shape)} {self.x.dtype}".encode())
        found.update(self.x.contiguous().cpu().numpy().tobytes())
        return found.hexdigest()


class ListedImages:
    """Images of several sizes, a tensor (C, H, W) each."""

    lazy = False

    def __init__(self, images: Sequence[Tensor]) -> None:
        self.images = list(images)
        self.text = f"the list of {plural(len(self.images), 'image')}"
        self.channels = max(int(x.shape[0]) for x in self.images)

    def __len__(self) -> int:
        return len(self.images)

    def sizes(self) -> np.ndarray:
        """Return each image's size."""
        return np.array([x.shape[1:] for x in self.images])

    def largest(self) -> float:
        """Return the largest value among some of the images."""
        return max(_largest(x) for x in self.images[:SAMPLED])

    def pixels(self, index: np.ndarray, size: tuple[int, int], channels: int) -> Tensor:
        """Return some images, each brought to the one size."""
        chosen = (self.images[i][None] for i in index)
        return torch.cat([recoloured(resized(x, size), channels) for x in chosen])

    def take(self, index: np.ndarray) -> ListedImages:
        """Return some of the images."""
        return ListedImages([self.images[i] for i in index])

    def fingerprint(self) -> str:
        """Return a hash of every image's pixels."""
        marks = (ArrayImages(x[None]).fingerprint() for x in self.images)
        return hashlib.sha256(" ".join(marks).encode()).hexdigest()


def _largest(x: Tensor) -> float:
    """Return the largest value; of bytes at least 2, since a dark image holds no fractions."""
    return float(x.max()) if x.is_floating_point() else max(2.0, float(x.max()))


def resized(x: Tensor, size: tuple[int, int]) -> Tensor:  # (B, C, h, w)
    """Return images at another size, smoothed where they shrink; bytes stay bytes."""
    if tuple(x.shape[2:]) == tuple(size):
        return x
    found = F.interpolate(x.float(), size, mode="bilinear", antialias=True)
    return found if x.is_floating_point() else found.round().clamp(0, 255).to(x.dtype)


def recoloured(x: Tensor, channels: int) -> Tensor:  # (B, C, H, W)
    """Return images with another number of channels; transparency is laid on white."""
    have = x.shape[1]
    if have == channels:
        return x
    if have == 4:
        # opaque floats end at 1, or at 255 where they count as bytes do
        white = 1.0 if x.is_floating_point() and x[:, 3].max() <= 1 else 255.0
        alpha = x[:, 3:].float() / white
        rgb = x[:, :3].float() * alpha + white * (1 - alpha)
        return recoloured(rgb if x.is_floating_point() else rgb.round().to(x.dtype), channels)
    if have == 1 and channels == 3:
        return x.expand(-1, 3, -1, -1)
    if have == 3 and channels == 1:
        red, green, blue = x.float().unbind(dim=1)
        grey = (0.299 * red + 0.587 * green + 0.114 * blue)[:, None]  # ITU-R 601, as PIL does
        return grey if x.is_floating_point() else grey.round().to(x.dtype)
    raise InvalidData(
        f"images: images with {plural(have, 'channel')} cannot be shown with {channels}; 1 "
        "(grey), 3 (colour) and 4 (with transparency) go together."
    )


def as_images(X: Any, owner: str = "images") -> Images:
    """Return images as `Images`.

    Parameters
    ----------
    X
        An array (N, H, W) or (N, H, W, C), numpy's way; a tensor (N, C, H, W), torch's way; a list
        of images of several sizes, Pillow's or arrays (H, W) or (H, W, C), or of paths to files;
        or `Images`, which are returned as they are. Bytes count from 0 to 255, floats are taken as
        they are.
    owner
        Who asks, for messages.
    """
    if isinstance(X, Images):
        return X
    if isinstance(X, Tensor):
        return Images(ArrayImages(_first(X.detach(), owner)))
    if isinstance(X, str | PathLike | Image):
        raise InvalidData(
            f"{owner}: images must be an array, a list of images or paths, or what "
            f"`castalia.read(folder)` gives; got {shorten(repr(X))}. Put it in a list."
        )
    X = list(X) if getattr(X, "ndim", 0) == 1 else X  # a series, or an array of images
    listed = isinstance(X, list | tuple) and len(X) > 0
    if listed and all(isinstance(x, str | PathLike) for x in X):
        return Images(ImageFiles([os.fspath(x) for x in X]))
    if listed and (isinstance(X[0], Image) or np.ndim(X[0]) > 1):
        images = [_one_image(x, i, owner) for i, x in enumerate(X)]
        if len({tuple(x.shape) for x in images}) > 1:
            return Images(ListedImages(images))
        return Images(ArrayImages(torch.stack(images)))
    return Images(ArrayImages(_last(np.asarray(X), owner)))


def _one_image(x: Any, position: int, owner: str) -> Tensor:
    """Return one image of a list, (C, H, W)."""
    if isinstance(x, Tensor):
        return _first(x.detach()[None], owner)[0]
    array = as_decoded(x) if isinstance(x, Image) else np.asarray(x)
    if array.ndim not in (2, 3) or not array.size:
        raise InvalidData(
            f"{owner}: every image must be an array (H, W) or (H, W, C); image {position} has "
            f"the shape {array.shape}."
        )
    return _last(array[None], owner)[0]


def _last(X: np.ndarray, owner: str) -> Tensor:
    """Return an array with channels last, or none, as a tensor (N, C, H, W)."""
    if X.dtype.kind not in "buif":
        raise InvalidData(
            f"{owner}: images must be numbers, an array (N, H, W) or (N, H, W, C), or a list of "
            f"arrays or paths; got dtype {X.dtype}."
        )
    if not X.size:
        raise InvalidData(f"{owner}: there must be at least one image; got shape {X.shape}.")
    if X.ndim == 3:
        X = X[..., None]
    if X.ndim != 4 or X.shape[3] > max(CHANNELS):
        hint = ""
        if X.ndim == 4 and X.shape[1] <= max(CHANNELS):
            hint = " Channels come last in arrays: use X.transpose(0, 2, 3, 1), or give a tensor."
        elif X.ndim == 2:
            hint = " Flat rows become images by X.reshape(-1, height, width), one by X[None]."
        raise InvalidData(
            f"{owner}: images must be an array (N, H, W) or (N, H, W, C) with at most 4 "
            f"channels; got shape {X.shape}.{hint}"
        )
    # No copy: channels stay last in memory, as a GPU wants them; a CPU's rows are laid out later.
    return _numbers(shared_tensor(np.ascontiguousarray(X)).permute(0, 3, 1, 2), owner)


def _first(X: Tensor, owner: str) -> Tensor:
    if X.ndim == 3:
        X = X[:, None]
    if X.ndim != 4 or not X.numel():
        raise InvalidData(
            f"{owner}: a tensor of images must be (N, C, H, W) or (N, H, W); got shape "
            f"{tuple(X.shape)}."
        )
    return _numbers(X, owner)


def _numbers(x: Tensor, owner: str) -> Tensor:
    """Return pixels as bytes or as finite float32."""
    if x.dtype == torch.uint8:
        return x
    x = x.to(torch.float32)
    bad = ~x.isfinite().flatten(1).all(dim=1)
    if bad.any():
        raise InvalidData(
            f"{owner}: images must hold no NaN or infinity; {int(bad.sum()):,} of {len(x):,} do, "
            f"first image {int(bad.nonzero()[0])}."
        )
    return x
