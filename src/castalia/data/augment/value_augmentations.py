"""Invariances of value: other light, noise, hidden parts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from castalia.data.augment.augmentation import Augmentation, Generator, Pair, check_images, uniform
from castalia.errors import InvalidParameter

__all__ = ["Cutout", "Mask", "Noise", "Recolor"]


@dataclass(frozen=True)
class Recolor(Augmentation):
    """Changes saturation, contrast and brightness of images, in this order.

    x -> g + s (x - g) with g the mean over channels, then m + c (x - m) with m the mean of the
    image, then x + b; s and c lie around 1, b around 0.

    Parameters
    ----------
    brightness, contrast, saturation
        How far b, c and s may be from where they change nothing.
    limits
        Smallest and largest value of a pixel, such as (0, 1); None cuts nothing off.
    """

    brightness: float = 0.2
    contrast: float = 0.2
    saturation: float = 0.2
    limits: tuple[float, float] | None = None

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return recoloured images and the same targets."""
        check_images(self, x)

        def draw(width: float) -> Tensor:
            return uniform(x, -width, width, generator)[:, None, None, None]

        grey = x.mean(dim=1, keepdim=True)
        x = torch.lerp(grey, x, 1 + draw(self.saturation))
        x = torch.lerp(x.mean(dim=(1, 2, 3), keepdim=True), x, 1 + draw(self.contrast))
        x = x + draw(self.brightness)
        return x if self.limits is None else x.clamp(*self.limits), y


@dataclass(frozen=True)
class Noise(Augmentation):
    """Adds Gaussian noise to every input.

    Parameters
    ----------
    std
        Its standard deviation.
    """

    std: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.std < float("inf"):
            raise InvalidParameter(f"Noise: `std` must be finite and at least 0; got {self.std}.")

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return noisy inputs, (B, …), and the same targets."""
        return x + torch.empty_like(x).normal_(generator=generator) * self.std, y


@dataclass(frozen=True)
class Mask(Augmentation):
    """Hides a part of each row: one rectangle of an image, or single inputs of a table.

    Parameters
    ----------
    share
        Share of the image's area, or probability for an input to be hidden.
    fill
        What is put there; 0 is the mean of standardised inputs.

    Examples
    --------
    >>> x, _ = Mask(0.25)(torch.ones(2, 3, 8, 8))
    >>> x.mean().item()
    0.75
    """

    share: float = 0.25
    fill: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidParameter(f"Mask: `share` must be between 0 and 1; got {self.share}.")

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return inputs, (B, C, H, W) or (B, D), with parts hidden, and the same targets."""
        if x.ndim == 4:
            down = self._span(x, x.shape[2], generator)[:, None, :, None]
            hidden = down & self._span(x, x.shape[3], generator)[:, None, None, :]
        else:
            hidden = torch.empty_like(x).uniform_(generator=generator) < self.share
        return x.masked_fill(hidden, self.fill), y

    def _span(self, x: Tensor, size: int, generator: Generator) -> Tensor:
        """Choose neighbouring lines of each image, (B, size): sqrt(share) of them."""
        length = round(self.share**0.5 * size)
        first = (uniform(x, 0, 1, generator) * (size - length + 1)).floor()
        return _lines(first, length, size)


@dataclass(frozen=True)
class Cutout(Augmentation):
    """Hides a rectangle of each image around a pixel chosen at random.

    Near an edge a part of the rectangle falls outside, so that some images are hidden little;
    `Mask` hides the same area of every image.

    Parameters
    ----------
    share
        Height and width of the rectangle as shares of those of the image.
    fill
        What is put there; 0 is the mean of standardised inputs.

    References
    ----------
    2017, DeVries, Taylor, Improved regularization of convolutional neural networks with cutout,
    arXiv 1708.04552.

    Examples
    --------
    >>> x, _ = Cutout(0.5)(torch.ones(2, 3, 8, 8))
    >>> bool((x == 0).any())
    True
    """

    share: float = 0.5
    fill: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise InvalidParameter(f"Cutout: `share` must be between 0 and 1; got {self.share}.")

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return images, (B, C, H, W), with parts hidden, and the same targets."""
        check_images(self, x)
        down = self._span(x, x.shape[2], generator)[:, None, :, None]
        hidden = down & self._span(x, x.shape[3], generator)[:, None, None, :]
        return x.masked_fill(hidden, self.fill), y

    def _span(self, x: Tensor, size: int, generator: Generator) -> Tensor:
        """Choose the lines around one of each image, (B, size)."""
        length = round(self.share * size)
        middle = (uniform(x, 0, 1, generator) * size).floor()
        return _lines(middle - length // 2, length, size)


def _lines(first: Tensor, length: int, size: int) -> Tensor:  # (B,)
    """Mark the lines from first on, (B, size)."""
    lines = torch.arange(size, device=first.device)
    return (lines >= first[:, None]) & (lines < first[:, None] + length)
