"""The soft-margin problem solved to the last digit by a primal-dual interior-point method.

min 1/2 |w|^2 + sum_n c_n xi_n  subject to  y_n (w x_n + b) >= 1 - xi_n,  xi_n >= 0.
With multipliers alpha of the margins (slack s) and beta = c - alpha of the xi, the optimum has
w = sum alpha_n y_n x_n, alpha s = 0 and beta xi = 0. The method keeps alpha, beta, s and xi
positive, asks for products mu > 0 instead, and takes Newton steps while mu goes to zero; each
costs one P x P system J + X^T diag(h) X.
Reference: 1992, Mehrotra, On the implementation of a primal-dual interior point method, SIAM J.
Optim. 2; 2002, Ferris, Munson, Interior-point methods for massive support vector machines, SIAM J.
Optim. 13.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from castalia.models.linear.solvers.affine_design import Affine
from castalia.models.linear.solvers.newton import Factor

__all__ = ["Margin", "soft_margin"]

LIMIT = 200


class Margin(NamedTuple):
    """A separating hyperplane.

    ``theta`` is (P,), ``alpha`` (N,); ``gap`` is the relative distance between the primal and the
    dual value at the end.
    """

    theta: Tensor
    alpha: Tensor
    steps: int
    gap: float


class _State(NamedTuple):
    theta: Tensor
    alpha: Tensor
    beta: Tensor
    s: Tensor
    xi: Tensor

    def moved(self, step: _State, primal: float, dual: float) -> _State:
        lengths = (primal, dual, dual, primal, primal)
        return _State(*(v + t * d for v, d, t in zip(self, step, lengths, strict=True)))


def soft_margin(
    design: Affine, y: Tensor, cost: Tensor, *, free: bool = True, tol: float = 1e-10
) -> Margin:
    """Minimise 1/2 |w|^2 + sum_n cost_n max(0, 1 - y_n f(x_n)).

    Parameters
    ----------
    design
        Rows (N, D) in float64.
    y
        Signs +-1, (N,).
    cost
        Price of each row's slack, above 0, (N,).
    free
        Whether the intercept, where there is one, goes unpenalised.
    tol
        Relative duality gap at which to stop.
    """
    J = torch.ones(design.shape[1], dtype=y.dtype, device=y.device)
    if design.intercept and free:
        J[-1] = 0
    one = torch.ones_like(y)
    state = _State(torch.zeros_like(J), cost / 2, cost / 2, one.clone(), one.clone())
    gap = float("inf")
    for steps in range(LIMIT):  # noqa: B007
        mu = float((state.alpha @ state.s + state.beta @ state.xi) / (2 * len(y)))
        residuals = _residuals(design, y, cost, J, state)
        gap = _gap(cost, J, state, mu)
        if gap < tol and max(float(r.abs().max()) for r in residuals[:2]) < tol * 100:
            break
        state = _step(design, y, J, state, residuals, mu)
    return Margin(state.theta, state.alpha, steps, gap)


def _residuals(
    design: Affine, y: Tensor, cost: Tensor, J: Tensor, at: _State
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what is missing from stationarity, from the margins and from alpha + beta = c."""
    margins = y * design.forward(at.theta[None])[:, 0]
    pull = design.backward((y * at.alpha)[:, None])[0]
    return pull - J * at.theta, 1 - margins - at.xi + at.s, cost - at.alpha - at.beta


def _gap(cost: Tensor, J: Tensor, at: _State, mu: float) -> float:
    primal = 0.5 * float(J @ at.theta.square()) + float(cost @ at.xi)
    return 2 * len(cost) * mu / (1 + abs(primal))


def _step(
    design: Affine,
    y: Tensor,
    J: Tensor,
    at: _State,
    residuals: tuple[Tensor, Tensor, Tensor],
    mu: float,
) -> _State:
    """Take one predictor-corrector step."""
    h = 1 / (at.xi / at.beta + at.s / at.alpha)
    H = design.gram(h)
    H.diagonal().add_(J)
    factor = Factor(H)

    def direction(r4: Tensor, r5: Tensor) -> _State:
        r1, r2, r3 = residuals
        q = r2 - (r5 - at.xi * r3) / at.beta + r4 / at.alpha
        theta = factor.solve(r1 + design.backward((y * h * q)[:, None])[0])
        alpha = h * (q - y * design.forward(theta[None])[:, 0])
        beta = r3 - alpha
        return _State(
            theta, alpha, beta, (r4 - at.s * alpha) / at.alpha, (r5 - at.xi * beta) / at.beta
        )

    guess = direction(-at.alpha * at.s, -at.beta * at.xi)
    ahead = at.moved(guess, *_lengths(at, guess, 1.0))
    hoped = float((ahead.alpha @ ahead.s + ahead.beta @ ahead.xi) / (2 * len(y)))
    aim = mu * min(1.0, hoped / mu) ** 3
    move = direction(
        aim - at.alpha * at.s - guess.alpha * guess.s, aim - at.beta * at.xi - guess.beta * guess.xi
    )
    return at.moved(move, *_lengths(at, move, 0.995))


def _lengths(at: _State, step: _State, share: float) -> tuple[float, float]:
    """Return how far the primal and the dual variables can go and stay positive."""

    def reach(value: Tensor, change: Tensor) -> float:
        falls = change < 0
        if not falls.any():
            return 1.0
        return min(1.0, share * float((-value[falls] / change[falls]).min()))

    return (
        min(reach(at.s, step.s), reach(at.xi, step.xi)),
        min(reach(at.alpha, step.alpha), reach(at.beta, step.beta)),
    )
