"""Where DRAW reads and writes: a window of N x N Gaussian filters.

Shapes: B batch, C channels, H and W size, N filters along an axis.
Reference: 2015, Gregor, Danihelka, Graves, Rezende, Wierstra, DRAW, arXiv 1502.04623, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["filters", "product", "read", "window", "write"]

TINY = 1e-8


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return a @ b; compiled, a sum that is one with what stands around it.

    Products of 5 x 28 and 28 x 28 matrices are too small for a kernel of their own.
    """
    if torch.compiler.is_compiling():
        return (a[..., None] * b[..., None, :, :]).sum(dim=-2)
    return a @ b


def filters(centre: Tensor, stride: Tensor, variance: Tensor, n: int, size: int) -> Tensor:
    """Return the Gaussian filters along one axis, (B, N, size), each of sum 1.

    mu_i = centre + (i - N/2 - 1/2) stride, F[i, a] ~ exp(-(a - mu_i)^2 / 2 variance), i from 1.
    """
    place = torch.arange(n, dtype=centre.dtype, device=centre.device) - (n - 1) / 2
    mean = torch.addcmul(centre[:, None], place, stride[:, None])  # (B, N)
    a = torch.arange(size, dtype=centre.dtype, device=centre.device)
    return ((a - mean[..., None]).square() * (-0.5 / variance[:, None, None])).softmax(dim=2)


def window(
    parameters: Tensor, n: int, size: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the filters of both axes, the intensity, and where the window is, of (B, 5) numbers.

    gx = (W + 1) (gx~ + 1) / 2, gy likewise, stride = (max(H, W) - 1) / (N - 1) e^stride~. There
    pixels are counted from 1, here from 0.
    """
    (height, width), (x, y) = size, parameters[:, :2].unbind(dim=1)
    x, y = (x + 1) * ((width + 1) / 2) - 1, (y + 1) * ((height + 1) / 2) - 1
    variance, stride, intensity = (parameters[:, 2:].exp() + TINY).unbind(dim=1)
    stride = stride * ((max(height, width) - 1) / max(1, n - 1))
    across = filters(x, stride, variance, n, width)  # (B, N, W)
    down = filters(y, stride, variance, n, height)  # (B, N, H)
    return down, across, intensity, torch.stack([x, y, stride, variance.sqrt()], dim=1)


def read(x: Tensor, error: Tensor, parameters: Tensor, n: int) -> Tensor:
    """Return what a window (B, 5) shows of images and of their errors, (B, 2 C N N)."""
    down, across, intensity, _ = window(parameters, n, x.shape[2:])
    both = torch.cat([x, error], dim=1)  # (B, 2 C, H, W)
    seen = product(product(down[:, None], both), across[:, None].mT)  # (B, 2 C, N, N)
    return (intensity[:, None, None, None] * seen).flatten(1)


def write(patch: Tensor, parameters: Tensor, n: int, size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return what a patch (B, C N N) adds to a canvas, (B, C, H, W), and its window, (B, 4)."""
    down, across, intensity, place = window(parameters, n, size)
    added = product(down[:, None].mT, product(patch.unflatten(1, (-1, n, n)), across[:, None]))
    return added / intensity[:, None, None, None], place
