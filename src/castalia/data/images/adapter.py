"""The adapter of pictures: one size, one number of channels, channels brought to one scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.images.filerows import FileRows, fits_memory
from castalia.data.images.files import ImageFiles
from castalia.data.images.pictures import Images, as_images
from castalia.data.images.rows import ImageRows
from castalia.errors import InvalidData
from castalia.protocols import Rows
from castalia.utils.text import plural

__all__ = ["ImageAdapter"]

SAMPLE = 2_000  # pictures from which means and deviations are learnt
BLOCK = 1 << 20  # numbers of a block when predicting: a network's maps take some 64 times as many
MEDIAN_MULTIPLE, LARGEST = 32, 224  # pixels: size chosen for pictures of several sizes

_TORCH = {"float32": torch.float32, "float64": torch.float64}


class ImageAdapter:
    """Pictures brought to one size, each channel to mean 0 and deviation 1.

    Parameters
    ----------
    size
        Height and width, or one number for both. None keeps the size that all pictures have;
        pictures of several sizes are brought to their median size.

    Examples
    --------
    >>> adapter = ImageAdapter().fit(as_images(np.eye(8)[None].repeat(3, axis=0)))
    >>> adapter.inputs, adapter.extra
    (1, {'size': [8, 8]})
    """

    categories: tuple[int, ...] = ()

    def __init__(self, size: int | tuple[int, int] | None = None) -> None:
        self.wanted = (size, size) if isinstance(size, int) else size
        self.size: tuple[int, int] | None = None
        self.resizes = self.wanted is not None
        self.inputs = 0
        self.mean = self.deviation = np.zeros(0)

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs beyond the number of channels."""
        return {"size": [int(n) for n in self.size or ()]}

    @property
    def shape(self) -> torch.Size:
        """Shape of one row."""
        return torch.Size([self.inputs, *(self.size or ())])

    def check(self, X: Any, owner: str) -> Images:
        """Return X as pictures; after ``fit``, such as this adapter can take."""
        images = as_images(X, owner)
        if self.size is None:
            return images
        sizes = images.sizes
        if not self.resizes and (sizes != self.size).any():
            first = int((sizes != self.size).any(axis=1).argmax())
            raise InvalidData(
                f"{owner}: pictures must have {self.size[0]} x {self.size[1]} pixels, as in fit; "
                f"picture {first} has {sizes[first, 0]} x {sizes[first, 1]}. Set `image_size` to "
                "have pictures of any size brought to one."
            )
        if images.channels != self.inputs and not {images.channels, self.inputs} <= {1, 3, 4}:
            raise InvalidData(
                f"{owner}: pictures must have {plural(self.inputs, 'channel')}, as in fit; got "
                f"{images.channels}."
            )
        return images

    def fit(self, X: Images, sample_weight: np.ndarray | None = None) -> ImageAdapter:
        """Learn size, channels and scales, the last from a sample of the pictures."""
        sizes = X.sizes
        several = bool((sizes != sizes[0]).any())
        self.resizes = self.wanted is not None or several
        self.size = self.wanted or (_median(sizes) if several else (sizes[0, 0], sizes[0, 1]))
        self.size = (int(self.size[0]), int(self.size[1]))
        self.inputs = X.channels
        chosen = np.unique(np.linspace(0, len(X) - 1, min(len(X), SAMPLE)).astype(np.int64))
        pixels = X.pixels(chosen, self.size, self.inputs).to(torch.float64)
        weight = torch.ones(len(chosen), dtype=torch.float64)
        if sample_weight is not None:
            weight = torch.from_numpy(sample_weight[chosen]).double()
        share = weight / weight.sum()
        mean = torch.einsum("n,nc->c", share, pixels.mean(dim=(2, 3)))
        square = (pixels - mean.view(-1, 1, 1)).square().mean(dim=(2, 3))
        deviation = torch.einsum("n,nc->c", share, square).sqrt()
        self.mean = mean.numpy()
        self.deviation = torch.where(deviation > 0, deviation, 1.0).numpy()
        return self

    def rows(self, X: Images, dtype: Any) -> Rows:
        """Return the pictures as rows of a training: in memory, or in files if too many for it."""
        if isinstance(X.source, ImageFiles) and not fits_memory(len(X) * self.shape.numel()):
            return FileRows(X.source, self.size or (0, 0), *self._scales(dtype))
        return self._rows(X, np.arange(len(X)), dtype)

    def blocks(self, X: Images, dtype: Any) -> Iterator[Tensor]:
        """Yield normalised pictures block by block, for prediction."""
        step = max(1, BLOCK // self.shape.numel())
        for start in range(0, len(X), step):
            index = np.arange(start, min(start + step, len(X)))
            yield self._rows(X, index, dtype).take(torch.arange(len(index)))

    def _rows(self, X: Images, index: np.ndarray, dtype: Any) -> ImageRows:
        pixels = X.pixels(index, self.size or (0, 0), self.inputs)
        return ImageRows(pixels, *self._scales(dtype))

    def _scales(self, dtype: Any) -> tuple[Tensor, Tensor]:
        """Return mean and deviation as tensors."""
        kind = _TORCH[np.dtype(dtype).name]
        return torch.from_numpy(self.mean).to(kind), torch.from_numpy(self.deviation).to(kind)

    def state(self) -> dict[str, Any]:
        """Return what saving needs."""
        return {
            "wanted": self.wanted,
            "size": self.size,
            "resizes": self.resizes,
            "inputs": self.inputs,
            "mean": self.mean,
            "deviation": self.deviation,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ImageAdapter:
        """Return an adapter from its saved state."""
        made = cls()
        vars(made).update(state)
        return made


def _median(sizes: np.ndarray) -> tuple[int, int]:
    """Return the median size, a multiple of 32 that is at most 224."""
    rounded = np.round(np.median(sizes, axis=0) / MEDIAN_MULTIPLE) * MEDIAN_MULTIPLE
    height, width = np.clip(rounded, MEDIAN_MULTIPLE, LARGEST).astype(int)
    return int(height), int(width)
