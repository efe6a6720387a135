"""Operations that look through windows: convolution, pooling, padding, upsampling."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.nn.architecture.input_reach import Reach
from castalia.nn.architecture.operation_call import Call, Reaches, Rule

__all__ = ["adaptive", "columns", "convolution", "padding", "pooling", "upsampling"]


def _numbers(value: Any, axes: int) -> list[int]:
    """Return a number for each axis."""
    numbers = list(value) if isinstance(value, list | tuple) else [value]
    return numbers * axes if len(numbers) == 1 else numbers


def convolution(call: Call) -> Reaches:
    """Convolve, or spread for the transposed convolution."""
    x, reaches = call.of("input")
    axes = x.ndim - 2
    kernel = call.given["weight"].shape[2:]
    names = ("stride", "padding", "dilation")
    settings = list(zip(kernel, *(_numbers(call.given[n], axes) for n in names), strict=True))
    return tuple(
        reach
        if reach.axis in (None, 0)
        else reach.collapsed(x.shape[1])
        if reach.axis == 1  # every output sees all channels
        else (reach.spread if call.given["transposed"] else reach.windows)(
            *settings[reach.axis - 2]
        )
        for reach in reaches
    )


def pooling(call: Call) -> Reaches:
    """Pool over windows."""
    x, reaches = call.of("self")
    axes = len(call.given["kernel_size"])
    kernel = _numbers(call.given["kernel_size"], axes)
    stride = _numbers(call.given["stride"] or kernel, axes)
    padding = _numbers(call.given["padding"], axes)
    dilation = _numbers(call.given.get("dilation", 1), axes)
    settings = list(zip(kernel, stride, padding, dilation, strict=True))
    first = x.ndim - axes
    return tuple(
        reach.windows(*settings[reach.axis - first])
        if reach.axis is not None and reach.axis >= first
        else reach
        for reach in reaches
    )


def adaptive(call: Call) -> Reaches:
    """Pool to a given size."""
    x, reaches = call.of("self")
    out = call.out[0]

    def divided(reach: Reach) -> Reach:
        if reach.axis is None or x.shape[reach.axis] == out.shape[reach.axis]:
            return reach
        old, new = x.shape[reach.axis], out.shape[reach.axis]
        lo, hi = reach.within(old)
        ends = [(i * old // new, -(-(i + 1) * old // new)) for i in range(new)]
        lows, highs = [lo[a:b].min() for a, b in ends], [hi[a:b].max() for a, b in ends]
        cut = np.clip(lows, 0, None), np.clip(highs, None, reach.size - 1)
        return reach.given(reach.axis, *cut)

    return tuple(map(divided, reaches))


def padding(call: Call) -> Reaches:
    """Add positions around."""
    x, reaches = call.of("self")
    before = call.given.get("pad", call.given.get("padding"))[::2]  # the last axis comes first

    def shifted(reach: Reach) -> Reach:
        last = -1 if reach.axis is None else x.ndim - 1 - reach.axis
        return reach.windows(1, 1, before[last], 1) if 0 <= last < len(before) else reach

    return tuple(map(shifted, reaches))


def upsampling(linear: bool) -> Rule:
    """Make the rule of upsampling by copies or by linear interpolation."""

    def rule(call: Call) -> Reaches:
        x, reaches = call.of("self" if "self" in call.given else "input")
        corners = bool(call.given.get("align_corners"))
        out = call.out[0]
        return tuple(
            reach
            if reach.axis is None or reach.axis < 2
            else reach.resized(
                x.shape[reach.axis], out.shape[reach.axis], linear=linear, corners=corners
            )
            for reach in reaches
        )

    return rule


def columns(call: Call) -> Reaches:
    """Lay windows side by side, (B, C f, L): L runs over the rows of the image."""
    x, reaches = call.of("self")
    names = ("kernel_size", "stride", "padding", "dilation")
    kernel, stride, padding, dilation = (_numbers(call.given[n], 2) for n in names)
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    counts = [(x.shape[2 + i] + 2 * padding[i] - spans[i]) // stride[i] + 1 for i in range(2)]

    def windowed(reach: Reach) -> Reach:
        if reach.axis is None or reach.axis < 2:
            return reach
        i = reach.axis - 2
        found = reach.windows(kernel[i], stride[i], padding[i], dilation[i]).within(counts[i])
        view = (-1, 1) if i == 0 else (1, -1)
        lo, hi = (np.broadcast_to(v.reshape(view), counts).ravel() for v in found)
        return reach.given(2, lo, hi)

    return tuple(map(windowed, reaches))
