"""What curvature says of a point: its condition number, and which kind of critical point it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from castalia.autodiff.arguments import Arguments
from castalia.autodiff.derivatives import Wrt
from castalia.autodiff.functional_calls import differentiating
from castalia.autodiff.spectra.lanczos import lanczos
from castalia.autodiff.spectra.spectrum import HessianOperator, check_counts, extremes
from castalia.errors import InvalidData, ShapeMismatch
from castalia.utils.text import number

__all__ = ["condition_number", "critical_point"]

Kind = Literal["minimum", "maximum", "saddle", "flat", "not critical"]


@differentiating()
def condition_number(
    fn: Callable[..., Tensor] | Tensor,
    *inputs: Any,
    wrt: Wrt = 0,
    max_steps: int = 100,
    rtol: float | None = None,
    allow_unused: bool = False,
    random_state: Any = 0,
) -> float:
    """Largest over smallest non-zero absolute eigenvalue, of a symmetric matrix or of a Hessian.

    For a Hessian of size n this is exact up to rounding if ``max_steps`` is at least the number of
    different eigenvalues (n is always enough), and a lower bound otherwise, which grows with
    ``max_steps``: small eigenvalues inside a large spectrum are out of reach of products alone.
    NaN where every eigenvalue is zero.

    Parameters
    ----------
    fn
        A symmetric matrix, or a function that returns one number.
    inputs, wrt, allow_unused
        As for `gradient`.
    max_steps
        Most Hessian-vector products.
    rtol
        Eigenvalues below ``rtol`` times the largest count as zero; None: the rounding error.
    random_state
        Seed of the first vector.

    Examples
    --------
    >>> condition_number(torch.diag(torch.tensor([1.0, -100.0, 0.0])))
    100.0
    >>> round(condition_number(lambda x: x[0] ** 2 + 50 * x[1] ** 2, torch.ones(2)), 4)
    50.0
    """
    check_counts("condition_number", max_steps=max_steps)
    if isinstance(fn, Tensor):
        sizes = torch.linalg.eigvalsh(_symmetric(fn)).abs()
        return _spread(sizes, len(sizes) * torch.finfo(fn.dtype).eps if rtol is None else rtol)
    asked = Arguments("condition_number", fn, inputs, wrt, twice=True)
    operator = HessianOperator(asked, random_state, allow_unused)
    start = operator(operator.draw())  # inside the range of H: zero eigenvalues stay out
    if not start.any():
        return _spread(start, 0.0)
    found = lanczos(operator, start, max_steps)
    # ||H q|| over the basis: its extremes are inside those of H, unlike the Ritz values near zero
    sizes = torch.linalg.svdvals(found.matrix())
    eps = torch.finfo(asked.leaves[0].dtype).eps
    return _spread(sizes, 10 * operator.n**0.5 * eps if rtol is None else rtol)


def _spread(sizes: Tensor, rtol: float) -> float:
    """Return the ratio of extremes, leaving out zeros; NaN if there is nothing else."""
    largest = sizes.max().item()
    kept = sizes[sizes > rtol * largest]
    return largest / kept.min().item() if len(kept) else float("nan")


def _symmetric(matrix: Tensor) -> Tensor:
    owner = "condition_number: the matrix must be"
    if matrix.dim() != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.numel():
        raise ShapeMismatch(f"{owner} square; got shape {tuple(matrix.shape)}.")
    if not matrix.is_floating_point():
        raise InvalidData(f"{owner} of a floating point type; got {matrix.dtype}. Use `.double()`.")
    if not torch.allclose(matrix, matrix.T, rtol=1e-4, atol=1e-6 * matrix.abs().max().item()):
        gap = number((matrix - matrix.T).abs().max().item())
        raise InvalidData(
            f"{owner} symmetric, as a Hessian is; got entries that differ by up to {gap} from "
            "their mirror images. For singular values use torch.linalg.cond."
        )
    return matrix.detach()


@differentiating()
def critical_point(
    fn: Callable[..., Tensor],
    *inputs: Any,
    wrt: Wrt = 0,
    tol: float = 1e-5,
    max_steps: int = 200,
    random_state: Any = 0,
) -> Kind:
    """Say what a point is to a function: by its gradient, then by the signs of its curvature.

    "minimum" if every eigenvalue of the Hessian is positive, "maximum" if every one is negative,
    "saddle" with both signs, "flat" where some are zero and the rest share a sign: then second
    derivatives do not decide.

    Parameters
    ----------
    fn, inputs, wrt
        As for `gradient`; the point is what is differentiated by.
    tol
        The gradient is zero if no entry exceeds ``tol``; an eigenvalue is zero if it is below
        ``tol`` times the largest, or ``tol`` itself.
    max_steps, random_state
        As for `hessian_spectrum`.

    Examples
    --------
    >>> critical_point(lambda x: x[0] ** 2 - x[1] ** 2, torch.zeros(2))
    'saddle'
    >>> critical_point(lambda x: x[0] ** 2 - x[1] ** 2, torch.ones(2))
    'not critical'
    """
    asked = Arguments("critical_point", fn, inputs, wrt, twice=True)
    slopes = asked.reverse(asked.scalar(asked.leaves), allow_unused=True)
    if max(g.abs().max().item() for g in slopes) > tol:
        return "not critical"
    operator = HessianOperator(asked, random_state, allow_unused=True)
    ends = extremes(operator, 1, "both", tol, max_steps, vectors=False)
    low, high = ends.smallest[0].item(), ends.largest[0].item()
    zero = tol * max(1.0, abs(low), abs(high))
    if low > zero:
        return "minimum"
    if high < -zero:
        return "maximum"
    return "saddle" if low < -zero and high > zero else "flat"
