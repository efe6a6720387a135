"""Convolutions as products of matrices, for tasks that have weights of their own.

``torch.func.vmap`` makes one convolution of T groups of T convolutions, whose second derivatives
are slow; windows as columns make them one batched product, as are their derivatives. A meta-step of
a network of four convolutions takes 0.81 of the time on a CPU (evidence/RESULTS.md).  Shapes: B
images, C and O channels, H height, W width, k kernel, L = H' W' places of the output.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["ConvolutionProducts", "convolution", "faster_convolutions"]

MEASURED = ("cpu",)  # where products are known to be faster


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, padding: tuple[int, int]) -> Tensor:
    """Return what ``torch.conv2d`` returns for a stride of 1, (B, O, H', W').

    >>> x, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)
    >>> convolution(x, weight, None, (0, 0))
    tensor([[[[9., 9.],
              [9., 9.]]]])
    """
    sizes = zip(x.shape[2:], padding, weight.shape[2:], strict=True)
    places = [size + 2 * more - k + 1 for size, more, k in sizes]
    windows = F.unfold(x, tuple(weight.shape[2:]), padding=padding)  # (B, C k k, L)
    found = (weight.flatten(1) @ windows).unflatten(2, places)
    return found if bias is None else found + bias[:, None, None]


class ConvolutionProducts(TorchFunctionMode):
    """Inside it, plain convolutions of images are products of matrices; others are as ever."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.conv2d and not kwargs and len(args) == 7:  # as ``nn.Conv2d`` calls it
            x, weight, bias, stride, padding, dilation, groups = args
            plain = tuple(stride) == tuple(dilation) == (1, 1) and groups == 1
            if plain and isinstance(padding, tuple):  # not "same"
                return convolution(x, weight, bias, padding)
        return func(*args, **(kwargs or {}))


def faster_convolutions(x: Tensor) -> AbstractContextManager[Any]:
    """Return in what tasks side by side are computed, for inputs on this device."""
    return ConvolutionProducts() if x.device.type in MEASURED else nullcontext()
