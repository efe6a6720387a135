"""Cholesky factors and inverses of large positive definite matrices.

What is not positive definite by rounding gets the least multiple of the identity that helps.
On a GPU the inverse is built from halves, so that nearly all of it is matrix products.
"""

from __future__ import annotations

import torch
from torch import Tensor

from castalia.errors import SolverFailed

__all__ = ["factor", "inverse"]

SMALL = 1024  # rows below which a GPU inverts at once
TRIES = 8  # tenfold each


def factor(K: Tensor, *, owner: str = "castalia") -> tuple[Tensor, float]:
    """Return the lower factor of K, (…, N, N), and what had to be added to its diagonal."""
    root, failed = torch.linalg.cholesky_ex(K)
    if not bool(failed.any()):
        return root, 0.0
    size = float(K.diagonal(dim1=-2, dim2=-1).abs().mean())
    if not (size < float("inf")):
        raise SolverFailed(f"{owner}: the kernel must give finite numbers; it gave {size}.")
    extra = 1e-12 * size
    for _ in range(TRIES):
        extra *= 10
        root, failed = torch.linalg.cholesky_ex(K + extra * torch.eye(K.shape[-1]).to(K))
        if not bool(failed.any()):
            return root, extra
    raise SolverFailed(
        f"{owner}: the kernel matrix must be positive definite; it is not even with {extra:.1g} "
        "added to its diagonal. Add White() to the kernel, or use kernels that are valid."
    )


def inverse(root: Tensor) -> Tensor:
    """Return (L L^T)^-1 from the lower factor L, (N, N)."""
    if root.device.type == "cpu" or len(root) <= SMALL:
        return torch.cholesky_inverse(root)
    return _square(_triangle_inverse(root))


def _triangle_inverse(L: Tensor) -> Tensor:
    """Return L^-1 of a lower triangle: halves on the diagonal, and one product below."""
    n = len(L)
    if n <= SMALL:
        eye = torch.eye(n, dtype=L.dtype, device=L.device)
        return torch.linalg.solve_triangular(L, eye, upper=False)
    half = n // 2
    out = torch.zeros_like(L)
    out[:half, :half] = upper = _triangle_inverse(L[:half, :half])
    out[half:, half:] = lower = _triangle_inverse(L[half:, half:])
    torch.mm(lower @ L[half:, :half], upper, out=out[half:, :half]).neg_()
    return out


def _square(T: Tensor) -> Tensor:
    """Return T^T T of a lower triangle, zeros left out by halves."""
    n = len(T)
    if n <= 2 * SMALL:
        return T.T @ T
    half = n // 2
    a, b, c = T[:half, :half], T[half:, :half], T[half:, half:]
    out = torch.empty_like(T)
    out[:half, :half] = _square(a).addmm_(b.T, b)
    out[half:, :half] = c.T @ b
    out[:half, half:] = out[half:, :half].T
    out[half:, half:] = _square(c)
    return out
