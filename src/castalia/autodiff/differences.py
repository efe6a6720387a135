"""Derivatives by differences: what the definition of a derivative gives with a finite step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from castalia.autodiff.arguments import Arguments
from castalia.errors import InvalidParameter

__all__ = ["Slope", "finite_difference", "slope"]


def finite_difference(
    fn: Callable[..., Tensor],
    *inputs: Any,
    wrt: int = 0,
    step: float = 1e-6,
    scheme: Literal["central", "forward"] = "central",
) -> Any:
    """Gradient of a function that returns one number, from its values alone.

    "forward" is (f(x + e) - f(x)) / e, with an error that shrinks like e; "central" is
    (f(x + e) - f(x - e)) / 2e, with one that shrinks like e^2. Rounding adds about 1e-16 |f| / e in
    float64. Two calls for each number differentiated by: for small inputs, and for checks.

    See Also
    --------
    check_gradients : compares whole modules, and knows about kinks and rounding.

    Examples
    --------
    >>> finite_difference(lambda x: (x**2).sum(), torch.tensor([1.0, 3.0], dtype=torch.float64))
    tensor([2.0000, 6.0000], dtype=torch.float64)
    """
    if scheme not in ("central", "forward"):
        raise InvalidParameter(
            f"finite_difference: `scheme` must be 'central' or 'forward'; got {scheme!r}."
        )
    if not step > 0:
        raise InvalidParameter(f"finite_difference: `step` must be positive; got {step!r}.")
    asked = Arguments("finite_difference", fn, inputs, wrt)
    leaves = [leaf.detach() for leaf in asked.leaves]
    back = step if scheme == "central" else 0.0

    def quotient(entries: Tensor, i: int) -> Tensor:
        old = entries[i].clone()
        values = []
        for shifted in (old + step, old - back):
            entries[i] = shifted
            values.append(asked.scalar(leaves).detach())
        entries[i] = old
        return (values[0] - values[1]) / (step + back)

    found = [
        torch.stack([quotient(leaf.view(-1), i) for i in range(leaf.numel())]).view(leaf.shape)
        for leaf in leaves
    ]
    return asked.pack(found)


class Slope(NamedTuple):
    """A central difference and how far it can be trusted."""

    value: float
    error: float


def slope(f: Callable[[float], float], middle: float, step: float) -> Slope:
    """Differentiate f at zero, given f(0), with an error that also notices kinks.

    With central differences D(h) and second differences C(h) = (f(h) - 2 f(0) + f(-h)) / h, a
    smooth f has D(h) = D(h/2) and C(h) = 2 C(h/2), both up to h^2. At a kink C does not shrink.
    """
    ahead, behind = f(step), f(-step)
    near_ahead, near_behind = f(step / 2), f(-step / 2)
    wide, near = (ahead - behind) / (2 * step), (near_ahead - near_behind) / step
    bend = (ahead - 2 * middle + behind) / step
    near_bend = 2 * (near_ahead - 2 * middle + near_behind) / step
    return Slope(near, abs(wide - near) + abs(bend - 2 * near_bend))
