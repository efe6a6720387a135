"""How each operation of torch passes reaches on.

A rule takes the call and gives the reaches of its outputs: one ``Reach`` for each axis of the
network's input. Operations that work entry by entry are known by torch's own tag. Normalisations
count as such: what they learn from the whole image is not what a receptive field means. An
operation without a rule makes the reach unknown, never wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from castalia.nn.architecture.axis_operations import (
    expansion,
    joining,
    permutation,
    reshape,
    selection,
    slicing,
    splitting,
    swapped,
    unbinding,
)
from castalia.nn.architecture.input_reach import Reach
from castalia.nn.architecture.operation_call import Call, Reaches, Rule, later, merged
from castalia.nn.architecture.window_operations import (
    adaptive,
    columns,
    convolution,
    padding,
    pooling,
    upsampling,
)

__all__ = ["passed_on"]

aten = torch.ops.aten


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


def _pointwise(call: Call) -> Reaches:
    out = call.out[0]
    parts = []
    for value in call.given.values():
        for tensor in value if isinstance(value, list | tuple) else [value]:
            if isinstance(tensor, Tensor) and id(tensor) in call.reaches:
                axes = out.ndim - tensor.ndim  # they are matched from the last
                parts.append(tuple(later(r, axes) for r in call.reaches[id(tensor)]))
    return merged(parts, out)


def _unchanged(call: Call) -> Reaches:
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
        return merged(parts, call.out[0])

    return rule


def _rules(names: str, rule: Rule) -> dict[Any, Rule]:
    """Return the rule for each operation of these names that this torch has."""
    return {getattr(aten, name): rule for name in names.split() if hasattr(aten, name)}


RULES: dict[Any, Rule] = {
    **_rules("convolution", convolution),
    **_rules(
        "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices "
        "avg_pool1d avg_pool2d avg_pool3d",
        pooling,
    ),
    **_rules(
        "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d",
        adaptive,
    ),
    **_rules(
        "constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d "
        "replication_pad2d replication_pad3d",
        padding,
    ),
    **_rules("upsample_nearest1d upsample_nearest2d upsample_nearest3d", upsampling(False)),
    **_rules("upsample_linear1d upsample_bilinear2d upsample_trilinear3d", upsampling(True)),
    **_rules(
        "native_batch_norm _native_batch_norm_legit_no_training cudnn_batch_norm native_group_norm "
        "native_layer_norm _fused_rms_norm alias detach lift_fresh _to_copy",
        _unchanged,
    ),
    **_rules("embedding", _embedding),
    **_rules("_softmax _log_softmax _safe_softmax", _softmax),
    **_rules("mean sum amax amin max min var std logsumexp prod any all", _reduction),
    **_rules("mm bmm", _product("self", "mat2")),
    **_rules("addmm", _product("mat1", "mat2")),
    **_rules("baddbmm", _product("batch1", "batch2")),
    **_rules("t", permutation(lambda call, count: range(count - 1, -1, -1))),
    **_rules("transpose", permutation(swapped)),
    **_rules("permute", permutation(lambda call, count: call.given["dims"])),
    **_rules("view _unsafe_view reshape unsqueeze squeeze", reshape),
    **_rules("im2col", columns),
    **_rules("expand", expansion),
    **_rules("cat stack", joining),
    **_rules("slice", slicing),
    **_rules("select", selection),
    **_rules("unbind", unbinding),
    **_rules("split split_with_sizes unsafe_split", splitting),
}
