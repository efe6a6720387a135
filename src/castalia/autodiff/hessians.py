"""Second derivatives of functions and of modules: Hessian-vector products and the Hessian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from castalia.autodiff.arguments import Arguments, duals, filled
from castalia.autodiff.derivatives import Wrt, rows_of
from castalia.autodiff.functional_calls import differentiating

__all__ = ["hessian", "hessian_product", "hvp"]


@differentiating()
def hvp(
    fn: Callable[..., Tensor], *inputs: Any, v: Any, wrt: Wrt = 0, allow_unused: bool = False
) -> Any:
    """Hessian-vector product H v of a function that returns one number, without the Hessian.

    Forward mode over reverse mode, at the cost of about two gradients; where an operator lacks
    forward mode, reverse mode twice.

    Parameters
    ----------
    fn, inputs, wrt, allow_unused
        As for `gradient`.
    v
        The direction, shaped like what is differentiated by (a dict for a module).

    Examples
    --------
    >>> hvp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), v=torch.tensor([1.0, 1.0]))
    tensor([ 6., 12.])
    """
    asked = Arguments("hvp", fn, inputs, wrt, twice=True)
    direction = asked.unpack(v)
    try:
        found = _forward_over_reverse(asked, direction, allow_unused)
    except (RuntimeError, NotImplementedError):
        found = hessian_product(asked, allow_unused)(direction)
    return asked.pack(found)


def _forward_over_reverse(
    asked: Arguments, direction: Sequence[Tensor], allow_unused: bool
) -> list[Tensor]:
    with forward_ad.dual_level():
        point = duals(asked.leaves, direction)
        value = asked.scalar(point)
        grads: Sequence[Tensor | None] = [None] * len(point)
        if value.requires_grad:
            grads = torch.autograd.grad(value, point, allow_unused=True)
        asked.complete(grads, allow_unused)
        tangents = [None if g is None else forward_ad.unpack_dual(g).tangent for g in grads]
        return filled(tangents, asked.leaves)


def hessian_product(
    asked: Arguments, allow_unused: bool = False
) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """Return v -> H v by reverse mode twice: the gradient's graph is built once and kept.

    For many products at one point this is about twice as fast as forward over reverse.
    """
    value = asked.scalar(asked.leaves)
    grads = asked.reverse(value, create_graph=True, allow_unused=allow_unused)
    curved = [i for i, g in enumerate(grads) if g.requires_grad]

    def product(v: Sequence[Tensor]) -> list[Tensor]:
        if not curved:  # a linear function
            return [torch.zeros_like(leaf) for leaf in asked.leaves]
        found = torch.autograd.grad(
            [grads[i] for i in curved],
            asked.leaves,
            [v[i] for i in curved],
            retain_graph=True,
            allow_unused=True,
        )
        return filled(found, asked.leaves)

    return product


@differentiating()
def hessian(
    fn: Callable[..., Tensor], *inputs: Any, wrt: Wrt = 0, allow_unused: bool = False
) -> Any:
    """All second derivatives of a function.

    Parameters
    ----------
    fn, inputs, wrt, allow_unused
        As for `gradient`; ``fn`` may return a tensor of any shape.

    Returns
    -------
    Tensor, dict or tuple
        Shape output.shape + input.shape + input.shape. For a module a dict of dicts,
        ``h[row][column]``, by parameter name; for several inputs a tuple of tuples.

    Notes
    -----
    Holds n^2 numbers for n inputs: for more than a few thousand use `hvp` or `hessian_spectrum`.

    Examples
    --------
    >>> hessian(lambda x: x[0] ** 2 * x[1], torch.tensor([1.0, 2.0]))
    tensor([[4., 2.],
            [2., 0.]])
    """
    asked = Arguments("hessian", fn, inputs, wrt, twice=True)
    value = asked.output(asked.leaves)
    asked.reverse(value.sum(), create_graph=True, allow_unused=allow_unused)  # is all of it used?
    blocks = [_second(asked, number) for number in value.reshape(-1)]

    def block(i: int, j: int) -> Tensor:
        shape = value.shape + asked.leaves[i].shape + asked.leaves[j].shape
        return torch.stack([b[i][j] for b in blocks]).reshape(shape)

    each = range(len(asked.leaves))
    return asked.pack([asked.pack([block(i, j) for j in each]) for i in each])


def _second(asked: Arguments, number: Tensor) -> list[list[Tensor]]:
    """Return the blocks d^2 number / d leaf_i d leaf_j, flat or not."""
    grads = asked.reverse(number, create_graph=True, allow_unused=True)
    empty = [[g.new_zeros(g.numel(), other.numel()) for other in asked.leaves] for g in grads]
    return [
        [
            zero if row is None else row
            for row, zero in zip(rows_of(g, asked.leaves), zeros, strict=True)
        ]
        for g, zeros in zip(grads, empty, strict=True)
    ]
