"""Networks that tell a row from its noise: v(x_t, t, y).

Shapes: B batch, D columns, C channels, H and W size, E width of the embedding of t and y.
References: 2020, Ho, Jain, Abbeel, Denoising diffusion probabilistic models, arXiv 2006.11239.
2015, Ronneberger, Fischer, Brox, U-Net, arXiv 1505.04597.
As there, blocks of the U-Net begin as their shortcuts and it begins by saying 0: the last
convolutions of both are 0 at first (evidence/RESULTS.md has what that is worth).
Departs from them: attention at the smallest size only; two blocks on the way up too; images are
halved while they are larger than 7 pixels.
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
        """Return v, (B, D)."""
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


class ImageAttention(nn.Module):
    """Every place attends to every other, around a shortcut; heads of about 64 channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.heads = _divisor(channels, channels // 64)
        self.norm = nn.GroupNorm(_groups(channels), channels)
        self.into = nn.Conv2d(channels, 3 * channels, 1)
        self.out = _silent(nn.Conv2d(channels, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the maps, (B, C, H, W)."""
        parts = self.into(self.norm(x)).flatten(2).unflatten(1, (3, self.heads, -1))
        q, k, v = parts.mT.unbind(dim=1)  # (B, heads, H W, C / heads) each
        mixed = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(mixed.mT.reshape(x.shape))


class ImageDenoiser(nn.Module):
    """U-Net: blocks on the way down, blocks on the way up that also see those of their size.

    Parameters
    ----------
    channels, size
        Of images.
    width
        Channels of the first stage; each further stage has twice as many, up to four times.
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

        def pair(before: int, seen: int, after: int) -> nn.ModuleList:
            return nn.ModuleList(
                [ImageBlock(before + seen, after, dim), ImageBlock(after + seen, after, dim)]
            )

        befores, afters = [width, *widths[:-1]], [*widths[1:], widths[-1]]
        self.down = nn.ModuleList(pair(a, 0, b) for a, b in zip(befores, widths, strict=True))
        self.middle = ImageBlock(widths[-1], widths[-1], dim)
        self.attention = ImageAttention(widths[-1])
        ups = [*zip(afters, widths, strict=True)]
        self.up = nn.ModuleList(pair(a, b, b) for a, b in reversed(ups))
        last = _silent(nn.Conv2d(width, channels, 3, padding=1))
        self.end = nn.Sequential(nn.GroupNorm(_groups(width), width), nn.SiLU(), last)

    def forward(self, x: Tensor, t: Tensor, y: Tensor | None = None) -> Tensor:  # (B, C H W), (B,)
        """Return v, (B, C H W)."""
        said = self.embed(t, y, x.dtype)
        h, seen = self.start(x.view(-1, *self.shape)), []
        stage: Any  # two blocks
        for i, stage in enumerate(self.down):
            h = F.avg_pool2d(h, 2, ceil_mode=True) if i else h
            for block in stage:
                h = block(h, said)
                seen.append(h)
        h = self.attention(self.middle(h, said))
        for stage in self.up:
            h = F.interpolate(h, seen[-1].shape[2:])
            for block in stage:
                h = block(torch.cat([h, seen.pop()], dim=1), said)
        return self.end(h).flatten(1)


def _silent(layer: nn.Conv2d) -> nn.Conv2d:
    """Return a convolution that gives 0 before it has learnt."""
    for p in layer.parameters():
        nn.init.zeros_(p)
    return layer


def _groups(channels: int) -> int:
    return _divisor(channels, 8)


def _divisor(number: int, most: int) -> int:
    """Return the largest power of 2, at most ``most``, that divides a number."""
    return next((n for n in (8, 4, 2) if n <= most and number % n == 0), 1)
