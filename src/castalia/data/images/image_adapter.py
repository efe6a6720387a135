"""The adapter of images: one size, one number of channels, channels brought to one scale."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.images.image_collection import Images, as_images
from castalia.data.images.image_file_rows import FileRows, fits_memory
from castalia.data.images.image_files import ImageFiles
from castalia.data.images.image_rows import ImageRows
from castalia.errors import DataWarning, InvalidData
from castalia.protocols import Rows
from castalia.utils.text import number, plural

__all__ = ["ImageAdapter"]

SAMPLE = 2_000  # images from which means and deviations are learnt
NUMBERS = 1 << 25  # of all of them together; where they would hold more, fewer images are read,
FEWEST = 256  # but not fewer than these, and
COUNTED = 1 << 22  # of them count, pixels that are spread evenly over each image
BLOCK = 1 << 20  # numbers of a block when predicting: a network's maps take some 64 times as many
PATCHED = 200  # images of which patches are cut
SCALES = 20  # times: values that differ so much from those of fit are on another scale
MEDIAN_MULTIPLE, LARGEST = 32, 224  # pixels: size chosen for images of several sizes

_TORCH = {"float32": torch.float32, "float64": torch.float64}


class ImageAdapter(Adapter):
    """Images brought to one size, each channel to mean 0 and deviation 1.

    Parameters
    ----------
    size
        Height and width, or one number for both. None keeps the size that all images have;
        images of several sizes are brought to their median size.
    patch
        Height and width of patches whose covariance is learnt, for networks that whiten them; None:
        of none.

    Examples
    --------
    >>> adapter = ImageAdapter().fit(as_images(np.eye(8)[None].repeat(3, axis=0)))
    >>> adapter.inputs, adapter.extra
    (1, {'size': [8, 8]})
    """

    def __init__(self, size: int | Sequence[int] | None = None, patch: int | None = None) -> None:
        size = (size, size) if isinstance(size, int) else size
        self.wanted: tuple[int, int] | None = None if size is None else (size[0], size[1])
        self.size: tuple[int, int] | None = None
        self.resizes = self.wanted is not None
        self.inputs = 0
        self.mean = self.deviation = np.zeros(0)
        self.patch, self.covariance = patch, np.zeros((0, 0))

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs beyond the number of channels."""
        found: dict[str, Any] = {"size": [int(n) for n in self.size or ()]}
        return found | ({} if self.patch is None else {"covariance": self.covariance.tolist()})

    @property
    def shape(self) -> torch.Size:
        """Shape of one row."""
        return torch.Size([self.inputs, *(self.size or ())])

    def check(self, X: Any, owner: str) -> Images:
        """Return X as images; after ``fit``, such as this adapter can take."""
        images = as_images(X, owner)
        if self.size is None:
            return images
        if self.inputs > 1 and getattr(X, "ndim", 0) == 3 and X.shape[2] in (3, 4):
            raise InvalidData(
                f"{owner}: images must be an array (N, H, W, C); got {tuple(X.shape)}, which is "
                "one image. Give X[None]."
            )
        self._compare_scales(images, owner)
        sizes = np.zeros((0, 2)) if self.resizes else images.sizes  # of files, read one by one
        if (sizes != self.size).any():
            first = int((sizes != self.size).any(axis=1).argmax())
            raise InvalidData(
                f"{owner}: images must have {self.size[0]} x {self.size[1]} pixels, as in fit; "
                f"image {first} has {sizes[first, 0]} x {sizes[first, 1]}. Set `image_size` to "
                "have images of any size brought to one."
            )
        if images.channels != self.inputs and not {images.channels, self.inputs} <= {1, 3, 4}:
            raise InvalidData(
                f"{owner}: images must have {plural(self.inputs, 'channel')}, as in fit; got "
                f"{images.channels}."
            )
        return images

    def _compare_scales(self, images: Images, owner: str) -> None:
        """Warn of fractions where bytes were learnt from, or the other way round."""
        largest = images.source.largest()
        usual = float(np.abs(self.mean).max() + self.deviation.max())
        if 0 < largest <= 1 < usual / SCALES or largest > SCALES * max(usual, 1):
            warnings.warn(
                f"{owner}: images must be on the scale of those of fit, whose values lie around "
                f"{number(usual, 3)}; got values of at most {number(largest, 3)}. Where they are "
                "the same kind of images, multiply or divide them by 255.",
                DataWarning,
                stacklevel=5,
            )

    def fit(self, X: Images, sample_weight: np.ndarray | None = None) -> ImageAdapter:
        """Learn size, channels and scales, the last from a sample of the images."""
        self.size, self.resizes = self._choose_size(X)
        self.inputs = X.channels
        most = min(SAMPLE, max(FEWEST, NUMBERS // self.shape.numel()))
        chosen = np.unique(np.linspace(0, len(X) - 1, min(len(X), most)).astype(np.int64))
        parts = np.array_split(chosen, -(-len(chosen) * self.shape.numel() // BLOCK))
        count = -(-COUNTED // (len(chosen) * self.inputs))
        moments = [self._moments(X, part, count) for part in parts]
        mean, square = (torch.cat(part) for part in zip(*moments, strict=True))  # (N, C) each
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        share = torch.from_numpy(weight[chosen] / weight[chosen].sum())[:, None]
        middle = (share * mean).sum(dim=0)
        deviation = ((share * square).sum(dim=0) - middle.square()).clamp_min(0).sqrt()
        self.mean = middle.numpy()
        constant = deviation <= 1e-6 * middle.abs()  # but for rounding
        self.deviation = torch.where(constant, 1.0, deviation).numpy()
        if self.patch is not None:
            some = chosen[:: max(1, len(chosen) // PATCHED)]
            self.covariance = self._patch_covariance(X, some, self.patch)
        return self

    def _patch_covariance(self, X: Images, index: np.ndarray, side: int) -> np.ndarray:
        """Return the covariance of normalised patches of some images, (C P P, C P P)."""
        x = self._rows(X, index, np.float32).take(torch.arange(len(index)))
        patches = x.unfold(2, side, 1).unfold(3, side, 1).permute(1, 4, 5, 0, 2, 3)
        patches = patches.reshape(x.shape[1] * side**2, -1).double()  # (C P P, patches)
        return (patches @ patches.mT / patches.shape[1]).numpy()

    def _choose_size(self, X: Images) -> tuple[tuple[int, int], bool]:
        """Return the size of rows, and whether images are brought to it."""
        if self.wanted is not None:
            return (int(self.wanted[0]), int(self.wanted[1])), True
        sizes = X.sizes
        if (sizes != sizes[0]).any():
            return _median(sizes), True
        return (int(sizes[0, 0]), int(sizes[0, 1])), False

    def _moments(self, X: Images, index: np.ndarray, count: int) -> tuple[Tensor, Tensor]:
        """Return mean and mean square of each channel, (B, C) each, by some pixels of images."""
        pixels = X.pixels(index, self.size or (0, 0), self.inputs).flatten(2)  # (B, C, H W)
        if count < pixels.shape[2]:
            pixels = pixels[:, :, torch.linspace(0, pixels.shape[2] - 1, count).long()]
        pixels = pixels.float().contiguous()  # sums are then the same whatever the layout was
        variance, mean = torch.var_mean(pixels, dim=2, correction=0)
        return mean.double(), variance.double() + mean.double().square()

    def rows(self, X: Images, dtype: Any) -> Rows:
        """Return the images as rows of a training: in memory, or in files if too many for it."""
        if isinstance(X.source, ImageFiles) and not fits_memory(len(X) * self.shape.numel()):
            return FileRows(X.source, self.size or (0, 0), *self._scales(dtype))
        return self._rows(X, np.arange(len(X)), dtype)

    def blocks(self, X: Images, dtype: Any) -> Iterator[Tensor]:
        """Yield normalised images block by block, for prediction."""
        step = max(1, BLOCK // self.shape.numel())
        for start in range(0, len(X), step):
            index = np.arange(start, min(start + step, len(X)))
            yield self._rows(X, index, dtype).to("cpu").take(torch.arange(len(index)))

    def _rows(self, X: Images, index: np.ndarray, dtype: Any) -> ImageRows:
        pixels = X.pixels(index, self.size or (0, 0), self.inputs)
        return ImageRows(pixels, *self._scales(dtype))

    def _scales(self, dtype: Any) -> tuple[Tensor, Tensor]:
        """Return mean and deviation as tensors."""
        kind = _TORCH[np.dtype(dtype).name]
        return torch.from_numpy(self.mean).to(kind), torch.from_numpy(self.deviation).to(kind)


def _median(sizes: np.ndarray) -> tuple[int, int]:
    """Return the median size, a multiple of 32 that is at most 224."""
    rounded = np.round(np.median(sizes, axis=0) / MEDIAN_MULTIPLE) * MEDIAN_MULTIPLE
    height, width = np.clip(rounded, MEDIAN_MULTIPLE, LARGEST).astype(int)
    return int(height), int(width)
