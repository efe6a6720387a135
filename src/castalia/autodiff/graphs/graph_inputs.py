"""What a graph accepts: inputs, seeds, and how a message names a box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from castalia.autodiff.graphs.box import Box
from castalia.errors import InvalidData, ShapeMismatch
from castalia.utils.text import listing, plural

__all__ = ["check_input", "origin", "scalar_end", "seeds_of"]


def scalar_end(owner: str, ends: Sequence[Box]) -> Box:
    """Return the only output, if it is one number that has a gradient."""
    if len(ends) != 1 or _size(ends[0].shape) != 1:
        shapes = listing([box.shape for box in ends], last="and")
        raise InvalidData(
            f"{owner}: the output must be one scalar or `seed` must be given; got {shapes}. "
            "Reduce it, for example with `.sum()`, or pass a seed of that shape."
        )
    if not (ends[0].dtype.is_floating_point or ends[0].dtype.is_complex):
        raise InvalidData(
            f"{owner}: the output must be of floating-point numbers; got {ends[0].dtype}, which "
            "has no gradient."
        )
    return ends[0]


def seeds_of(owner: str, ends: Sequence[Box], seed: Any) -> list[tuple[Box, Tensor]]:
    """Pair the outputs with the adjoints they are given; None gives none."""
    seeds = (seed,) if isinstance(seed, Tensor) else pytree.tree_leaves(seed, is_leaf=_is_none)
    if len(seeds) != len(ends):
        raise ShapeMismatch(
            f"{owner}: `seed` must hold an adjoint for each of {plural(len(ends), 'output')}; "
            f"got {len(seeds)}."
        )
    pairs = [(box, part) for box, part in zip(ends, seeds, strict=True) if part is not None]
    for box, part in pairs:
        got = tuple(part.shape) if isinstance(part, Tensor) else type(part).__name__
        if got != box.shape:
            raise ShapeMismatch(
                f"{owner}: `seed` must be a tensor of the output's shape {box.shape}; got {got}."
            )
    return pairs


def check_input(box: Box, tensor: Any) -> None:
    """Refuse what is not of the shape and type that was traced."""
    if not isinstance(tensor, Tensor):
        got: Any = type(tensor).__name__
    elif tuple(tensor.shape) != box.shape:
        got = tuple(tensor.shape)
    elif tensor.dtype != box.dtype:
        got = tensor.dtype
    else:
        return
    raise ShapeMismatch(
        f"Graph.fprop: `{box.name}` must be a tensor of shape {box.shape} and {box.dtype}, as it "
        f"was traced; got {got}. Trace again with the new one."
    )


def origin(box: Box) -> str:
    """Say where a box comes from, for a message."""
    if box.is_leaf:
        return f"in the {box.kind} `{box.name}`"
    where = f" in `{box.module}` ({box.module_class})" if box.module else ""
    line = f", {box.source}: {box.source.text}" if box.source else ""
    return f"first in box `{box.name}` ({box.operation}){where}{line}"


def _size(shape: tuple[Any, ...]) -> int:
    return torch.Size(shape).numel() if all(isinstance(n, int) for n in shape) else -1


def _is_none(value: Any) -> bool:
    return value is None
