"""What augmentations have in common, and how they are put in a row.

A transform takes inputs and targets and returns both, changed at random, every row by parameters of
its own. Geometric transforms are affine maps; neighbours among them become one map, so an image is
interpolated once.  Shapes: B batch, C channels, H height, W width, D inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.errors import InvalidData, InvalidParameter

__all__ = [
    "Augment",
    "Augmentation",
    "Geometric",
    "carry",
    "check_images",
    "geometry",
    "uniform",
    "warp",
]

Pair = tuple[Tensor, Tensor | None]
Generator = torch.Generator | None


class Augmentation:
    """A random change of rows; ``a | b`` does a, then b."""

    alternates: ClassVar[bool] = False  # whether it changes a row by the number of the epoch

    def at(self, epoch: Tensor) -> Augmentation:
        """Return the change of an epoch, whose number is a tensor; most are the same in all."""
        return self

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return changed inputs and targets.

        Parameters
        ----------
        x
            Inputs, (B, …); not changed in place.
        y
            Targets, or None.
        generator
            Random numbers, on the device of x; torch's own by default.
        """
        raise NotImplementedError

    def __or__(self, other: Augmentation) -> Augment:
        return Augment([self, other])


@dataclass(frozen=True)
class Geometric(Augmentation):
    """A change of place: a random affine map of the image plane. Targets are kept."""

    whole: ClassVar[bool] = False  # whether pixels land on pixels: mirror images and whole shifts

    padding: str = field(default="zeros", kw_only=True)

    def __post_init__(self) -> None:
        if self.padding not in ("zeros", "border", "reflection"):
            raise InvalidParameter(
                f"{type(self).__name__}: `padding` must be 'zeros', 'border' or 'reflection'; got "
                f"{self.padding!r}."
            )

    def matrices(self, x: Tensor, *, generator: Generator = None) -> Tensor:
        """Return one map for each image, (B, 3, 3).

        They say where a point goes, in homogeneous coordinates (right, down, 1), in pixels from the
        middle of the image.
        """
        raise NotImplementedError

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return moved images and the same targets."""
        return Augment([self])(x, y, generator=generator)


class Augment(Augmentation):
    """Transforms one after the other; runs of geometric ones with equal padding are done at once.

    Parameters
    ----------
    steps
        Transforms in order.

    Examples
    --------
    >>> from castalia.data.augment import Flip, Noise, Rotate
    >>> augment = Rotate(10) | Flip() | Noise(0.1)
    >>> x, y = augment(torch.rand(8, 3, 16, 16), torch.arange(8))
    >>> x.shape, y.tolist()
    (torch.Size([8, 3, 16, 16]), [0, 1, 2, 3, 4, 5, 6, 7])
    """

    steps: tuple[Augmentation, ...]

    def __init__(self, steps: Iterable[Augmentation]) -> None:
        flat: list[Augmentation] = []
        for step in steps:
            if not isinstance(step, Augmentation):
                raise InvalidParameter(f"Augment: every step must be a transform; got {step!r}.")
            flat += step.steps if isinstance(step, Augment) else [step]
        self.steps = tuple(flat)
        self.alternates = any(step.alternates for step in flat)  # type: ignore[misc]

    def at(self, epoch: Tensor) -> Augment:
        """Return the changes of an epoch."""
        return Augment([step.at(epoch) for step in self.steps])

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.steps)) or "Augment([])"

    def __eq__(self, other: object) -> bool:
        return self.steps == other.steps if isinstance(other, Augment) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.steps)

    def state(self) -> dict[str, Any]:
        """Return what saving needs."""
        return {"steps": list(self.steps)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Augment:
        """Return the transforms from their saved state."""
        return cls(state["steps"])

    def __call__(self, x: Tensor, y: Tensor | None = None, *, generator: Generator = None) -> Pair:
        """Return changed inputs and targets."""
        return self.moving(x, y, generator=generator)

    def moving(
        self,
        x: Tensor,
        y: Tensor | None,
        move: Callable[[Tensor, Tensor, Tensor, str], Tensor] | None = None,
        *,
        generator: Generator = None,
    ) -> Pair:
        """Return changed inputs and targets, of which some move with their images.

        Parameters
        ----------
        x, y
            Images and targets.
        move
            Called with y, the maps (B, 3, 3), the images and the padding after each change of
            place; None leaves targets where they are.
        generator
            Random numbers, on the device of x.
        """
        for padding, run in groupby(self.steps, _padding):
            if padding is None:
                for step in run:
                    x, y = step(x, y, generator=generator)
            else:
                moves = [step for step in run if isinstance(step, Geometric)]
                maps = geometry(moves, x, generator)
                by = carry if all(step.whole for step in moves) else warp
                x = by(x, maps, padding=padding)
                y = y if move is None or y is None else move(y, maps, x, padding)
        return x, y


def _padding(step: Augmentation) -> str | None:
    """Return the padding of a geometric transform; steps with the same one are done at once."""
    return step.padding if isinstance(step, Geometric) else None


def geometry(steps: Iterable[Geometric], x: Tensor, generator: Generator = None) -> Tensor:
    """Draw each transform's maps for images x and return their products, (B, 3, 3).

    The same maps move masks (``warp`` with ``mode="nearest"``) and the corners of boxes.
    """
    steps = list(steps)
    for step in steps:
        check_images(step, x)
    maps = torch.eye(3, dtype=x.dtype, device=x.device).expand(len(x), 3, 3)
    with torch.autocast(x.device.type, enabled=False):  # eight bits would miss by whole pixels
        for step in steps:
            maps = step.matrices(x, generator=generator) @ maps
    return maps


def warp(
    x: Tensor, maps: Tensor, *, mode: str = "bilinear", padding: str = "zeros"
) -> Tensor:  # (B, C, H, W), (B, 3, 3)
    """Move images by affine maps of pixels: the new image at A p is the old image at p.

    Parameters
    ----------
    x
        Images, (B, C, H, W).
    maps
        Where points go, (B, 3, 3), in pixels from the middle; affine and invertible.
    mode
        ``"bilinear"``, or ``"nearest"`` for masks.
    padding
        What lies outside: ``"zeros"``, ``"border"`` or ``"reflection"``.

    Examples
    --------
    >>> right = torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    >>> warp(torch.tensor([[[[1.0, 2.0, 3.0, 4.0]]]]), right)
    tensor([[[[0., 1., 2., 3.]]]])
    """
    # affine_grid counts from -1 to 1 across the image and asks where each new pixel comes from.
    with torch.autocast(x.device.type, enabled=False):
        grid = F.affine_grid(_back(maps, *x.shape[-2:]), list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=False)


def carry(x: Tensor, maps: Tensor, *, padding: str = "zeros") -> Tensor:  # (B, C, H, W)
    """Move images by mirrorings and shifts by whole pixels; nothing is interpolated.

    Gives what `warp` gives, exactly, for a fraction of its work on a CPU.

    Parameters
    ----------
    x, maps, padding
        As of `warp`; of the maps, only the signs of the axes and the shifts count.

    Examples
    --------
    >>> right = torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    >>> carry(torch.tensor([[[[1.0, 2.0, 3.0, 4.0]]]]), right)
    tensor([[[[0., 1., 2., 3.]]]])
    """
    height, width = x.shape[-2:]
    down, seen_down = _come_from(maps[:, 1, 1], maps[:, 1, 2], height, padding)
    across, seen_across = _come_from(maps[:, 0, 0], maps[:, 0, 2], width, padding)
    index = (down[:, :, None] * width + across[:, None, :]).flatten(1)[:, None]  # (B, 1, HW)
    moved = x.flatten(2).gather(2, index.expand(-1, x.shape[1], -1)).view(x.shape)
    if padding != "zeros":
        return moved
    return moved.mul_(seen_down[:, None, :, None] * seen_across[:, None, None, :])


def _come_from(sign: Tensor, shift: Tensor, size: int, padding: str) -> tuple[Tensor, Tensor]:
    """Return which line each new line is, and 1 where there is one, else 0, (B, size) each."""
    middle = (size - 1) / 2
    lines = torch.arange(size, device=sign.device, dtype=sign.dtype) - middle
    old = (sign[:, None] * (lines - shift[:, None]) + middle).round().long()
    inside = (old >= 0) & (old < size)
    if padding == "reflection":
        again = old % (2 * size)
        old = torch.minimum(again, 2 * size - 1 - again)
    return old.clamp(0, size - 1), inside.to(sign.dtype)


def _back(maps: Tensor, height: int, width: int) -> Tensor:  # (B, 3, 3)
    """Return the inverse maps in half widths and half heights, (B, 2, 3).

    Written out for [[a b e] [c d f] [0 0 1]] as arithmetic with numbers of the host, so that a
    CUDA graph can record it.
    """
    (a, b, e), (c, d, f) = (row.unbind(dim=1) for row in maps[:, :2].unbind(dim=1))
    w, h = width / 2, height / 2
    det = a * d - b * c
    across = torch.stack([d, -b * (h / w), (b * f - d * e) / w], dim=1)
    down = torch.stack([-c * (w / h), a, (c * e - a * f) / h], dim=1)
    return torch.stack([across, down], dim=1) / det[:, None, None]


def uniform(x: Tensor, low: float, high: float, generator: Generator = None) -> Tensor:
    """Draw one number a row of x, (B,)."""
    drawn = torch.empty(len(x), dtype=x.dtype, device=x.device)
    return drawn.uniform_(low, high, generator=generator)


def check_images(owner: object, x: Tensor) -> None:
    """Refuse what is no batch of images in floats."""
    if x.ndim != 4 or not x.is_floating_point():
        raise InvalidData(
            f"{type(owner).__name__}: images must be floats (B, C, H, W); got {x.dtype} "
            f"{tuple(x.shape)}. Convert pixels with x.float() / 255."
        )
