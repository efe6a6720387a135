"""How the likelihoods of this family are minimised: by Newton's method or by L-BFGS."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

from castalia.models.linear.solvers.logistic_likelihood import Likelihood
from castalia.models.linear.solvers.newton import Factor, Minimum, Search, newton

__all__ = ["Found", "lbfgs", "lbfgs_lasso", "newton_by_parts"]

LIMIT = 1000  # steps, after which something is wrong
PART = 8  # a part is every eighth row
ENOUGH = 20  # rows a parameter, from which a part is like the whole
ROUGH = 0.1  # decrement that will do for a part


class Found(NamedTuple):
    """Parameters, and how the search for them went."""

    theta: Tensor
    steps: int
    converged: bool


def newton_by_parts(problem: Likelihood, start: Tensor, tol: float) -> Found:
    """Minimise by Newton's method; of many rows, a part gives the start and the Hessian.

    Parameters
    ----------
    problem
        What is minimised.
    start
        Where to begin.
    tol
        Newton decrement at which to stop; the value is then within tol^2 / 2 of the minimum.
    """
    found = _by_parts(problem, start, tol, tol**2)
    return Found(found.theta, found.steps, found.steps < LIMIT)


def _by_parts(problem: Likelihood, start: Tensor, tol: float, alone: float) -> Minimum:
    """Minimise up to ``tol``, or up to ``alone`` where there are too few rows to take a part."""
    if problem.design.shape[0] < PART * ENOUGH * start.numel():
        return newton(problem, start, Search(alone, LIMIT))
    part = problem.thin(PART)
    # A part of n rows misses the whole's minimum by a decrement of about sqrt(P / n).
    theta = _by_parts(part, start, ROUGH, ROUGH).theta
    return newton(problem, theta, Search(tol, LIMIT, lazy=True), Factor(part.hessian(theta)))


def lbfgs(problem: Likelihood, start: Tensor, tol: float) -> Found:
    """Minimise by L-BFGS until no entry of the gradient exceeds ``tol`` / 1000."""

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = problem(torch.as_tensor(x).view_as(start).to(start))
        return float(value), gradient.double().cpu().numpy().ravel()

    x0 = start.double().cpu().numpy().ravel()
    return _found(_scipy(value_and_gradient, x0, tol, None), start)


def lbfgs_lasso(problem: Likelihood, start: Tensor, tol: float) -> Found:
    """Minimise with the penalty lasso |W|_1, smooth after writing W = U - V with U, V >= 0."""
    priced = problem.penalised(torch.ones_like(start)).double().cpu().numpy().ravel()
    price = problem.lasso * np.concatenate([priced, priced])
    lower = np.where(priced > 0, 0.0, -np.inf)  # intercepts may be negative and stay in U
    upper = np.concatenate([np.full(len(priced), np.inf), np.where(priced > 0, np.inf, 0.0)])
    bounds = np.column_stack([np.concatenate([lower, np.zeros(len(priced))]), upper])

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.as_tensor(x[: len(priced)] - x[len(priced) :]).view_as(start).to(start)
        value, gradient = problem(theta)
        slope = gradient.double().cpu().numpy().ravel()
        return float(value) + price @ x, np.concatenate([slope, -slope]) + price

    x0 = start.double().cpu().numpy().ravel()
    x0 = np.concatenate([np.where(priced > 0, x0.clip(0), x0), (-x0 * priced).clip(0)])
    result = _scipy(value_and_gradient, x0, tol, bounds)
    result.x = result.x[: len(priced)] - result.x[len(priced) :]
    return _found(result, start)


def _scipy(function: object, x0: np.ndarray, tol: float, bounds: object) -> OptimizeResult:
    options = {"maxiter": LIMIT, "maxfun": 2 * LIMIT, "gtol": tol / 1000, "ftol": 1e-15}
    return minimize(function, x0, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


def _found(result: OptimizeResult, like: Tensor) -> Found:
    theta = torch.from_numpy(result.x).view_as(like).to(like)
    return Found(theta, int(result.nit), result.nit < LIMIT)
