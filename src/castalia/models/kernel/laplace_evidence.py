"""Laplace's approximation of a Gaussian process behind a sigmoid, and its evidence.

f ~ N(0, K), p(y = 1 | f) = sigma(f). The posterior of f is taken as normal around its mode, which
Newton's method finds. Shapes: N rows, C one-against-rest tasks, solved side by side.
Reference: 2006, Rasmussen, Williams, Gaussian processes for machine learning, algorithms 3.1, 5.1.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.errors import SolverFailed
from castalia.models.kernel.kernel_algebra import Kernel
from castalia.models.kernel.kernel_matrix import ENTRIES, gram_and_pull, gram_matrix

__all__ = ["LaplaceEvidence", "Mode", "posterior_mode"]

STEPS = 100


class Mode(NamedTuple):
    """The modes of C tasks.

    Dual weights a, f = K a and the root S of the curvature, (C, N), factors of I + S K S,
    (C, N, N), and log Z, (C,).
    """

    dual: Tensor
    latent: Tensor
    curvature: Tensor
    root: Tensor
    value: Tensor


def posterior_mode(
    K: Tensor,
    positive: Tensor,
    weight: Tensor | None = None,
    *,
    start: Tensor | None = None,
    tol: float = 1e-12,
) -> Mode:
    """Return the modes of p(f | y) by Newton's method, all tasks at once.

    Parameters
    ----------
    K
        Kernel matrix, (N, N).
    positive
        1 for rows of a task's class and 0 for others, (C, N).
    weight
        How often each row counts, (N,), or None.
    start
        Values f to begin at, (C, N), or None for zeros.
    tol
        Relative gain at which to stop.
    """
    w = torch.ones_like(positive[0]) if weight is None else weight
    f = torch.zeros_like(positive) if start is None else start
    a, best = _newton(K, f, positive, w), torch.full_like(f[:, 0], -1e300)
    for _ in range(STEPS):
        least = tol * best.abs().clamp_min(1)  # less is rounding
        a, value = _gaining_step(
            K, a, _newton(K, a @ K, positive, w) - a, positive, w, best - least
        )
        done, best = bool((value - best <= least).all()), value
        if done:
            f = a @ K
            _, s, root = _curved(K, f, w)
            half_det = root.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
            return Mode(a, f, s, root, best - half_det)
    raise SolverFailed(f"posterior_mode: Newton's method did not settle in {STEPS} steps.")


def _newton(K: Tensor, f: Tensor, positive: Tensor, w: Tensor) -> Tensor:
    """Return the dual weights that a whole step from f leads to, (C, N)."""
    p, s, root = _curved(K, f, w)
    b = s.square() * f + w * (positive - p)
    return b - s * torch.cholesky_solve((s * (b @ K))[..., None], root)[..., 0]


def _curved(K: Tensor, f: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return sigma(f), the root S of the curvature, and the factor of I + S K S."""
    p = f.sigmoid()
    s = (w * p * (1 - p)).sqrt()
    B = s[..., None] * K * s[..., None, :]
    B.diagonal(dim1=-2, dim2=-1).add_(1)
    return p, s, torch.linalg.cholesky(B)


def _log_joint(K: Tensor, a: Tensor, positive: Tensor, w: Tensor) -> Tensor:
    """Return log p(y | f) p(f) up to a constant at f = K a, (C,)."""
    f = a @ K
    return -0.5 * (a * f).sum(dim=-1) + (w * F.logsigmoid((2 * positive - 1) * f)).sum(dim=-1)


def _gaining_step(
    K: Tensor, a: Tensor, step: Tensor, positive: Tensor, w: Tensor, best: Tensor
) -> tuple[Tensor, Tensor]:
    """Return places and values after the longest of halved steps that gain; others stay."""
    length = torch.ones_like(best)
    while True:
        new = a + length[:, None] * step
        value = _log_joint(K, new, positive, w)
        worse = ~(value >= best)
        if not bool(worse.any()):
            return new, value
        length = torch.where(worse, length / 2, length)
        length = torch.where(length < 1e-6, 0.0, length)  # stays


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
    tol
        Relative gain at which a mode is found.
    """

    def __init__(
        self, kernel: Kernel, X: Tensor, y: Tensor, weight: Tensor | None, *, tol: float = 1e-12
    ) -> None:
        self.kernel, self.X, self.y, self.weight, self.tol = kernel, X, y, weight, tol
        self.last: Tensor | None = None  # f of the last modes

    def some(self, index: Tensor) -> LaplaceEvidence:
        """Return that of some of the rows."""
        weight = None if self.weight is None else self.weight[index]
        return LaplaceEvidence(self.kernel, self.X[index], self.y[index], weight, tol=self.tol)

    def modes(self, theta: Tensor) -> Mode:
        """Return the mode of every task."""
        return self._modes(gram_matrix(self.kernel, theta, self.X))

    def _modes(self, K: Tensor) -> Mode:
        """Return the modes, sought from where the last ones were."""
        tasks = self.y.T.contiguous()
        start = torch.zeros_like(tasks) if self.last is None else self.last
        parts = [
            posterior_mode(K, tasks[i], self.weight, start=start[i], tol=self.tol)
            for i in self._together(K)
        ]
        found = Mode(*(torch.cat(part) for part in zip(*parts, strict=True)))
        self.last = found.latent
        return found

    def _together(self, K: Tensor) -> list[slice]:
        """Return tasks that are few enough to be solved side by side."""
        tasks, step = self.y.shape[1], max(1, ENTRIES // K.numel())
        return [slice(start, start + step) for start in range(0, tasks, step)]

    def value_and_slope(self, theta: Tensor) -> tuple[float, Tensor]:
        """Return log Z and its gradient, (P,)."""
        K, pull = gram_and_pull(self.kernel, theta, self.X)
        modes, total = self._modes(K), torch.zeros_like(K)
        for i in self._together(K):
            total += self._slope(K, Mode(*(part[i] for part in modes)), self.y.T[i])
        return float(modes.value.sum()), pull(total)

    def _slope(self, K: Tensor, mode: Mode, positive: Tensor) -> Tensor:
        """Return d log Z / d K, symmetric: at fixed modes, and through the modes.

        B = I + S K S and R = S B^-1 S; the posterior variance of f_i is (1 - B^-1_ii) / S_i^2.
        """
        a, S, p = mode.dual, mode.curvature, mode.latent.sigmoid()
        inverse = torch.cholesky_inverse(mode.root)
        known = 1 - inverse.diagonal(dim1=-2, dim2=-1)
        R = inverse.mul_(S[:, None]).mul_(S[:, :, None])
        by_f = -0.5 * known * (1 - 2 * p)
        through = by_f - (R @ (by_f @ K)[..., None])[..., 0]
        g = positive - p if self.weight is None else self.weight * (positive - p)
        cross = through.T @ g
        return 0.5 * (a.T @ a - R.sum(dim=0) + cross + cross.T)
