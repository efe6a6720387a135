"""Which kind of critical point a point is, by its gradient and the signs of the curvature."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

from torch import Tensor

from castalia.autodiff.arguments import Arguments
from castalia.autodiff.derivatives import Wrt
from castalia.autodiff.functional_calls import differentiating
from castalia.autodiff.spectra.spectrum import HessianOperator, extremes
from castalia.errors import CastaliaWarning

__all__ = ["critical_point"]

Kind = Literal["minimum", "maximum", "saddle", "flat", "not critical"]


@differentiating()
def critical_point(
    fn: Callable[..., Tensor],
    *inputs: Any,
    wrt: Wrt = 0,
    tol: float = 1e-5,
    max_steps: int = 400,
    random_state: Any = 0,
) -> Kind:
    """Say what a point is to a function: by its gradient, then by the signs of its curvature.

    "minimum" if every eigenvalue of the Hessian is positive, "maximum" if every one is negative,
    "saddle" with both signs, "flat" where some are zero and the rest share a sign: then second
    derivatives do not decide. Warns where ``max_steps`` did not suffice to know all signs.

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
    >>> import torch
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
    if low < -zero and high > zero:  # both signs are there, whatever else is
        return "saddle"
    if not ends.converged:
        warnings.warn(
            f"critical_point: the signs of all eigenvalues are not certain after {ends.steps} "
            "products. Raise `max_steps` or `tol`.",
            CastaliaWarning,
            stacklevel=3,
        )
    return "minimum" if low > zero else "maximum" if high < -zero else "flat"
