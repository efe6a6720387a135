"""Values and adjoints: tensors, or tuples of them, and the product of one operation's Jacobian."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["add", "any_nan", "detached", "differentiable", "leaf_of", "products"]


def leaf_of(value: Any) -> Any:
    """Cut a value from what computed it, ready to be differentiated by."""
    if isinstance(value, Tensor):
        # what was made under inference_mode cannot be differentiated by, a copy can
        leaf = value.clone().detach() if value.is_inference() else value.detach()
        smooth = leaf.dtype.is_floating_point or leaf.dtype.is_complex
        return leaf.requires_grad_() if smooth else leaf
    return tuple(leaf_of(part) for part in value)


def detached(value: Any) -> Any:
    """Give out a value without its history."""
    if value is None or isinstance(value, Tensor):
        return None if value is None else value.detach()
    return tuple(map(detached, value))


def add(a: Any, b: Any) -> Any:
    """Sum two contributions to an adjoint; None is no contribution."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return tuple(map(add, a, b))
    return a + b


def any_nan(value: Any) -> bool:
    """Whether a value holds a NaN."""
    if isinstance(value, Iterable) and not isinstance(value, Tensor):
        return any(any_nan(part) for part in value)
    return isinstance(value, Tensor) and bool(torch.isnan(value).any())


def products(output: Any, leaves: list[Tensor], adjoint: Any) -> Sequence[Tensor | None]:
    """Vector-Jacobian products of one operation by each of the leaves it read."""
    if isinstance(output, tuple):
        pairs = zip(output, adjoint, strict=True)
        pairs = [(o, a) for o, a in pairs if differentiable(o) and a is not None]  # type: ignore
        if not pairs:
            return [None] * len(leaves)
        output, adjoint = [o for o, _ in pairs], [a for _, a in pairs]
    elif _is_one_step(output.grad_fn):
        return _one_step(output.grad_fn, leaves, adjoint)
    return torch.autograd.grad(output, leaves, adjoint, retain_graph=True, allow_unused=True)


def _is_one_step(rule: Any) -> bool:
    """Whether a backward function is torch's own and leads straight to leaves."""
    return callable(rule) and all(
        e is None or hasattr(e, "variable") for e, _ in rule.next_functions
    )


@torch.no_grad()
def _one_step(rule: Any, leaves: list[Tensor], adjoint: Tensor) -> Sequence[Tensor | None]:
    """Call the one backward function that an operation has, without autograd's engine."""
    parts = rule(adjoint)
    parts = parts if isinstance(parts, tuple) else (parts,)
    by: dict[int, Tensor] = {}
    for (edge, _), part in zip(rule.next_functions, parts, strict=True):
        if edge is None or part is None:
            continue
        leaf = edge.variable
        if part.shape != leaf.shape:  # the leaf was broadcast
            part = part.sum_to_size(leaf.shape)
        by[id(leaf)] = add(by.get(id(leaf)), part.to(leaf.dtype))
    return [by.get(id(leaf)) for leaf in leaves]


def differentiable(value: Any) -> bool:
    """Whether autograd differentiates by a value."""
    return isinstance(value, Tensor) and value.requires_grad
