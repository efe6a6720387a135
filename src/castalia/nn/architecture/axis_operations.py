"""Operations that rename axes, cut them and join tensors along them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from torch import Tensor

from castalia.nn.architecture.input_reach import Reach
from castalia.nn.architecture.operation_call import Call, Reaches, Rule, later, merged

__all__ = [
    "expansion",
    "joining",
    "permutation",
    "reshape",
    "selection",
    "slicing",
    "splitting",
    "swapped",
    "unbinding",
]


def permutation(order: Callable[[Call, int], Sequence[int]]) -> Rule:
    """Make the rule of axes put into another order."""

    def rule(call: Call) -> Reaches:
        x, reaches = call.of("self")
        dims = [dim % x.ndim for dim in order(call, x.ndim)]
        return tuple(r if r.axis is None else r.moved(dims.index(r.axis)) for r in reaches)

    return rule


def swapped(call: Call, count: int) -> list[int]:
    """Return the order of axes that a transposition gives."""
    order = list(range(count))
    a, b = call.given["dim0"], call.given["dim1"]
    order[a], order[b] = order[b], order[a]
    return order


def reshape(call: Call) -> Reaches:
    """Give the entries another shape."""
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


def expansion(call: Call) -> Reaches:
    """Repeat along new axes."""
    x, reaches = call.of("self")
    new = call.out[0].ndim - x.ndim
    return tuple(later(r, new) for r in reaches)


def joining(call: Call) -> Reaches:
    """Join tensors along an axis of their own, or a new one."""
    out, dim = call.out[0], call.given.get("dim", 0)
    tensors = call.given["tensors"]
    new = out.ndim > tensors[0].ndim
    dim %= out.ndim
    parts = []
    for tensor in tensors:
        reaches = call.reaches.get(id(tensor), ())
        if new:
            reaches = tuple(later(r, int(r.axis is not None and r.axis >= dim)) for r in reaches)
        else:
            reaches = tuple(r.collapsed(tensor.shape[dim]) if r.axis == dim else r for r in reaches)
        parts.append(reaches)
    return merged(parts, out)


def slicing(call: Call) -> Reaches:
    """Keep every so manieth entry from a start on."""
    x, reaches = call.of("self")
    dim = call.given["dim"] % x.ndim
    start, step = call.given["start"] or 0, call.given["step"]
    start = max(0, start + x.shape[dim] if start < 0 else start)
    return tuple(r.windows(1, step, -start, 1) if r.axis == dim else r for r in reaches)


def selection(call: Call) -> Reaches:
    """Keep one entry of an axis."""
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


def unbinding(call: Call) -> list[Reaches]:
    """Take the entries of an axis apart."""
    x, reaches = call.of("self")
    dim = call.given["dim"] % x.ndim
    return [_picked(x, reaches, dim, i) for i in range(len(call.out))]


def splitting(call: Call) -> list[Reaches]:
    """Cut an axis into pieces."""
    x, reaches = call.of("self")
    dim = call.given["dim"] % x.ndim
    starts = np.cumsum([0, *(part.shape[dim] for part in call.out)])
    return [
        tuple(r.windows(1, 1, -int(start), 1) if r.axis == dim else r for r in reaches)
        for start in starts[:-1]
    ]
