"""Bridge regression: least squares with any power of the weights as penalty, or as constraint."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch

from castalia.base import Interval
from castalia.errors import InvalidParameter, TrainingWarning
from castalia.models.linear.linear_model import LinearRegressor
from castalia.models.linear.solvers.design_matrix import Design
from castalia.models.linear.solvers.shrink import project, shrink
from castalia.utils.text import number, plural

__all__ = ["Bridge"]


@dataclass(kw_only=True, eq=False, repr=False)
class Bridge(LinearRegressor):
    """Least squares that pays for the q-th power of every weight.

    Minimises (1/N) sum_n (y_n - w.x_n - b)^2 + (alpha/2) sum_j |w_j|^q; or, with a ``constraint``
    s, the first term alone subject to sum_j |w_j|^q <= s, which is the same for the s that the
    penalty ends with. q = 2 is ridge, q = 1 the lasso, q < 1 sparser still, q > 2 evens weights
    out.

    Parameters
    ----------
    q
        Power, above 0. Below 1 the problem has several local minima.
    alpha
        Weight of the penalty; larger shrinks more. Not used with a ``constraint``.
    constraint
        Bound s on sum_j |w_j|^q, for q of at least 1; None for the penalty.
    tol
        Stop when a step changes the (scaled) weights by less than this share of the largest.
    steps
        Most proximal gradient steps.
    fit_intercept
        Whether there is a constant term; it is not penalised.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (T, D)
        Weights.
    intercept_ : float or ndarray of shape (T,)
        Constant term.
    norm_ : float or ndarray of shape (T,)
        sum_j |w_j|^q of the solution.
    n_iter_ : int
        Steps taken.

    Shapes
    ------
    X (N, D): an array, a frame, a tensor on any device, a scipy sparse matrix; y (N,) or (N, T).

    Notes
    -----
    One pass over the data forms X^T X, O(N D^2); every step costs O(D^2). For q of at least 1 the
    problem is convex and accelerated steps with restarts reach its minimum. For q < 1 plain steps
    go down from the ridge solution to a local minimum, exact zeros included; another one may be
    lower. ``Lasso(alpha=a)`` is ``Bridge(q=1, alpha=4 * a)`` and ``Ridge(alpha=a, loss="mean")`` is
    ``Bridge(q=2, alpha=2 * a)``; both are faster.

    References
    ----------
    1993, Frank, Friedman, A statistical view of some chemometrics regression tools,
    Technometrics 35.
    2009, Beck, Teboulle, A fast iterative shrinkage-thresholding algorithm for linear inverse
    problems, SIAM Journal on Imaging Sciences 2.
    2015, O'Donoghue, Candès, Adaptive restart for accelerated gradient schemes, arXiv 1204.3982.

    See Also
    --------
    castalia.Ridge : q = 2.
    castalia.Lasso : q = 1.

    Examples
    --------
    >>> X, y = [[1.0], [-1.0]], [2.0, -2.0]
    >>> Bridge(q=1, alpha=2.0).fit(X, y).coef_.round(6).tolist()
    [1.5]
    >>> Bridge(q=1, constraint=1.5).fit(X, y).coef_.round(6).tolist()
    [1.5]
    """

    q: Annotated[float, Interval(0, closed="neither")] = 1.5
    alpha: Annotated[float, Interval(0)] = 1.0
    constraint: Annotated[float | None, Interval(0, closed="neither", optional=True)] = None
    tol: Annotated[float, Interval(0)] = 1e-10
    steps: Annotated[int, Interval(1, whole=True)] = 20_000

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        if self.constraint is not None and self.q < 1:
            raise InvalidParameter(
                f"Bridge: `constraint` must come with a `q` of at least 1; got q={self.q}. Use "
                "`alpha`, or q=1."
            )
        design = self._design(X, y, sample_weight)
        gram, cross, _ = (part.cpu().numpy() for part in design.moments())
        length = np.sqrt(np.maximum(gram.diagonal(), 0))
        length[length == 0] = 1
        scaled, pull = gram / np.outer(length, length), cross / length[:, None]
        nearest = self._nearest(design, length)
        start = _ridge(scaled, pull) if self.q < 1 else np.zeros_like(pull)
        u, self.n_iter_ = _minimise(
            scaled, pull, nearest, start, self.tol, self.steps, fast=self.q >= 1
        )
        if self.n_iter_ == self.steps:
            self._warn()
        coef = (u / length[:, None]).T  # (T, D)
        norm = (np.abs(coef) ** self.q).sum(axis=1)
        self.norm_ = float(norm[0]) if y.ndim == 1 else norm
        self._keep(torch.from_numpy(coef), design, y, str(X.dtype).removeprefix("torch."))

    def _nearest(self, design: Design, length: np.ndarray) -> Callable[..., np.ndarray]:
        """Return the step after the gradient's: shrinking, or projecting on the constraint.

        u_j = |a_j| w_j are the weights of columns scaled to one length; 1/2 |b - A w|^2 is N/2
        times the mean loss, so the penalty is N alpha / 4 times sum_j |u_j / |a_j||^q.
        """
        weight = length**-self.q
        if self.constraint is None:
            factor = design.total * self.alpha / 4
            return lambda v, step: shrink(v, step * factor * weight[:, None], self.q)
        bound = self.constraint
        return lambda v, step: np.stack(
            [project(column, weight, self.q, bound) for column in v.T], axis=1
        )

    def _warn(self) -> None:
        warnings.warn(
            f"Bridge: the steps must become smaller than {number(self.tol)}; they did not within "
            f"{plural(self.steps, 'step')}. Raise `steps`, `alpha` or `tol`.",
            TrainingWarning,
            stacklevel=4,
        )


def _ridge(gram: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """Return a start that every column takes part in, slightly regularised."""
    return np.linalg.solve(gram + 1e-6 * np.eye(len(gram)), pull)


def _minimise(
    gram: np.ndarray,
    pull: np.ndarray,
    nearest: Callable[..., np.ndarray],
    start: np.ndarray,
    tol: float,
    steps: int,
    fast: bool,
) -> tuple[np.ndarray, int]:
    """Minimise 1/2 u.Gu - u.c + penalty by proximal gradient steps of length 1 / lambda_max."""
    step = 1 / max(float(np.linalg.eigvalsh(gram)[-1]), 1e-300)
    u = ahead = start
    momentum = 1.0
    for taken in range(1, steps + 1):
        new = nearest(ahead - step * (gram @ ahead - pull), step)
        change = new - u
        if np.abs(new - ahead).max() <= tol * np.abs(new).max():
            return new, taken
        uphill = ((ahead - new) * change).sum() > 0
        momentum, before = (1.0, 1.0) if uphill or not fast else _next(momentum)
        ahead = new + (before - 1) / momentum * change
        u = new
    return u, steps


def _next(momentum: float) -> tuple[float, float]:
    """Return the next of Nesterov's numbers, and this one."""
    return (1 + (1 + 4 * momentum**2) ** 0.5) / 2, momentum
