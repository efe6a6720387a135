"""Random choices among fourteen changes of images: RandAugment and TrivialAugment.

Each image gets changes of its own. Changes of place become one map, changes of value are computed
for all images and kept where they were drawn, so that a CUDA graph can record them.
Images may be on any scale: black and white are the smallest and largest value of each image.
Shapes: B batch, C channels, H height, W width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.data.augment.augmentation import (
    Augmentation,
    Generator,
    Pair,
    check_images,
    uniform,
    warp,
)
from castalia.errors import InvalidParameter

__all__ = ["RandAugment", "TrivialAugment"]

PLACES = ("shear across", "shear down", "shift across", "shift down", "turn")


class Ranges(NamedTuple):
    """How far the strongest change goes."""

    shear: float
    shift: float  # share of the size
    turn: float  # degrees
    blend: float  # of brightness, contrast, colour and sharpness
    bits: float  # taken from 8


@dataclass(frozen=True)
class RandAugment(Augmentation):
    """Changes every image by a few of fourteen changes, all of one strength.

    Parameters
    ----------
    changes
        How many, one after the other.
    strength
        From 0, hardly any, to 1, the strongest; 0.3 is the paper's 9 of 30.

    References
    ----------
    2020, Cubuk, Zoph, Shlens, Le, RandAugment: practical automated data augmentation, arXiv
    1909.13719.

    Examples
    --------
    >>> x, _ = RandAugment()(torch.rand(4, 3, 16, 16))
    >>> x.shape
    torch.Size([4, 3, 16, 16])
    """

    changes: int = 2
    strength: float = 0.3

    def __post_init__(self) -> None:
        if self.changes != int(self.changes) or self.changes < 1:
            raise InvalidParameter(
                f"RandAugment: `changes` must be a whole number, at least 1; got {self.changes}."
            )
        if not 0 <= self.strength <= 1:
            raise InvalidParameter(
                f"RandAugment: `strength` must be between 0 and 1; got {self.strength}."
            )

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return changed images, (B, C, H, W), and the same targets."""
        check_images(self, x)
        for _ in range(self.changes):
            x = _changed(x, x.new_full((len(x),), self.strength), NARROW, generator)
        return x, y


@dataclass(frozen=True)
class TrivialAugment(Augmentation):
    """Changes every image by one of fourteen changes, of a strength drawn for it.

    Nothing to tune: the first to try where there are few images.

    References
    ----------
    2021, Müller, Hutter, TrivialAugment: tuning-free yet state-of-the-art data augmentation, arXiv
    2103.10158.

    Examples
    --------
    >>> x, _ = TrivialAugment()(torch.rand(4, 3, 16, 16))
    >>> x.shape
    torch.Size([4, 3, 16, 16])
    """

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return changed images, (B, C, H, W), and the same targets."""
        check_images(self, x)
        return _changed(x, uniform(x, 0, 1, generator), WIDE, generator), y


NARROW = Ranges(shear=0.3, shift=0.45, turn=30.0, blend=0.9, bits=4.0)
WIDE = Ranges(shear=0.99, shift=0.99, turn=135.0, blend=0.99, bits=6.0)


def _changed(x: Tensor, strength: Tensor, ranges: Ranges, generator: Generator) -> Tensor:
    """Change each image once, by a strength of its own, (B,)."""
    kinds = len(PLACES) + len(VALUES) + 1  # the last leaves the image alone
    kind = (uniform(x, 0, 1, generator) * kinds).floor().clamp(max=kinds - 1)
    sign = 1 - 2 * (uniform(x, 0, 1, generator) < 0.5).to(x.dtype)
    maps = _maps(x, kind, sign * strength, ranges)
    moved = (kind < len(PLACES)).view(-1, 1, 1, 1)
    x = torch.where(moved, warp(x, maps), x)
    kind, strength, sign = (drawn.view(-1, 1, 1, 1) for drawn in (kind, strength, sign))
    for i, change in enumerate(VALUES, start=len(PLACES)):
        x = torch.where(kind == i, change(x, strength, sign, ranges), x)
    return x


def _maps(x: Tensor, kind: Tensor, amount: Tensor, ranges: Ranges) -> Tensor:  # (B,), (B,)
    """Return the map of each image, that of the identity where its change is none of place."""
    share = [(kind == i).to(x.dtype) * amount for i in range(len(PLACES))]
    maps = torch.eye(3, dtype=x.dtype, device=x.device).repeat(len(x), 1, 1)
    angle = (share[4] * ranges.turn).deg2rad()
    maps[:, 0, 0] = maps[:, 1, 1] = angle.cos()
    maps[:, 0, 1] = angle.sin() + share[0] * ranges.shear
    maps[:, 1, 0] = share[1] * ranges.shear - angle.sin()
    maps[:, 0, 2] = share[2] * ranges.shift * x.shape[3]
    maps[:, 1, 2] = share[3] * ranges.shift * x.shape[2]
    return maps


def _bounds(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.amin(dim=(1, 2, 3), keepdim=True), x.amax(dim=(1, 2, 3), keepdim=True)


def _blend(x: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    """Return other + factor (x - other), between black and white."""
    low, high = _bounds(x)
    return torch.lerp(other, x, factor).clamp(low, high)


def _brightness(x: Tensor, strength: Tensor, sign: Tensor, ranges: Ranges) -> Tensor:
    return _blend(x, _bounds(x)[0], 1 + sign * strength * ranges.blend)


def _colour(x: Tensor, strength: Tensor, sign: Tensor, ranges: Ranges) -> Tensor:
    return _blend(x, x.mean(dim=1, keepdim=True), 1 + sign * strength * ranges.blend)


def _contrast(x: Tensor, strength: Tensor, sign: Tensor, ranges: Ranges) -> Tensor:
    return _blend(x, x.mean(dim=(1, 2, 3), keepdim=True), 1 + sign * strength * ranges.blend)


def _sharpness(x: Tensor, strength: Tensor, sign: Tensor, ranges: Ranges) -> Tensor:
    wide = F.pad(x, (1, 1, 1, 1), mode="replicate")
    smooth = (9 * F.avg_pool2d(wide, 3, 1) + 4 * x) / 13  # weights 1 around 5
    return _blend(x, smooth, 1 + sign * strength * ranges.blend)


def _posterise(x: Tensor, strength: Tensor, sign: Tensor, ranges: Ranges) -> Tensor:
    low, high = _bounds(x)
    levels = torch.exp2(8 - (strength * ranges.bits).round())
    step = ((high - low) / levels).clamp_min(1e-12)
    return low + ((x - low) / step).floor().clamp(max=levels - 1) * step


def _solarise(x: Tensor, strength: Tensor, sign: Tensor, ranges: Ranges) -> Tensor:
    low, high = _bounds(x)
    return torch.where(x >= torch.lerp(high, low, strength), low + high - x, x)


def _stretch(x: Tensor, strength: Tensor, sign: Tensor, ranges: Ranges) -> Tensor:
    low, high = _bounds(x)
    least, most = x.amin(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
    return low + (x - least) * ((high - low) / (most - least).clamp_min(1e-12))


def _equalise(x: Tensor, strength: Tensor, sign: Tensor, ranges: Ranges) -> Tensor:
    """Give each channel evenly spread values: those of its pixels' ranks."""
    low, high = _bounds(x)
    rank = x.flatten(2).argsort(dim=2, stable=True).argsort(dim=2).view(x.shape).to(x.dtype)
    return low + rank * ((high - low) / max(x.shape[2] * x.shape[3] - 1, 1))


VALUES: tuple[Callable[[Tensor, Tensor, Tensor, Ranges], Tensor], ...] = (
    _brightness,
    _colour,
    _contrast,
    _sharpness,
    _posterise,
    _solarise,
    _stretch,
    _equalise,
)
