"""The condition number of a symmetric matrix or a Hessian, as an interval that holds it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from castalia.autodiff.arguments import Arguments
from castalia.autodiff.derivatives import Wrt
from castalia.autodiff.functional_calls import differentiating
from castalia.autodiff.spectra.extreme_eigenvalues import CHANCE
from castalia.autodiff.spectra.lanczos import Krylov, lanczos
from castalia.autodiff.spectra.spectrum import HessianOperator, check_counts
from castalia.errors import InvalidData, ShapeMismatch
from castalia.utils.text import number

__all__ = ["ConditionNumber", "condition_number"]

HALVINGS = 40  # of the interval in which a bound is searched


class ConditionNumber(float):
    """A condition number and the interval that is known to hold it.

    As a number it is the estimate, and infinite where the smallest absolute eigenvalue may be zero.

    Attributes
    ----------
    low, high
        The true one is at least and at most this.
    """

    low: float
    high: float

    def __new__(cls, value: float, low: float, high: float) -> ConditionNumber:
        """Keep the interval beside the estimate."""
        made = super().__new__(cls, value)
        made.low, made.high = low, high
        return made

    def __getnewargs__(self) -> tuple[float, float, float]:  # type: ignore[override]
        return float(self), self.low, self.high

    def __repr__(self) -> str:
        low, high = number(self.low), number(self.high)
        return f"ConditionNumber({low})" if low == high else f"ConditionNumber({low} to {high})"


@differentiating()
def condition_number(
    fn: Callable[..., Tensor] | Tensor,
    *inputs: Any,
    wrt: Wrt = 0,
    max_steps: int = 400,
    rtol: float | None = None,
    allow_unused: bool = False,
    random_state: Any = 0,
) -> ConditionNumber:
    """Largest over smallest absolute eigenvalue, of a symmetric matrix or of a Hessian.

    A Hessian of up to ``max_steps`` inputs is computed whole. Of a larger one the products know
    the ends only: the interval is then finite where all eigenvalues have one sign and
    ``max_steps`` suffice to keep the smallest from zero, and ends at infinity otherwise.

    Parameters
    ----------
    fn
        A symmetric matrix, or a function that returns one number.
    inputs, wrt, allow_unused
        As for `gradient`.
    max_steps
        Most Hessian-vector products.
    rtol
        Eigenvalues are known up to ``rtol`` times the largest, so smaller ones may be zero; None:
        the rounding error.
    random_state
        Seed of the first vector.

    Returns
    -------
    ConditionNumber
        A float with the interval, ``low`` and ``high``, that holds the true one.

    Examples
    --------
    >>> condition_number(torch.diag(torch.tensor([1.0, -100.0])))
    ConditionNumber(100)
    >>> condition_number(torch.diag(torch.tensor([1.0, -100.0, 0.0]))).high
    inf
    >>> round(condition_number(lambda x: x[0] ** 2 + 50 * x[1] ** 2, torch.ones(2)), 4)
    50.0
    """
    check_counts("condition_number", max_steps=max_steps)
    if isinstance(fn, Tensor):
        matrix = _symmetric(fn)
        return _of_matrix(matrix, len(matrix) * torch.finfo(fn.dtype).eps if rtol is None else rtol)
    asked = Arguments("condition_number", fn, inputs, wrt, twice=True)
    operator = HessianOperator(asked, random_state, allow_unused)
    if rtol is None:
        rtol = 10 * operator.n**0.5 * torch.finfo(asked.leaves[0].dtype).eps
    if operator.n <= max_steps:
        return _of_matrix(torch.stack([operator(row) for row in operator.unit_vectors()]), rtol)
    return _of_products(lanczos(operator, operator.draw(), max_steps), rtol)


def _of_matrix(matrix: Tensor, rtol: float) -> ConditionNumber:
    """All eigenvalues, each known up to ``rtol`` times the largest."""
    sizes = torch.linalg.eigvalsh(matrix.cpu().double()).abs()
    return _interval(sizes.max().item(), sizes.max().item(), sizes.min().item(), None, rtol)


def _of_products(found: Krylov, rtol: float) -> ConditionNumber:
    """The smallest and largest ||H q|| over a basis, and what the run excludes beyond its ends."""
    sizes = torch.linalg.svdvals(found.matrix())  # inside the absolute eigenvalues of H
    values = found.ritz()[0]
    sign = 1.0 if values[0] > 0 else -1.0
    ends = (sign * values).sort().values
    inner, outer = ends[0].item(), ends[-1].item()
    above = _furthest(found, sign, outer, 2 * outer) if inner > 0 else math.inf
    below = _furthest(found, sign, inner, 0.0) if inner > 0 else 0.0
    return _interval(sizes.max().item(), above, sizes.min().item(), below, rtol)


def _furthest(found: Krylov, sign: float, near: float, far: float) -> float:
    """Return the bound nearest to the Ritz values beyond which no eigenvalue lies."""
    if not found.excludes(sign * far, CHANCE):
        return far if far < near else math.inf
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        near, far = (near, middle) if found.excludes(sign * middle, CHANCE) else (middle, far)
    return far


def _interval(
    largest: float, above: float, smallest: float, below: float | None, rtol: float
) -> ConditionNumber:
    """Divide: the largest is between its value and ``above``, the smallest down to ``below``."""
    error = rtol * largest
    least = (smallest if below is None else below) - error
    low = max(largest / (smallest + error), 1.0) if largest else 1.0
    high = (above + error) / least if least > 0 else math.inf
    return ConditionNumber(largest / smallest if high < math.inf else math.inf, low, high)


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
