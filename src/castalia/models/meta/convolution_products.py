"""Convolutions of tasks that have weights of their own, as products of matrices.

``torch.func.vmap`` makes one convolution of T groups of T convolutions, whose second derivatives
torch takes group by group. Here a convolution, y = w * x, and the slope of its weights,
x # g, are each one batched product with the windows of an image as columns, and each is the
derivative of the other: slopes by x are g * turned(w), those of x # g are g * turned(v) and
v * x. Any number of derivatives is made of these two. A meta-step of a network of four convolutions
takes 0.7 of the time on a CPU, and no less on an H200 (evidence/RESULTS.md).  Shapes: T tasks, B
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
Pair = tuple[int, int]


def convolution(x: Tensor, weight: Tensor, bias: Tensor | None, padding: Pair) -> Tensor:
    """Return what ``torch.conv2d`` returns for a stride of 1, (B, O, H', W').

    >>> x, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)
    >>> convolution(x, weight, None, (0, 0))
    tensor([[[[9., 9.],
              [9., 9.]]]])
    """
    found: Tensor = Convolved.apply(x[None], weight[None], padding)[0]
    return found if bias is None else found + bias[:, None, None]


class Convolved(torch.autograd.Function):
    """w * x of each task: (T, B, C, H, W) and (T, O, C, k, k) give (T, B, O, H', W')."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, padding: Pair) -> Tensor:
        """One convolution where the weights are shared, else a product for each task."""
        if len(weight) == 1:
            return F.conv2d(x[0], weight[0], padding=padding)[None]
        kernel = _kernel(weight)
        found = weight.flatten(2) @ _columns(x, kernel, padding)  # (T, O, B L)
        places = (s + 2 * p - k + 1 for s, p, k in zip(x.shape[3:], padding, kernel, strict=True))
        return found.unflatten(2, (x.shape[1], *places)).transpose(1, 2).contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Pair], output: Tensor) -> None:
        """Keep both."""
        x, weight, ctx.padding = inputs
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        """Return the slopes by x and by the weights."""
        x, weight = ctx.saved_tensors
        by_x, by_weight = ctx.needs_input_grad[:2]
        return (
            _by_inputs(slope, weight, ctx.padding) if by_x else None,
            WeightSlope.apply(x, slope, ctx.padding, _kernel(weight)) if by_weight else None,
            None,
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor, weight: Tensor, padding: Pair) -> Any:
        """Further tasks: images of one convolution where they share weights, else more products."""
        if in_dims[1] is None:
            x = x.movedim(in_dims[0], 1)  # (T, V, B, …)
            found = Convolved.apply(x.flatten(1, 2), weight, padding)
            return found.unflatten(1, x.shape[1:3]), 1
        x, weight = _both(info.batch_size, in_dims, x, weight)
        found = Convolved.apply(x.flatten(0, 1), weight.flatten(0, 1), padding)
        return found.unflatten(0, x.shape[:2]), 0


class WeightSlope(torch.autograd.Function):
    """x # g of each task: (T, B, C, H, W) and (T, B, O, H', W') give (T, O, C, k, k)."""

    @staticmethod
    def forward(x: Tensor, slope: Tensor, padding: Pair, kernel: Pair) -> Tensor:
        """One product for each task."""
        rows = slope.transpose(1, 2).flatten(2)  # (T, O, B L)
        found = rows @ _columns(x, kernel, padding).transpose(1, 2)
        return found.unflatten(2, (x.shape[2], *kernel))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep both."""
        x, slope, ctx.padding, _ = inputs
        ctx.save_for_backward(x, slope)

    @staticmethod
    def backward(ctx: Any, other: Tensor) -> Any:
        """Return the slopes by x and by g."""
        x, slope = ctx.saved_tensors
        by_x, by_slope = ctx.needs_input_grad[:2]
        return (
            _by_inputs(slope, other, ctx.padding) if by_x else None,
            Convolved.apply(x, other, ctx.padding) if by_slope else None,
            None,
            None,
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor, slope: Tensor, *sizes: Pair) -> Any:
        """Further tasks are more products."""
        x, slope = _both(info.batch_size, in_dims, x, slope)
        found = WeightSlope.apply(x.flatten(0, 1), slope.flatten(0, 1), *sizes)
        return found.unflatten(0, x.shape[:2]), 0


def _columns(x: Tensor, kernel: Pair, padding: Pair) -> Tensor:
    """Return the window of every place as a column, (T, C k k, B L)."""
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    windows = x.unfold(3, kernel[0], 1).unfold(4, kernel[1], 1)  # (T, B, C, H', W', k, k)
    return windows.permute(0, 2, 5, 6, 1, 3, 4).flatten(4).flatten(1, 3)


def _by_inputs(slope: Tensor, weight: Tensor, padding: Pair) -> Tensor:
    """Return g * turned(w), the slope of a convolution by its inputs."""
    turned = weight.flip(3, 4).transpose(1, 2)
    outer = tuple(k - 1 - p for k, p in zip(_kernel(weight), padding, strict=True))
    found: Tensor = Convolved.apply(slope, turned, outer)
    return found


def _kernel(weight: Tensor) -> Pair:
    return weight.shape[3], weight.shape[4]


def _both(size: int, in_dims: tuple[Any, ...], *tensors: Tensor) -> list[Tensor]:
    """Return tensors with the dimension of further tasks in front, (V, T, …)."""
    pairs = zip(tensors, in_dims, strict=False)
    return [x.expand(size, *x.shape) if d is None else x.movedim(d, 0) for x, d in pairs]


class ConvolutionProducts(TorchFunctionMode):
    """Inside it, plain convolutions of images are products of matrices; others are as ever."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.conv2d and not kwargs and len(args) == 7:  # as ``nn.Conv2d`` calls it
            x, weight, bias, stride, padding, dilation, groups = args
            plain = tuple(stride) == tuple(dilation) == (1, 1) and groups == 1
            if plain and isinstance(padding, tuple) and _within(weight, padding):  # not "same"
                return convolution(x, weight, bias, padding)
        return func(*args, **(kwargs or {}))


def _within(weight: Tensor, padding: Pair) -> bool:
    """Return whether slopes by the inputs are convolutions too: no padding beyond the kernel."""
    return all(p < k for p, k in zip(padding, weight.shape[2:], strict=True))


def faster_convolutions(x: Tensor) -> AbstractContextManager[Any]:
    """Return in what tasks side by side are computed, for inputs on this device."""
    faster = x.device.type in MEASURED and not torch.compiler.is_compiling()
    return ConvolutionProducts() if faster else nullcontext()
