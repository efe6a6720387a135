"""First derivatives of functions and of modules: gradient, Jacobian and their products.

Every tool is called ``tool(fn, *inputs, wrt=0)``; see ``castalia.autodiff.arguments``. They are
thin: reverse mode is one call of ``torch.autograd.grad``, forward mode one dual level. That layer,
and not ``torch.func`` on top of it, because it separates an unused input (None) from a derivative
of zero, and takes any ``autograd.Function``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import forward_ad

from castalia.autodiff.arguments import Arguments, duals
from castalia.autodiff.functional_calls import differentiating
from castalia.errors import InvalidParameter, ShapeMismatch

__all__ = ["gradient", "jacobian", "jvp", "rows_of", "vjp"]

Wrt = int | Sequence[int]
ROWS_IN_MEMORY = 2**24  # numbers in one batch of rows of a Jacobian


@differentiating()
def gradient(
    fn: Callable[..., Tensor], *inputs: Any, wrt: Wrt = 0, allow_unused: bool = False
) -> Any:
    """Gradient of a function that returns one number.

    Parameters
    ----------
    fn
        Called as ``fn(*inputs)``.
    inputs
        Tensors, floats, mappings of tensors, modules; whatever ``fn`` takes.
    wrt
        Number of the input to differentiate by, or a tuple of numbers. A module stands for its
        trainable parameters.
    allow_unused
        Give zeros for what the output does not depend on, instead of an error.

    Returns
    -------
    Tensor, dict or tuple
        Shaped like the input: a tensor for a tensor, a dict by name for a module or a mapping, a
        tuple where ``wrt`` is one.

    Examples
    --------
    >>> gradient(lambda x: (x**2).sum(), torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    >>> net, x = torch.nn.Linear(2, 1), torch.ones(3, 2)
    >>> sorted(gradient(lambda net, x: net(x).sum(), net, x))
    ['bias', 'weight']
    """
    asked = Arguments("gradient", fn, inputs, wrt)
    return asked.pack(asked.reverse(asked.scalar(asked.leaves), allow_unused=allow_unused))


@differentiating()
def vjp(
    fn: Callable[..., Tensor],
    *inputs: Any,
    v: Tensor | None = None,
    wrt: Wrt = 0,
    allow_unused: bool = False,
) -> Any:
    """Vector-Jacobian product v^T J: reverse mode, at the cost of a gradient.

    Parameters
    ----------
    fn, inputs, wrt, allow_unused
        As for `gradient`; ``fn`` may return a tensor of any shape.
    v
        The seed, shaped like the output. May be left out where the output is one number.

    Examples
    --------
    >>> vjp(lambda x: x**2, torch.tensor([1.0, 2.0]), v=torch.tensor([1.0, 10.0]))
    tensor([ 2., 40.])
    """
    asked = Arguments("vjp", fn, inputs, wrt)
    value = asked.output(asked.leaves)
    if v is None and value.numel() != 1:
        raise ShapeMismatch(
            f"vjp: `v` must be given where `fn` returns more than one number; got output shape "
            f"{tuple(value.shape)} and no seed. Pass v=torch.ones{tuple(value.shape)} for the "
            "gradient of the sum."
        )
    seed = torch.ones_like(value) if v is None else torch.as_tensor(v).to(value)
    if seed.shape != value.shape:
        raise ShapeMismatch(
            f"vjp: `v` must have the shape {tuple(value.shape)} of the output; got "
            f"{tuple(seed.shape)}."
        )
    return asked.pack(asked.reverse(value, seed, allow_unused=allow_unused))


@differentiating()
def jvp(
    fn: Callable[..., Tensor], *inputs: Any, v: Any, wrt: Wrt = 0, allow_unused: bool = False
) -> Tensor:
    """Jacobian-vector product J v: the derivative of the output along a direction.

    Forward mode, without a graph; where an operator lacks it, reverse mode twice.

    Parameters
    ----------
    fn, inputs, wrt, allow_unused
        As for `gradient`; ``fn`` may return a tensor of any shape.
    v
        The direction, shaped like what is differentiated by (a dict for a module).

    Examples
    --------
    >>> jvp(lambda x: x**2, torch.tensor([1.0, 2.0]), v=torch.tensor([1.0, 0.0]))
    tensor([2., 0.])
    """
    asked = Arguments("jvp", fn, inputs, wrt)
    direction = asked.unpack(v)
    try:
        value, tangent = _forward(asked, direction)
    except (RuntimeError, NotImplementedError):
        value, tangent = _reverse_twice(asked, direction)
    if tangent is None:
        asked.complete([None] * len(asked.leaves), allow_unused)
        return torch.zeros_like(value)
    return tangent


def _forward(asked: Arguments, direction: Sequence[Tensor]) -> tuple[Tensor, Tensor | None]:
    with forward_ad.dual_level():
        point = duals([leaf.detach() for leaf in asked.leaves], direction)
        value, tangent = forward_ad.unpack_dual(asked.output(point))
        return value, tangent


def _reverse_twice(asked: Arguments, direction: Sequence[Tensor]) -> tuple[Tensor, Tensor | None]:
    """J v as the derivative of u -> J^T u, which is linear in u, along v."""
    value = asked.output(asked.leaves)
    if not value.requires_grad:
        return value, None
    u = torch.zeros_like(value, requires_grad=True)
    pulled = torch.autograd.grad(value, asked.leaves, u, create_graph=True, allow_unused=True)
    pairs = [(p, d) for p, d in zip(pulled, direction, strict=True) if p is not None]
    (found,) = torch.autograd.grad([p for p, _ in pairs], u, [d for _, d in pairs])
    return value.detach(), found


@differentiating()
def jacobian(
    fn: Callable[..., Tensor],
    *inputs: Any,
    wrt: Wrt = 0,
    layout: Literal["torch", "numerator", "denominator"] = "torch",
    allow_unused: bool = False,
) -> Any:
    """All first derivatives of a function that returns a tensor.

    Parameters
    ----------
    fn, inputs, wrt, allow_unused
        As for `gradient`; ``fn`` may return a tensor of any shape.
    layout
        "torch": shape output.shape + input.shape. "numerator": always a matrix, outputs down and
        inputs across: a column for vector by scalar, a row for scalar by vector, (m, n) for vector
        by vector, the transposed shape for scalar by matrix. "denominator" is its transpose, in
        which a gradient has the shape of its input.

    Notes
    -----
    Costs one forward pass and a batch of backward passes, one for each number of the output.

    Examples
    --------
    >>> jacobian(lambda x: x[0] * x, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [2., 1.]])
    """
    if layout not in ("torch", "numerator", "denominator"):
        raise InvalidParameter(
            f"jacobian: `layout` must be 'torch', 'numerator' or 'denominator'; got {layout!r}."
        )
    asked = Arguments("jacobian", fn, inputs, wrt)
    value = asked.output(asked.leaves)
    rows = asked.complete(rows_of(value, asked.leaves), allow_unused)
    found = [
        row.reshape(value.shape + leaf.shape) for row, leaf in zip(rows, asked.leaves, strict=True)
    ]
    if layout != "torch":
        found = [
            _as_matrix(j, value.dim(), leaf.dim(), layout)
            for j, leaf in zip(found, asked.leaves, strict=True)
        ]
    return asked.pack(found)


def _as_matrix(j: Tensor, out: int, into: int, layout: str) -> Tensor:
    """Write derivatives by the convention of matrix calculus; ``out`` and ``into`` are orders."""
    if out + into > 2:
        raise ShapeMismatch(
            f"jacobian: layout {layout!r} must have a matrix to write; got an output of order "
            f"{out} by an input of order {into}. Use layout='torch'."
        )
    if (out, into) == (0, 2):
        matrix = j.T
    elif out == 2:
        matrix = j
    else:
        matrix = j.reshape(j.shape[0] if out else 1, -1)
    return matrix if layout == "numerator" else matrix.T


def rows_of(value: Tensor, leaves: Sequence[Tensor]) -> list[Tensor | None]:
    """Return (outputs, *leaf) derivatives for each leaf; None where there is no path."""
    flat = value.reshape(-1)
    if not flat.requires_grad or flat.numel() == 0:
        return [None] * len(leaves)
    seeds = torch.eye(flat.numel(), dtype=flat.dtype, device=flat.device)
    size = max(1, ROWS_IN_MEMORY // max(1, sum(leaf.numel() for leaf in leaves)))
    parts = [_backward_batch(flat, leaves, chunk) for chunk in seeds.split(size)]
    return [None if group[0] is None else torch.cat(group) for group in zip(*parts, strict=True)]


def _backward_batch(flat: Tensor, leaves: Sequence[Tensor], seeds: Tensor) -> Sequence[Any]:
    def back(seed: Tensor, batched: bool) -> Sequence[Any]:
        return torch.autograd.grad(
            flat, leaves, seed, retain_graph=True, allow_unused=True, is_grads_batched=batched
        )

    try:
        with warnings.catch_warnings():  # an operator without a batching rule is only slower
            warnings.simplefilter("ignore")
            return back(seeds, True)
    except RuntimeError:  # a backward that branches on its values
        singles = zip(*(back(seed, False) for seed in seeds), strict=True)
        return [None if group[0] is None else torch.stack(group) for group in singles]
