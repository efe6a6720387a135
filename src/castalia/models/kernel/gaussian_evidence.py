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
from castalia.models.kernel.kernel_algebra import Kernel, Pull
from castalia.models.kernel.kernel_matrix import gram_and_pull, gram_matrix

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
        K = gram_matrix(self.kernel, theta, self.X, self.weight)
        root, jitter = factor(K, owner=self.owner)
        dual = torch.cholesky_solve(self.y, root)
        value = self._value(root, dual) + self._repeats(theta)[0]
        return GaussianFit(root, dual, float(value), jitter)

    def _value(self, root: Tensor, dual: Tensor) -> Tensor:
        n, targets = self.y.shape
        half_det = root.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
        square = (self.y * dual).sum(dim=(-2, -1))
        return -0.5 * square - targets * half_det - 0.5 * n * targets * LOG_2_PI

    def _repeats(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return what w equal observations have beyond one of variance s^2 / w, and its slope."""
        if self.weight is None:
            return theta.new_zeros(theta.shape[:-1]), torch.zeros_like(theta)
        whole, pull = self.kernel.diag_and_pull(theta, self.X)
        own, pull_own = self.kernel.diag_and_pull(theta, self.X, noise=False)
        noise, half = (whole - own).clamp_min(1e-300), -0.5 * self.y.shape[1]
        extra = (self.weight - 1) * (noise.log() + LOG_2_PI) + self.weight.log()
        slope = half * (self.weight - 1) / noise
        return half * extra.sum(dim=-1), pull(slope) - pull_own(slope)

    def value_and_slope(self, theta: Tensor) -> tuple[float, Tensor]:
        """Return log p(y) and its gradient, (P,), at one setting."""
        K, pull = gram_and_pull(self.kernel, theta, self.X, self.weight)
        value, slope = self._climbed(theta, factor(K, owner=self.owner)[0], pull)
        return float(value), slope

    def values_and_slopes(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return log p(y), (R,), and gradients, (R, P), at many settings; for few rows."""
        K, pull = gram_and_pull(self.kernel, theta, self.X, self.weight)
        K.diagonal(dim1=-2, dim2=-1).mul_(1 + 1e-9)
        root, failed = torch.linalg.cholesky_ex(K)
        bad = failed > 0
        root[bad] = torch.eye(len(self.X)).to(root)
        values, slopes = self._climbed(theta, root, pull)
        return values.masked_fill(bad, -torch.inf), slopes

    def _climbed(self, theta: Tensor, root: Tensor, pull: Pull) -> tuple[Tensor, Tensor]:
        """Return value and slope from the factor of K: d log p / d K = 1/2 (a a^T - T K^-1)."""
        (n, targets), lead = self.y.shape, root.shape[:-2]
        dual = torch.cholesky_solve(self.y.expand(*lead, n, targets), root)
        a, by_K = dual.reshape(-1, n, targets), inverse(root)
        by_K.view(-1, n, n).baddbmm_(a, a.mT, beta=-0.5 * targets, alpha=0.5)
        extra, slope = self._repeats(theta)
        return self._value(root, dual) + extra, pull(by_K) + slope

    def leave_one_out(self, fit: GaussianFit) -> tuple[Tensor, Tensor]:
        """Return mean (N, T) and variance (N,) of each y given all others, in closed form."""
        precision = inverse(fit.root).diagonal()
        return self.y - fit.dual / precision[:, None], 1 / precision
