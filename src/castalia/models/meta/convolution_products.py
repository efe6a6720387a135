"""Convolutions as products of matrices, for many tasks with weights of their own.

``torch.func.vmap`` makes one convolution of T groups of them, whose second derivatives are taken
group by group; T products of matrices are one batched product, as are their derivatives.  Shapes: B
images, C and O channels, H height, W width, k kernel.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["ConvolutionProducts", "convolution"]


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, padding: int) -> Tensor:
    """Return what ``torch.conv2d`` returns for a stride of 1, (B, O, H', W').

    >>> x, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)
    >>> convolution(x, weight, None, 0)
    tensor([[[[9., 9.],
              [9., 9.]]]])
    """
    down, across = weight.shape[-2:]
    wide = F.pad(x, (padding,) * 4)
    h, w = wide.shape[2] - down + 1, wide.shape[3] - across + 1
    shifted = torch.stack([wide.narrow(2, i, h) for i in range(down)], dim=2)  # (B, C, k, H', W)
    windows = torch.stack([shifted.narrow(4, j, w) for j in range(across)], dim=3)
    rows = windows.flatten(1, 3).movedim(1, -1)  # (B, H', W', C k k)
    found = rows @ weight.flatten(1).T
    if bias is not None:
        found = found + bias
    return found.permute(0, 3, 1, 2).contiguous()  # channels last is not for vmap


class ConvolutionProducts(TorchFunctionMode):
    """Inside it, plain convolutions of images are products of matrices; others are as ever."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.conv2d and not kwargs and len(args) == 7:  # as ``nn.Conv2d`` calls it
            x, weight, bias, stride, padding, dilation, groups = args
            plain = tuple(stride) == tuple(dilation) == (1, 1) and groups == 1
            if plain and isinstance(padding, tuple) and len(set(padding)) == 1:
                return convolution(x, weight, bias, padding[0])
        return func(*args, **(kwargs or {}))
