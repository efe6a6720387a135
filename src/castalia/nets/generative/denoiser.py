"""Networks that say which noise is in a row: eps(x_t, t, y).

Shapes: B batch, D columns, C channels, H and W size, E width of the embedding of t and y.
References: 2020, Ho, Jain, Abbeel, Denoising diffusion probabilistic models, arXiv 2006.11239.
2015, Ronneberger, Fischer, Brox, U-Net, arXiv 1505.04597.
As there, blocks of the U-Net begin as their shortcuts and it begins by saying 0: the last
convolutions of both are 0 at first (evidence/RESULTS.md has what that is worth).
Departs from them: no attention; two residual blocks at each size; images are halved while they are
larger than 7 pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nets.generative.coders import stage_sizes

__all__ = ["DenseDenoiser", "ImageDenoiser", "StepEmbedding"]


class StepEmbedding(nn.Module):
    """Waves of the step t, through two layers, plus a vector for the class.

    Parameters
    ----------
    dim
        Width E.
    classes
        Number of classes; class number ``classes`` stands for none. 0: no classes.
    """

    def __init__(self, dim: int, classes: int = 0) -> None:
        super().__init__()
        self.dim, self.classes = dim, classes
        self.layers = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.label = nn.Embedding(classes + 1, dim) if classes else None

    def forward(self, t: Tensor, y: Tensor | None, kind: torch.dtype) -> Tensor:  # (B,), (B,)
        """Return the embedding, (B, E); y None: no class."""
        half = self.dim // 2
        place = torch.arange(half, device=t.device, dtype=kind)
        angle = t.to(kind)[:, None] * (-math.log(10_000.0) / half * place).exp()
        found = self.layers(torch.cat([angle.sin(), angle.cos()], dim=1))
        if self.label is None:
            return found
        y = torch.full_like(t, self.classes) if y is None else y
        return found + self.label(y)


class DenseDenoiser(nn.Module):
    """Residual dense blocks, each of which is given the embedding of t.

    Parameters
    ----------
    inputs
        Number D of columns.
    hidden
        Width of the blocks.
    depth
        How many there are.
    classes
        Number of classes; 0: none.
    """

    def __init__(self, inputs: int, *, hidden: int = 128, depth: int = 3, classes: int = 0) -> None:
        super().__init__()
        self.classes = classes
        self.embed = StepEmbedding(hidden, classes)
        self.start, self.end = nn.Linear(inputs, hidden), nn.Linear(hidden, inputs)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
            for _ in range(depth)
        )

    def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:  # (B, D), (B,)
        """Return the noise, (B, D)."""
        said, h = self.embed(t, y, x.dtype), self.start(x)
        for block in self.blocks:
            h = h + block(h + said)
        return self.end(F.silu(h))


class ImageBlock(nn.Module):
    """Two convolutions around a shortcut; the embedding scales and shifts what is between."""

    def __init__(self, before: int, after: int, dim: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(_groups(before), before), nn.SiLU(), nn.Conv2d(before, after, 3, padding=1)
        )
        self.said = nn.Linear(dim, 2 * after)
        self.norm = nn.GroupNorm(_groups(after), after)
        self.second = _silent(nn.Conv2d(after, after, 3, padding=1))
        self.short = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x: Tensor, said: Tensor) -> Tensor:
        """Return the maps, (B, after, H, W)."""
        scale, shift = self.said(F.silu(said))[:, :, None, None].chunk(2, dim=1)
        h = self.norm(self.first(x)) * (1 + scale) + shift
        return self.short(x) + self.second(F.silu(h))


class ImageDenoiser(nn.Module):
    """U-Net: blocks on the way down, blocks on the way up that also see those of their size.

    Parameters
    ----------
    channels, size
        Of images.
    width
        Channels of the first stage; each further stage has twice as many.
    classes
        Number of classes; 0: none.
    """

    def __init__(
        self, channels: int, size: Sequence[int], *, width: int = 32, classes: int = 0
    ) -> None:
        super().__init__()
        sizes = stage_sizes(size)
        self.sizes, self.shape = sizes, (channels, *sizes[0])
        self.classes, dim = classes, 4 * width
        widths = [width * 2 ** min(i, 2) for i in range(len(sizes))]
        self.embed = StepEmbedding(dim, classes)
        self.start = nn.Conv2d(channels, width, 3, padding=1)
        down: list[Any] = [ImageBlock(width, width, dim)]
        down += [ImageBlock(a, b, dim) for a, b in zip(widths, widths[1:], strict=False)]
        self.down = nn.ModuleList(down)
        self.middle = ImageBlock(widths[-1], widths[-1], dim)
        ups = [*zip(widths[1:], widths, strict=False)]
        self.up = nn.ModuleList(ImageBlock(a + b, b, dim) for a, b in reversed(ups))
        last = _silent(nn.Conv2d(width, channels, 3, padding=1))
        self.end = nn.Sequential(nn.GroupNorm(_groups(width), width), nn.SiLU(), last)

    def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:  # (B, C H W), (B,)
        """Return the noise, (B, C H W)."""
        said = self.embed(t, y, x.dtype)
        h, seen = self.start(x.view(-1, *self.shape)), []
        for i, block in enumerate(self.down):
            h = block(F.avg_pool2d(h, 2, ceil_mode=True) if i else h, said)
            seen.append(h)
        h = self.middle(seen.pop(), said)
        for block in self.up:
            other = seen.pop()
            h = block(torch.cat([F.interpolate(h, other.shape[2:]), other], dim=1), said)
        return self.end(h).flatten(1)


def _silent(layer: nn.Conv2d) -> nn.Conv2d:
    """Return a convolution that gives 0 before it has learnt."""
    for p in layer.parameters():
        nn.init.zeros_(p)
    return layer


def _groups(channels: int) -> int:
    return next(n for n in (8, 4, 2, 1) if channels % n == 0)
