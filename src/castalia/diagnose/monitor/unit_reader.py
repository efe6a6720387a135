"""Activations inside the network: which units are silent, which lie at their limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from castalia.diagnose.monitor.autograd_graph import Operation, is_layer
from castalia.diagnose.monitor.head_reader import NAMES
from castalia.diagnose.record import Units

__all__ = ["MOST_UNITS", "UnitReader"]

MOST_UNITS = 1024  # per activation; more are thinned evenly
MOST_NUMBERS = 1 << 20  # measured per activation
MOST_CALLS = 8  # of one activation on one batch, as in a recurrent network

# Some activations keep their result; of the others it is computed again from their input and the
# settings they keep.
RESULTS = {"Relu", "Sigmoid", "Tanh", "Threshold"}
OF_INPUT: dict[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "LeakyRelu": (F.leaky_relu, ("negative_slope",)),
    "Elu": (torch.ops.aten.elu, ("alpha", "scale", "input_scale")),  # SELU is one of these
    "Celu": (torch.celu, ("alpha",)),
    "Gelu": (lambda x, how: F.gelu(x, approximate=how), ("approximate",)),
    "Softplus": (F.softplus, ("beta", "threshold")),
    "Hardtanh": (F.hardtanh, ("min_val", "max_val")),
    "Silu": (F.silu, ()),
    "Hardsigmoid": (F.hardsigmoid, ()),
    "Hardswish": (F.hardswish, ()),
    "Mish": (F.mish, ()),
    "Clamp": (F.relu, ()),
}
CONVOLUTIONS = ("Convolution", "ConvolutionOverrideable", "MkldnnConvolution", "SlowConv2D")
LIMITS = {"Sigmoid": (0.01, 0.99), "Tanh": (-0.98, 0.98)}


@dataclass
class _Sums:
    layer: str
    kind: str
    gate: bool
    tensors: list[Tensor]


class UnitReader:
    """Gathers the activations of one graph; the numbers are read in one go at the end."""

    def __init__(self, order: list[Operation], ending: list[Operation]) -> None:
        self.found: dict[tuple[str, str, bool], _Sums] = {}
        last = {id(operation) for operation in ending}
        for operation in order:
            if id(operation) not in last and operation.layer is not None:
                self._take(operation)

    def _take(self, operation: Operation) -> None:
        kind = operation.kind
        if kind not in RESULTS and kind not in OF_INPUT:
            return
        if kind == "Clamp" and not _is_relu(operation):
            return
        key = (str(operation.layer), kind, _is_gate(operation))
        sums = self.found.get(key)
        if sums is not None and len(sums.tensors) >= MOST_CALLS:
            return
        result = _result(operation)
        if result is None or not result.is_floating_point() or result.ndim < 2:
            return
        if not result.numel():
            return
        if sums is None:
            sums = self.found[key] = _Sums(key[0], _name(operation), key[2], [])
        axis = _unit_axis(operation, result)
        sums.tensors.append(_summary(_thinned(result), kind, axis))

    def pending(self) -> list[Tensor]:
        """Return the numbers that ``read`` wants, still on their device."""
        return [_mean(sums.tensors) for sums in self.found.values()]

    def read(self, values: Sequence[np.ndarray]) -> list[Units]:
        """Return the activations in the order of computation."""
        return [_units(*pair) for pair in zip(self.found.values(), values, strict=True)]


def _result(operation: Operation) -> Tensor | None:
    result = operation.saved("result")  # in-place ones keep it too
    if result is not None or operation.kind in RESULTS:
        return result  # type: ignore[no-any-return]
    function, settings = OF_INPUT[operation.kind]
    value = operation.saved("self")
    if value is None or value.ndim < 2:
        return None
    return function(_thinned(value), *(operation.saved(name) for name in settings))


def _mean(tensors: list[Tensor]) -> Tensor:
    """Mean over the calls, of those that have as many units as the first."""
    if len(tensors) == 1:
        return tensors[0]
    width = tensors[0].shape[1]
    return torch.stack([tensor for tensor in tensors if tensor.shape[1] == width]).mean(dim=0)


def _units(sums: _Sums, values: np.ndarray) -> Units:
    """Sum up mean, mean square, active share and, of bounded ones, saturated share of each unit."""
    mean, square, active, *saturated = values.astype(float)
    middle = float(mean.mean())
    return Units(
        layer=sums.layer,
        kind=sums.kind,
        mean=middle,
        std=math.sqrt(max(float(np.mean(square)) - middle**2, 0.0)),
        active=active,
        saturated=saturated[0] if saturated else np.zeros(0),
        gate=sums.gate,
        calls=len(sums.tensors),
    )


def _summary(result: Tensor, kind: str, axis: int) -> Tensor:
    """Mean, mean square, share not zero and, of a bounded one, at a limit, of each unit.

    Sums of numbers that are made for it: a norm that counts takes fifty times as long on a CPU, and
    a mean over rows four times.
    """
    result = _fewer_units(result.detach(), axis)
    result = result.to(torch.promote_types(result.dtype, torch.float32))
    over = [a for a in range(result.ndim) if a != axis]
    found = [result, result.square(), result.ne(0).to(result)]
    if kind in LIMITS:
        low, high = LIMITS[kind]
        found.append(((result < low) | (result > high)).to(result))
    return torch.stack([n.sum(dim=over) for n in found]) / (result.numel() / result.shape[axis])


def _fewer_units(result: Tensor, axis: int) -> Tensor:
    step = -(-result.shape[axis] // MOST_UNITS)
    return result if step <= 1 else result[(slice(None),) * axis + (slice(None, None, step),)]


def _unit_axis(operation: Operation, result: Tensor) -> int:
    """Channels of a convolution are its units; of everything else it is the last axis."""
    source: Operation | None = operation
    while source is not None and not is_layer(source):
        source = source.inputs[0] if source.inputs else None
    from_convolution = source is not None and (
        source.kind in CONVOLUTIONS or "BatchNorm" in source.kind or "GroupNorm" in source.kind
    )
    return 1 if result.ndim >= 4 or (from_convolution and result.ndim >= 3) else result.ndim - 1


def _thinned(value: Tensor) -> Tensor:
    """Leave rows out of a very large activation."""
    keep = max(1, value.shape[0] * MOST_NUMBERS // max(value.numel(), 1))
    return value[:keep] if keep < value.shape[0] else value


def _is_gate(operation: Operation) -> bool:
    """Whether the result multiplies something that is computed too."""
    return any(user.kind == "Mul" and len(user.inputs) == 2 for user in operation.users)


def _is_relu(operation: Operation) -> bool:
    least = operation.saved("min")
    return operation.saved("max") is None and least is not None and float(least) == 0.0


def _name(operation: Operation) -> str:
    return "relu" if operation.kind == "Clamp" else NAMES[operation.kind]
