"""Newton's method for convex problems with few parameters, sparing with Hessians.

theta <- theta - t H^-1 g, t halved until the value falls; H is kept while the steps it gives
shrink quickly. The Newton decrement sqrt(g^T H^-1 g) says how far there is to go: the value lies
about half its square above the minimum.
Reference: 2004, Boyd, Vandenberghe, Convex optimization, section 9.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

__all__ = ["Factor", "Minimum", "Search", "newton"]

KEEP = 0.25  # a Hessian is kept while each step cuts the squared decrement to less than this


class Smooth(Protocol):
    """A convex function with a Hessian."""

    def __call__(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return value and gradient."""

    def hessian(self, theta: Tensor) -> Tensor:
        """Return the matrix of second derivatives of the flattened parameters."""


class Factor:
    """A positive semi-definite matrix, factored once to solve with.

    Rows and columns are scaled to a unit diagonal first, so that features of huge and of tiny scale
    do no harm; where it is singular, the flat directions are left out.
    """

    def __init__(self, H: Tensor) -> None:
        size = H.diagonal().clamp_min(0).sqrt()
        self.scale = torch.where(size > 0, size, torch.ones_like(size))
        scaled = H / self.scale[:, None] / self.scale
        self.flat: Tensor | None = None
        L, failed = torch.linalg.cholesky_ex(scaled)
        edge = torch.finfo(H.dtype).eps * len(H) * 100
        if not failed and L.diagonal().min().square() > edge:
            self.apply: Callable[[Tensor], Tensor] = lambda b: torch.cholesky_solve(b, L)
            return
        values, vectors = torch.linalg.eigh(scaled)
        kept = values > edge * values[-1]
        basis = vectors[:, kept] / values[kept].sqrt()
        self.apply = lambda b: basis @ (basis.T @ b)
        self.flat = torch.linalg.qr(vectors[:, ~kept] / self.scale[:, None]).Q

    def solve(self, b: Tensor) -> Tensor:
        """Return H^-1 b for a vector."""
        return self.apply((b / self.scale)[:, None])[:, 0] / self.scale

    def drop_flat(self, theta: Tensor) -> Tensor:
        """Take out of a vector what changes nothing: of all minima, the shortest is left."""
        return theta if self.flat is None else theta - self.flat @ (self.flat.T @ theta)


class Minimum(NamedTuple):
    """Where the search ended."""

    theta: Tensor
    steps: int
    decrement: float


@dataclass(frozen=True)
class Search:
    """When to stop, and whether a Hessian may serve for several steps."""

    tol: float
    steps: int
    lazy: bool = False


def newton(problem: Smooth, theta: Tensor, search: Search, factor: Factor | None = None) -> Minimum:
    """Minimise from ``theta``, with ``factor`` as a first guess at the Hessian.

    Parameters
    ----------
    problem
        Value, gradient and Hessian.
    theta
        Where to start.
    search
        When to stop.
    factor
        The factored Hessian of a similar problem, for a lazy search.
    """
    value, gradient = problem(theta)
    tol = max(search.tol, torch.finfo(theta.dtype).eps ** 0.5)
    before = float("inf")
    for step in range(search.steps):  # noqa: B007
        if factor is None or not search.lazy:
            factor, before = Factor(problem.hessian(theta)), float("inf")
        move = -factor.solve(gradient.ravel())
        squared = float(-(gradient.ravel() @ move))
        if squared > KEEP * before:  # this Hessian is too old
            factor = None
            continue
        if squared <= tol**2:
            theta = theta + move.view_as(theta)
            break
        theta, value, gradient = line_search(problem, theta, move.view_as(theta), value, squared)
        before = squared
    if factor is not None:
        theta = factor.drop_flat(theta.ravel()).view_as(theta)
    return Minimum(theta, step + 1, max(squared, 0.0) ** 0.5)


def line_search(
    problem: Smooth, theta: Tensor, move: Tensor, value: Tensor, squared: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Step along ``move``, half as far while the value does not fall enough."""
    length = 1.0
    hidden = torch.finfo(theta.dtype).eps ** (2 / 3)  # below it, rounding hides that it falls
    while True:
        new, gradient = problem(theta + length * move)
        if new <= value - 1e-4 * length * squared or squared < hidden or length < 1e-10:
            return theta + length * move, new, gradient
        length /= 2
