"""How each operation of torch passes reaches on.

A rule takes the call and gives the reaches of its outputs: one ``Reach`` for each axis of the
network's input. Operations that work entry by entry are known by torch's own tag. Normalisations
count as such: what they learn from the whole picture is not what a receptive field means. An
operation without a rule makes the reach unknown, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.nn.anatomy.reach import Reach, merge

__all__ = ["Call", "Reaches", "passed_on"]

Reaches = tuple[Reach, ...]
aten = torch.ops.aten


@dataclass(frozen=True)
class Call:
    """One operation: its arguments by name, its outputs, and the reaches of its tensors.

    Attributes
    ----------
    given
        Arguments by their names, defaults included.
    out
        The outputs, in order.
    reaches
        Reaches by the identity of a tensor; a tensor that is not in it depends on no input.
    """

    given: Mapping[str, Any]
    out: Sequence[Tensor]
    reaches: Mapping[int, Reaches]

    def of(self, name: str) -> tuple[Tensor, Reaches]:
        """Return an argument and its reaches."""
        tensor = self.given[name]
        return tensor, self.reaches.get(id(tensor), ())

    def dims(self, count: int, name: str = "dim") -> list[int]:
        """Return the axes that an argument names; all where it names none."""
        value = self.given.get(name)
        dims = [value] if isinstance(value, int) else list(value or range(count))
        return [dim % count for dim in dims]


Rule = Callable[[Call], Reaches | list[Reaches]]


def passed_on(
    func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], out: Sequence[Tensor], reaches: Any
) -> list[Reaches] | None:
    """Return the reaches of each output, or None where no rule knows the operation."""
    names = [argument.name for argument in func._schema.arguments]
    defaults = {a.name: a.default_value for a in func._schema.arguments if a.has_default_value()}
    call = Call({**defaults, **dict(zip(names, args, strict=False)), **kwargs}, out, reaches)
    rule = RULES.get(func._overloadpacket)
    if rule is None and torch.Tag.pointwise in func.tags:
        rule = _pointwise
    if rule is None:
        return None
    found = rule(call)
    return found if isinstance(found, list) else [found] * len(out)


# ---- windows ----


def _numbers(value: Any, axes: int) -> list[int]:
    numbers = list(value) if isinstance(value, list | tuple) else [value]
    return numbers * axes if len(numbers) == 1 else numbers


def _convolution(call: Call) -> Reaches:
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


def _pooling(call: Call) -> Reaches:
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


def _adaptive(call: Call) -> Reaches:
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


def _padding(call: Call) -> Reaches:
    x, reaches = call.of("self")
    before = call.given.get("pad", call.given.get("padding"))[::2]  # the last axis comes first

    def shifted(reach: Reach) -> Reach:
        last = -1 if reach.axis is None else x.ndim - 1 - reach.axis
        return reach.windows(1, 1, before[last], 1) if 0 <= last < len(before) else reach

    return tuple(map(shifted, reaches))


def _upsampling(linear: bool) -> Rule:
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


# ---- entry by entry, and over axes ----


def _pointwise(call: Call) -> Reaches:
    out = call.out[0]
    parts = []
    for value in call.given.values():
        for tensor in value if isinstance(value, list | tuple) else [value]:
            if isinstance(tensor, Tensor) and id(tensor) in call.reaches:
                later = out.ndim - tensor.ndim  # axes are matched from the last
                parts.append(tuple(_later(r, later) for r in call.reaches[id(tensor)]))
    return _merged(parts, out)


def _later(reach: Reach, axes: int) -> Reach:
    return reach if reach.axis is None or not axes else reach.moved(reach.axis + axes)


def _merged(parts: Sequence[Reaches], out: Tensor) -> Reaches:
    """Merge what several tensors bring; where it lies along different axes, over all of them."""

    def joined(reaches: tuple[Reach, ...]) -> Reach:
        axes = {reach.axis for reach in reaches} - {None}
        if len(axes) > 1:
            reaches = tuple(
                r if r.axis is None else r.collapsed(out.shape[r.axis]) for r in reaches
            )
        return merge(reaches, 1)

    return tuple(joined(found) for found in zip(*[p for p in parts if p], strict=True))


def _same(call: Call) -> Reaches:
    return call.of("self" if "self" in call.given else "input")[1]


def _embedding(call: Call) -> Reaches:
    return call.of("indices")[1]


def _softmax(call: Call) -> Reaches:
    x, reaches = call.of("self")
    dims = call.dims(x.ndim)
    return tuple(r.collapsed(x.shape[r.axis]) if r.axis in dims else r for r in reaches)


def _reduction(call: Call) -> Reaches:
    x, reaches = call.of("self")
    dims, kept = call.dims(x.ndim), bool(call.given.get("keepdim"))

    def reduced(reach: Reach) -> Reach:
        if reach.axis is None:
            return reach
        if reach.axis in dims:
            return reach.collapsed(x.shape[reach.axis], reach.axis if kept else None)
        return reach if kept else reach.moved(reach.axis - sum(d < reach.axis for d in dims))

    return tuple(map(reduced, reaches))


def _product(first: str, second: str) -> Rule:
    def rule(call: Call) -> Reaches:
        parts = []
        for name, gone in ((first, -1), (second, -2)):
            x, reaches = call.of(name)
            summed = gone % x.ndim
            parts.append(
                tuple(r.collapsed(x.shape[summed]) if r.axis == summed else r for r in reaches)
            )
        return _merged(parts, call.out[0])

    return rule


# ---- axes renamed, cut and joined ----


def _permutation(order: Callable[[Call, int], Sequence[int]]) -> Rule:
    def rule(call: Call) -> Reaches:
        x, reaches = call.of("self")
        dims = [dim % x.ndim for dim in order(call, x.ndim)]
        return tuple(r if r.axis is None else r.moved(dims.index(r.axis)) for r in reaches)

    return rule


def _swapped(call: Call, count: int) -> list[int]:
    order = list(range(count))
    a, b = call.given["dim0"], call.given["dim1"]
    order[a], order[b] = order[b], order[a]
    return order


def _reshape(call: Call) -> Reaches:
    x, reaches = call.of("self")
    groups = list(_groups(tuple(x.shape), tuple(call.out[0].shape)))

    def reshaped(reach: Reach) -> Reach:
        if reach.axis is None:
            return reach
        for old, new in groups:
            if reach.axis in old:
                return _regrouped(reach, x.shape, old, call.out[0].shape, new)
        return reach.collapsed(x.shape[reach.axis])  # an axis of one entry

    return tuple(map(reshaped, reaches))


def _groups(old: tuple[int, ...], new: tuple[int, ...]) -> Sequence[tuple[list[int], list[int]]]:
    """Return axes of both shapes that hold the same entries; axes of one entry are left out."""
    left = [i for i, n in enumerate(old) if n != 1]
    right = [i for i, n in enumerate(new) if n != 1]
    groups = []
    while left and right:
        a, b = [left.pop(0)], [right.pop(0)]
        while (more := prod(old[i] for i in a) - prod(new[i] for i in b)) != 0:
            (b.append(right.pop(0)) if more > 0 else a.append(left.pop(0)))
        groups.append((a, b))
    return groups


def _regrouped(
    reach: Reach, shape: Sequence[int], old: list[int], target: Sequence[int], new: list[int]
) -> Reach:
    """Return the reach along the one new axis it varies along, if there is one."""
    if len(old) == len(new) == 1:
        return reach.moved(new[0])
    place = old.index(reach.axis)  # type: ignore[arg-type]
    lo, hi = reach.within(shape[old[place]])
    view = [1] * len(old)
    view[place] = -1
    sizes = [shape[i] for i in old]
    lo, hi = (
        np.broadcast_to(v.reshape(view), sizes).reshape([target[i] for i in new]) for v in (lo, hi)
    )
    for at, axis in enumerate(new):
        rest = tuple(i for i in range(len(new)) if i != at)
        if all((v.min(axis=rest) == v.max(axis=rest)).all() for v in (lo, hi)):
            return reach.given(axis, lo.min(axis=rest), hi.max(axis=rest))
    return reach.collapsed(shape[old[place]])


def _columns(call: Call) -> Reaches:
    """Windows side by side, (B, C f, L): L runs over the rows of the picture."""
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


def _expansion(call: Call) -> Reaches:
    x, reaches = call.of("self")
    later = call.out[0].ndim - x.ndim
    return tuple(_later(r, later) for r in reaches)


def _join(call: Call) -> Reaches:
    """Join tensors along an axis of their own, or a new one."""
    out, dim = call.out[0], call.given.get("dim", 0)
    tensors = call.given["tensors"]
    new = out.ndim > tensors[0].ndim
    dim %= out.ndim
    parts = []
    for tensor in tensors:
        reaches = call.reaches.get(id(tensor), ())
        if new:
            reaches = tuple(_later(r, int(r.axis is not None and r.axis >= dim)) for r in reaches)
        else:
            reaches = tuple(r.collapsed(tensor.shape[dim]) if r.axis == dim else r for r in reaches)
        parts.append(reaches)
    return _merged(parts, out)


def _slice(call: Call) -> Reaches:
    x, reaches = call.of("self")
    dim = call.given["dim"] % x.ndim
    start, step = call.given["start"] or 0, call.given["step"]
    start = max(0, start + x.shape[dim] if start < 0 else start)
    return tuple(r.windows(1, step, -start, 1) if r.axis == dim else r for r in reaches)


def _select(call: Call) -> Reaches:
    x, reaches = call.of("self")
    dim = call.given["dim"] % x.ndim
    return _picked(x, reaches, dim, call.given["index"] % x.shape[dim])


def _picked(x: Tensor, reaches: Reaches, dim: int, index: int) -> Reaches:
    def picked(reach: Reach) -> Reach:
        if reach.axis is None:
            return reach
        if reach.axis != dim:
            return reach.moved(reach.axis - int(reach.axis > dim))
        lo, hi = reach.within(x.shape[dim])
        return reach.given(None, lo[index : index + 1], hi[index : index + 1])

    return tuple(map(picked, reaches))


def _unbind(call: Call) -> list[Reaches]:
    x, reaches = call.of("self")
    dim = call.given["dim"] % x.ndim
    return [_picked(x, reaches, dim, i) for i in range(len(call.out))]


def _split(call: Call) -> list[Reaches]:
    x, reaches = call.of("self")
    dim = call.given["dim"] % x.ndim
    starts = np.cumsum([0, *(part.shape[dim] for part in call.out)])
    return [
        tuple(r.windows(1, 1, -int(start), 1) if r.axis == dim else r for r in reaches)
        for start in starts[:-1]
    ]


def _rules(names: str, rule: Rule) -> dict[Any, Rule]:
    """Return the rule for each operation of these names that this torch has."""
    return {getattr(aten, name): rule for name in names.split() if hasattr(aten, name)}


RULES: dict[Any, Rule] = {
    **_rules("convolution", _convolution),
    **_rules(
        "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices "
        "avg_pool1d avg_pool2d avg_pool3d",
        _pooling,
    ),
    **_rules(
        "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d",
        _adaptive,
    ),
    **_rules(
        "constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d "
        "replication_pad2d replication_pad3d",
        _padding,
    ),
    **_rules("upsample_nearest1d upsample_nearest2d upsample_nearest3d", _upsampling(False)),
    **_rules("upsample_linear1d upsample_bilinear2d upsample_trilinear3d", _upsampling(True)),
    **_rules(
        "native_batch_norm _native_batch_norm_legit_no_training cudnn_batch_norm native_group_norm "
        "native_layer_norm _fused_rms_norm alias detach lift_fresh _to_copy",
        _same,
    ),
    **_rules("embedding", _embedding),
    **_rules("_softmax _log_softmax _safe_softmax", _softmax),
    **_rules("mean sum amax amin max min var std logsumexp prod any all", _reduction),
    **_rules("mm bmm", _product("self", "mat2")),
    **_rules("addmm", _product("mat1", "mat2")),
    **_rules("baddbmm", _product("batch1", "batch2")),
    **_rules("t", _permutation(lambda call, count: range(count - 1, -1, -1))),
    **_rules("transpose", _permutation(_swapped)),
    **_rules("permute", _permutation(lambda call, count: call.given["dims"])),
    **_rules("view _unsafe_view reshape unsqueeze squeeze", _reshape),
    **_rules("im2col", _columns),
    **_rules("expand", _expansion),
    **_rules("cat stack", _join),
    **_rules("slice", _slice),
    **_rules("select", _select),
    **_rules("unbind", _unbind),
    **_rules("split split_with_sizes unsafe_split", _split),
}
