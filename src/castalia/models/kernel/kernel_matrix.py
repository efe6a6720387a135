"""Kernel matrices in blocks of rows, and gradients through them.

A matrix of N^2 entries is filled block by block, and its gradient by the hyperparameters goes back
the same way, so nothing but the matrices themselves needs N^2 numbers. Only blocks on and below the
diagonal are computed. A row of weight w has its noise divided by w, as w equal observations.
"""

from __future__ import annotations

import os

import torch
from torch import Tensor

from castalia.errors import InvalidData
from castalia.models.kernel.kernel_algebra import Kernel, Pull

__all__ = [
    "check_room",
    "cross_matrix",
    "diagonal_and_pull",
    "gram_and_pull",
    "gram_matrix",
    "noise_variance",
]

ENTRIES = 2**24  # of a block: 128 MB in float64


def blocks(n: int) -> list[tuple[int, int]]:
    """Return the ends of blocks of rows, each row N entries long."""
    size = max(64, ENTRIES // max(n, 1))
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def check_room(owner: str, rows: int, device: torch.device) -> None:
    """Refuse more rows than the matrix, its factor and a gradient have memory for."""
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
    else:
        free = _memory()
    needed = 3 * 8 * rows**2
    if needed > free:
        raise InvalidData(
            f"{owner}: {rows:,} rows need matrices of {needed / 2**30:,.0f} GiB; there are "
            f"{free / 2**30:,.0f} GiB. Use SparseGaussianProcess or RandomFeaturesRegressor, or "
            "fewer rows."
        )


def _memory() -> int:
    """Return how many bytes the machine has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on every system
        return 16 << 30


def noise_variance(kernel: Kernel, theta: Tensor, X: Tensor) -> Tensor:
    """Return the variance of white noise at each row, (…, N)."""
    return kernel.diag(theta, X) - kernel.diag(theta, X, noise=False)


def diagonal_and_pull(
    kernel: Kernel, theta: Tensor, X: Tensor, weight: Tensor | None
) -> tuple[Tensor, Pull]:
    """Return the diagonal of the matrix, (…, N), and its pull."""
    whole, pull = kernel.diag_and_pull(theta, X)
    if weight is None:
        return whole, pull
    own, pull_own = kernel.diag_and_pull(theta, X, noise=False)
    return own + (whole - own) / weight, lambda g: pull(g / weight) + pull_own(g - g / weight)


def cross_matrix(kernel: Kernel, theta: Tensor, X: Tensor, Z: Tensor) -> Tensor:
    """Return the kernel of rows X with other rows Z, (…, N, M)."""
    found = kernel.cross(theta, X, Z)
    return found.expand(*theta.shape[:-1], X.shape[-2], Z.shape[-2])


def gram_matrix(kernel: Kernel, theta: Tensor, X: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return the kernel matrix of rows with themselves, noise on its diagonal, (…, N, N)."""
    return gram_and_pull(kernel, theta, X, weight)[0]


@torch.no_grad()
def gram_and_pull(
    kernel: Kernel, theta: Tensor, X: Tensor, weight: Tensor | None = None
) -> tuple[Tensor, Pull]:
    """Return the kernel matrix and the pull of a symmetric d f / d K, which it overwrites."""
    own, pull_own = diagonal_and_pull(kernel, theta, X, weight)
    n = len(X)
    if len(blocks(n)) == 1:
        found, pull_pairs = kernel.cross_and_pull(theta, X, X)
        K = found if found.shape[-1] == n else found.expand(*theta.shape[:-1], n, n).clone()
    else:
        K, pull_pairs = _filled(kernel, theta, X), _pull_of_blocks(kernel, theta, X)
    K.diagonal(dim1=-2, dim2=-1).copy_(own)

    def pull(slope: Tensor) -> Tensor:
        middle = slope.diagonal(dim1=-2, dim2=-1)
        of_own = pull_own(middle)
        middle.zero_()
        return of_own + pull_pairs(slope)

    return K, pull


def _filled(kernel: Kernel, theta: Tensor, X: Tensor) -> Tensor:
    n = len(X)
    K = torch.empty(*theta.shape[:-1], n, n, dtype=X.dtype, device=X.device)
    for start, stop in blocks(n):
        K[..., start:stop, :stop] = kernel.cross(theta, X[start:stop], X[:stop])
        K[..., :start, start:stop] = K[..., start:stop, :start].mT
    return K


def _pull_of_blocks(kernel: Kernel, theta: Tensor, X: Tensor) -> Pull:
    def pull(slope: Tensor) -> Tensor:
        total = torch.zeros_like(theta)
        for start, stop in blocks(len(X)):
            part = slope[..., start:stop, :stop]
            part[..., :start] *= 2  # its mirror image above the diagonal
            total += kernel.cross_and_pull(theta, X[start:stop], X[:stop])[1](part)
        return total

    return pull
