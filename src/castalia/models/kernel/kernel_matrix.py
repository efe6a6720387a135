"""Kernel matrices in blocks of rows, and gradients through them.

A matrix of N^2 entries is filled block by block, and its gradient by the hyperparameters goes back
the same way, so nothing but the matrices themselves needs N^2 numbers. Only blocks on and below the
diagonal are computed. A row of weight w has its noise divided by w, as w equal observations.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from castalia.models.kernel.covariance_kernels import Kernel

__all__ = [
    "cross_matrix",
    "diagonal",
    "gram_matrix",
    "noise_variance",
    "own_values",
    "pull_back",
]

ENTRIES = 2**24  # of a block: 128 MB in float64


def blocks(n: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of blocks of rows, each row ``width`` entries long."""
    size = max(64, ENTRIES // max(width, 1))
    return ((start, min(start + size, n)) for start in range(0, n, size))


def own_values(kernel: Kernel, theta: Tensor, X: Tensor) -> Tensor:
    """Return the kernel of each row with another one at its place: without noise, (…, N)."""
    pairs = kernel.cross(theta[..., None, :], X[:, None], X[:, None])
    return pairs[..., 0, 0].expand(*theta.shape[:-1], len(X))


def noise_variance(kernel: Kernel, theta: Tensor, X: Tensor) -> Tensor:
    """Return the variance of white noise at each row, (…, N)."""
    return kernel.diag(theta, X) - own_values(kernel, theta, X)


def diagonal(kernel: Kernel, theta: Tensor, X: Tensor, weight: Tensor | None) -> Tensor:
    """Return the diagonal of the matrix, (…, N)."""
    whole = kernel.diag(theta, X)
    if weight is None:
        return whole
    own = own_values(kernel, theta, X)
    return own + (whole - own) / weight


def cross_matrix(kernel: Kernel, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
    """Return the kernel of rows X with other rows Z, (…, N, M)."""
    found = kernel.cross(theta, X, Z)
    return found.expand(*theta.shape[:-1], X.shape[-2], Z.shape[-2])


@torch.no_grad()
def gram_matrix(kernel: Kernel, theta: Tensor, X: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return the kernel matrix of rows with themselves, noise on its diagonal, (N, N)."""
    n = len(X)
    K = torch.empty(n, n, dtype=X.dtype, device=X.device)
    for start, stop in blocks(n, n):
        K[start:stop, :stop] = kernel.cross(theta, X[start:stop], X[:stop])
        K[:start, start:stop] = K[start:stop, :start].T
    K.diagonal().copy_(diagonal(kernel, theta, X, weight))
    return K


def pull_back(
    kernel: Kernel, theta: Tensor, X: Tensor, slope: Tensor, weight: Tensor | None = None
) -> Tensor:
    """Return d f / d theta, (P,), from a symmetric d f / d K; overwrites the diagonal of that."""
    theta = theta.detach().requires_grad_()
    own = slope.diagonal().clone()
    slope.diagonal().zero_()
    total = torch.zeros_like(theta)
    with torch.enable_grad():
        part = (diagonal(kernel, theta, X, weight) * own).sum()
        total += torch.autograd.grad(part, theta)[0]
        for start, stop in blocks(len(X), len(X)):
            K = kernel.cross(theta, X[start:stop], X[:stop])
            G = slope[start:stop, :stop]
            G[:, :start] *= 2  # its mirror image above the diagonal
            total += torch.autograd.grad((K * G).sum(), theta)[0]
    return total
