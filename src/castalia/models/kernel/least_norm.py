"""Least squares whose solution is the shortest of all that fit best.

min_W |A W - B|^2 + alpha |W|^2; with alpha = 0 and more columns than rows, the interpolant of least
norm. The system solved is the smaller of A A^H and A^H A. Shapes: N rows, F features, T targets;
A (N, F) is real or complex, B (N, T).
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["gram", "least_norm"]

POOR = 1e7  # ratio of pivots, squared, above which A^H A has lost too many digits
TILE = 512  # columns of a strip of a Gram matrix; half of it is never computed


def least_norm(A: Tensor, B: Tensor, alpha: float = 0.0) -> tuple[Tensor, int]:
    """Return W, (F, T), and the rank of A.

    A Gram matrix squares the condition number. Where its Cholesky factor shows that this lost too
    much, the singular values of A answer instead, at several times the cost.
    """
    n, f = A.shape
    wide = f > n
    rhs = B if wide else A.mH @ B
    root, failed = torch.linalg.cholesky_ex(gram(A if wide else A.mH, alpha))
    pivots = root.diagonal().abs()
    if failed or not pivots.min() * POOR**0.5 > pivots.max():
        return _by_singular_values(A, B, alpha)
    solved = torch.cholesky_solve(rhs, root)
    return (A.mH @ solved if wide else solved), min(n, f)


def gram(A: Tensor, alpha: float = 0.0, out: Tensor | None = None) -> Tensor:
    """Return the lower half of A A^H + alpha I, added to ``out`` where it is given."""
    found = A.new_zeros(len(A), len(A)) if out is None else out
    for i in range(0, len(A), TILE):
        found[i:, i : i + TILE].addmm_(A[i:], A[i : i + TILE].mH)
    found.diagonal().add_(alpha)
    return found


def _by_singular_values(A: Tensor, B: Tensor, alpha: float) -> tuple[Tensor, int]:
    U, s, Vh = torch.linalg.svd(A, full_matrices=False)
    kept = s > max(A.shape) * torch.finfo(s.dtype).eps * s[0]
    s = s[kept]
    scale = (s / (s.square() + alpha))[:, None]
    return Vh[kept].mH @ (scale * (U[:, kept].mH @ B)), int(kept.sum())
