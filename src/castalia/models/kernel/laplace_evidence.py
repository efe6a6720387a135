"""Laplace's approximation of a Gaussian process behind a sigmoid, and its evidence.

f ~ N(0, K), p(y = 1 | f) = sigma(f). The posterior of f is taken as normal around its mode, which
Newton's method finds. Shapes: N rows, C one-against-rest tasks, solved one after another.
Reference: 2006, Rasmussen, Williams, Gaussian processes for machine learning, algorithms 3.1, 5.1.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.errors import SolverFailed
from castalia.models.kernel.covariance_kernels import Kernel
from castalia.models.kernel.kernel_matrix import gram_matrix, pull_back

__all__ = ["LaplaceEvidence", "Mode", "posterior_mode"]

STEPS = 100


class Mode(NamedTuple):
    """The mode of one task: dual weights a (f = K a), root of the curvature, factor of B, log Z."""

    dual: Tensor
    curvature: Tensor
    root: Tensor
    value: float


def posterior_mode(
    K: Tensor, positive: Tensor, weight: Tensor | None = None, *, tol: float = 1e-12
) -> Mode:
    """Return the mode of p(f | y) by Newton's method.

    Parameters
    ----------
    K
        Kernel matrix, (N, N).
    positive
        1 for rows of the class and 0 for others, (N,).
    weight
        How often each row counts, (N,), or None.
    tol
        Relative gain at which to stop.
    """
    w = torch.ones_like(positive) if weight is None else weight
    a, best = torch.zeros_like(positive), -torch.inf
    for _ in range(STEPS):
        f, p, s, root = _curved(K, a, w)
        b = s.square() * f + w * (positive - p)
        inner = torch.cholesky_solve((s * (K @ b))[:, None], root)[:, 0]
        new, value = _gaining_step(K, a, b - s * inner - a, positive, w, best)
        done = value - best < tol * max(1.0, abs(value))
        a, best = new, value
        if done:
            _, _, s, root = _curved(K, a, w)
            return Mode(a, s, root, best - float(root.diagonal().log().sum()))
    raise SolverFailed(f"posterior_mode: Newton's method did not settle in {STEPS} steps.")


def _curved(K: Tensor, a: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return f = K a, sigma(f), the root S of the curvature, and the factor of I + S K S."""
    f = K @ a
    p = f.sigmoid()
    s = (w * p * (1 - p)).sqrt()
    B = s[:, None] * K * s
    B.diagonal().add_(1)
    return f, p, s, torch.linalg.cholesky(B)


def _gaining_step(
    K: Tensor, a: Tensor, step: Tensor, positive: Tensor, w: Tensor, best: float
) -> tuple[Tensor, float]:
    """Return place and value after the longest of halved steps that gains; else stay."""
    length = 1.0
    while length > 1e-6:
        new = a + length * step
        f = K @ new
        value = float(-0.5 * new @ f + (w * F.logsigmoid((2 * positive - 1) * f)).sum())
        if value >= best:
            return new, value
        length /= 2
    return a, best


class LaplaceEvidence:
    """Approximate log p(y | X, theta), added up over one-against-rest tasks.

    Parameters
    ----------
    kernel
        The kernel; noise is part of f here.
    X, y
        Rows (N, D) and the tasks' 0/1 targets (N, C).
    weight
        How often each row counts, (N,), or None.
    owner
        Whose rows they are.
    """

    def __init__(
        self, kernel: Kernel, X: Tensor, y: Tensor, weight: Tensor | None, owner: str
    ) -> None:
        self.kernel, self.X, self.y, self.weight, self.owner = kernel, X, y, weight, owner

    def some(self, index: Tensor) -> LaplaceEvidence:
        """Return that of some of the rows."""
        weight = None if self.weight is None else self.weight[index]
        return LaplaceEvidence(self.kernel, self.X[index], self.y[index], weight, self.owner)

    def modes(self, theta: Tensor) -> tuple[Tensor, list[Mode]]:
        """Return the kernel matrix and the mode of every task."""
        K = gram_matrix(self.kernel, theta, self.X)
        return K, [posterior_mode(K, part, self.weight) for part in self.y.T]

    def value_and_slope(self, theta: Tensor) -> tuple[float, Tensor]:
        """Return log Z and its gradient, (P,)."""
        K, modes = self.modes(theta)
        total = torch.zeros_like(K)
        for mode, positive in zip(modes, self.y.T, strict=True):
            total += self._slope(K, mode, positive)
        value = sum(mode.value for mode in modes)
        return value, pull_back(self.kernel, theta, self.X, total)

    def _slope(self, K: Tensor, mode: Mode, positive: Tensor) -> Tensor:
        """Return d log Z / d K, symmetric: at fixed mode, and through the mode."""
        w = torch.ones_like(positive) if self.weight is None else self.weight
        p = (K @ mode.dual).sigmoid()
        S = mode.curvature
        half = torch.linalg.solve_triangular(mode.root, torch.diag(S), upper=False)  # L^-1 S
        R = half.T @ half
        variance = K.diagonal() - (half @ K).square().sum(dim=0)
        by_f = -0.5 * variance * w * p * (1 - p) * (1 - 2 * p)
        through = by_f - R @ (K @ by_f)
        g = w * (positive - p)
        cross = torch.outer(through, g)
        return 0.5 * (torch.outer(mode.dual, mode.dual) - R) + 0.5 * (cross + cross.T)
