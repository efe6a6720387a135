"""Marginal likelihood of a Gaussian process, its gradient, and what predictions need.

log p(y) = -1/2 y^T K^-1 y - 1/2 log det K - n/2 log 2 pi, and with a = K^-1 y
d log p / d K = 1/2 (a a^T - K^-1). Shapes: N rows, D columns, T targets, R settings.
Reference: 2006, Rasmussen, Williams, Gaussian processes for machine learning, chapters 2 and 5.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from castalia.models.kernel.cholesky_blocks import factor, inverse
from castalia.models.kernel.covariance_kernels import Kernel
from castalia.models.kernel.kernel_matrix import (
    cross_matrix,
    diagonal,
    gram_matrix,
    noise_variance,
    pull_back,
)

__all__ = ["GaussianEvidence", "GaussianFit"]

LOG_2_PI = math.log(2 * math.pi)


class GaussianFit(NamedTuple):
    """A Gaussian process with its data: lower factor, K^-1 y, log p(y), added jitter."""

    root: Tensor
    dual: Tensor
    value: float
    jitter: float


class GaussianEvidence:
    """log p(y | X, theta) of rows in double precision.

    Parameters
    ----------
    kernel
        The kernel, noise among its terms.
    X, y
        Rows (N, D) and targets (N, T).
    weight
        How often each row counts, (N,), or None.
    owner
        Whose rows they are, for messages.
    """

    def __init__(
        self, kernel: Kernel, X: Tensor, y: Tensor, weight: Tensor | None, owner: str
    ) -> None:
        self.kernel, self.X, self.y, self.weight, self.owner = kernel, X, y, weight, owner

    def some(self, index: Tensor) -> GaussianEvidence:
        """Return that of some of the rows."""
        weight = None if self.weight is None else self.weight[index]
        return GaussianEvidence(self.kernel, self.X[index], self.y[index], weight, self.owner)

    def fit(self, theta: Tensor) -> GaussianFit:
        """Return the process at one setting, (P,)."""
        root, jitter = factor(
            gram_matrix(self.kernel, theta, self.X, self.weight), owner=self.owner
        )
        dual = torch.cholesky_solve(self.y, root)
        value = self._value(root, (self.y * dual).sum()) + self._repeats(theta)
        return GaussianFit(root, dual, float(value), jitter)

    def _value(self, root: Tensor, square: Tensor) -> Tensor:
        n, targets = self.y.shape
        half_det = root.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
        return -0.5 * square - targets * half_det - 0.5 * n * targets * LOG_2_PI

    def _repeats(self, theta: Tensor) -> Tensor:
        """Return what w equal observations have beyond one of variance s^2 / w, (…)."""
        if self.weight is None:
            return theta.new_zeros(theta.shape[:-1])
        noise = noise_variance(self.kernel, theta, self.X).clamp_min(1e-300)
        extra = (self.weight - 1) * (noise.log() + LOG_2_PI) + self.weight.log()
        return -0.5 * self.y.shape[1] * extra.sum(dim=-1)

    def value_and_slope(self, theta: Tensor) -> tuple[float, Tensor]:
        """Return log p(y) and its gradient, (P,), at one setting."""
        fit = self.fit(theta)
        slope = inverse(fit.root).mul_(-0.5 * self.y.shape[1])
        slope.addmm_(fit.dual, fit.dual.T, alpha=0.5)
        gradient = pull_back(self.kernel, theta, self.X, slope, self.weight)
        if self.weight is not None:
            inner = theta.detach().requires_grad_()
            with torch.enable_grad():
                gradient = gradient + torch.autograd.grad(self._repeats(inner), inner)[0]
        return fit.value, gradient

    def values(self, theta: Tensor) -> Tensor:
        """Return log p(y) at many settings, (R, P) to (R,), with gradients; for few rows."""
        K = cross_matrix(self.kernel, theta, self.X, self.X)
        own = diagonal(self.kernel, theta, self.X, self.weight)
        off = 1 - torch.eye(len(self.X), dtype=K.dtype, device=K.device)
        K = K * off + torch.diag_embed(own * (1 + 1e-9))
        root, failed = torch.linalg.cholesky_ex(K)
        root = torch.where((failed > 0)[:, None, None], torch.eye(len(off)).to(root), root)
        white = torch.linalg.solve_triangular(root, self.y.expand(len(theta), -1, -1), upper=False)
        found = self._value(root, white.square().sum(dim=(1, 2))) + self._repeats(theta)
        return torch.where(failed > 0, torch.full_like(found, -torch.inf), found)

    def leave_one_out(self, fit: GaussianFit) -> tuple[Tensor, Tensor]:
        """Return mean (N, T) and variance (N,) of each y given all others, in closed form."""
        precision = inverse(fit.root).diagonal()
        return self.y - fit.dual / precision[:, None], 1 / precision
