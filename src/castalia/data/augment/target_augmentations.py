"""Targets that move with their images: masks and boxes.

Shapes: B batch, M boxes, H height, W width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from castalia.data.augment.augmentation import Augment, Augmentation, Generator, Pair, warp
from castalia.data.augment.label_augmentations import CutMix, LabelNoise, Mixup
from castalia.errors import InvalidParameter, ShapeMismatch

__all__ = ["WithBoxes", "WithMasks"]


@dataclass(frozen=True)
class WithMasks(Augmentation):
    """A transform of images whose targets are the classes of their pixels, (B, H, W).

    Changes of place move the mask as they move the image, by the nearest pixel.

    Parameters
    ----------
    augment
        The transform.
    void
        What is written where the mask shows what lay outside the image; a class that is not
        counted in the loss. Only needed with zeros as padding.

    Examples
    --------
    >>> from castalia.data.augment import Flip
    >>> mirror = WithMasks(Flip(chance=1.0))
    >>> mirror(torch.zeros(1, 3, 1, 3), torch.tensor([[[1, 2, 3]]]))[1]
    tensor([[[3, 2, 1]]])
    """

    augment: Augmentation
    void: int = -100

    def __post_init__(self) -> None:
        _check_transform(self)

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return changed images and masks."""
        return Augment([self.augment]).moving(x, y, self._move, generator=generator)

    def _move(self, y: Tensor, maps: Tensor, x: Tensor, padding: str) -> Tensor:
        if y.shape != (len(x), *x.shape[2:]):
            raise ShapeMismatch(
                "WithMasks: masks must be (B, H, W) as their images, "
                f"{(len(x), *x.shape[2:])}; got {tuple(y.shape)}."
            )
        # Zeros come in from outside: counted from `void`, they are it.
        counted = (y - self.void)[:, None].to(maps.dtype)
        return warp(counted, maps, mode="nearest", padding=padding)[:, 0].to(y.dtype) + self.void


@dataclass(frozen=True)
class WithBoxes(Augmentation):
    """A transform of images whose targets are boxes, (B, M, 5).

    A box is its class, middle (across, down), width and height; the last four relative to the size
    of the image; class -1 fills up rows. A moved box is the smallest one around its moved corners,
    cut off at the edges.

    Parameters
    ----------
    augment
        The transform. It may not mix or change labels.
    least
        Share of a box's area that must remain inside; what has less is taken away.

    Examples
    --------
    >>> from castalia.data.augment import Flip
    >>> mirror = WithBoxes(Flip(chance=1.0))
    >>> mirror(torch.zeros(1, 3, 8, 8), torch.tensor([[[2.0, 0.25, 0.5, 0.125, 0.5]]]))[1]
    tensor([[[2.0000, 0.7500, 0.5000, 0.1250, 0.5000]]])
    """

    augment: Augmentation
    least: float = 0.2

    def __post_init__(self) -> None:
        _check_transform(self)
        if not 0 <= self.least <= 1:
            raise InvalidParameter(f"WithBoxes: `least` must be from 0 to 1; got {self.least}.")
        for step in Augment([self.augment]).steps:
            if isinstance(step, Mixup | CutMix | LabelNoise):
                raise InvalidParameter(
                    f"WithBoxes: `augment` must leave labels alone; got {step!r}."
                )

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return changed images and boxes."""
        return Augment([self.augment]).moving(x, y, self._move, generator=generator)

    def _move(self, y: Tensor, maps: Tensor, x: Tensor, padding: str) -> Tensor:
        if y.ndim != 3 or y.shape[2] != 5:
            raise ShapeMismatch(
                "WithBoxes: boxes must be (B, M, 5), class, middle across and down, width, height; "
                f"got {tuple(y.shape)}."
            )
        height, width = x.shape[2:]
        low, high = _hull(y, maps, height, width)  # (B, M, 2) each, from 0 to 1 inside
        seen_low, seen_high = low.clamp(0, 1), high.clamp(0, 1)
        sides = seen_high - seen_low
        left, whole = sides.prod(dim=2), (high - low).prod(dim=2)
        kept = (y[..., 0] >= 0) & (left > 0) & (left >= self.least * whole)
        moved = torch.cat([(seen_low + seen_high) / 2, sides], dim=2)  # (B, M, 4)
        label = y[..., :1].masked_fill(~kept[..., None], -1)
        return torch.cat([label, moved.masked_fill(~kept[..., None], 0).to(y.dtype)], dim=2)


def _hull(y: Tensor, maps: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return the smallest upright boxes around moved ones: their two corners, (B, M, 2) each.

    A box's half sides (u, v) become (|a| u + |b| v, |c| u + |d| v) under [[a b] [c d]].
    """
    box = y[..., 1:].to(maps.dtype)
    across, down = (box[..., 0] - 0.5) * width, (box[..., 1] - 0.5) * height  # pixels, (B, M)
    u, v = box[..., 2] * (width / 2), box[..., 3] * (height / 2)
    (a, b, e), (c, d, f) = (row[..., None].unbind(1) for row in maps[:, :2].unbind(1))  # (B, 1)
    middle = torch.stack(
        [(a * across + b * down + e) / width, (c * across + d * down + f) / height], dim=2
    )
    half = torch.stack(
        [(a.abs() * u + b.abs() * v) / width, (c.abs() * u + d.abs() * v) / height], dim=2
    )
    return middle - half + 0.5, middle + half + 0.5


def _check_transform(owner: WithMasks | WithBoxes) -> None:
    if not isinstance(owner.augment, Augmentation):
        raise InvalidParameter(
            f"{type(owner).__name__}: `augment` must be a transform of castalia.data.augment; got "
            f"{owner.augment!r}."
        )
