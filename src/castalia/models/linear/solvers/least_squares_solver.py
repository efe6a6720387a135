"""Least squares with or without a squared penalty, solved directly.

min_W |B - A W|^2 + sum_t alpha_t |w_t|^2.  The normal equations (A^T A + alpha I) W = A^T B are
quickest and lose half of the digits; so their conditioning is measured, and where it is poor the
singular values of A answer instead. Shapes: N rows, D features, T targets; A is (N, D), W (D, T).

Reference: 1996, Björck, Numerical methods for least squares problems, chapters 2 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.linalg import lsqr
from torch import Tensor

from castalia.models.linear.solvers.design_matrix import Design

__all__ = ["Solution", "Spectrum", "solve", "spectrum"]

LARGE = 3000  # columns of a sparse matrix for which a D x D matrix is still welcome
POOR = 1e5  # condition number above which A^T A has lost too much
FAIR = 1e2  # … and above which one step of refinement is worth its pass over the data


@dataclass(frozen=True)
class Solution:
    """Coefficients and how well the data determine them.

    Attributes
    ----------
    coef
        W^T, (T, D), on the CPU.
    rank
        Rank of A; None where an iterative method did not find it.
    condition
        Condition number of A (with the penalty's rows below it) after its columns were scaled to
        unit length; an estimate that may be somewhat too low.
    """

    coef: Tensor
    rank: int | None
    condition: float


def solve(design: Design, alpha: Tensor, tol: float | None = None) -> Solution:
    """Return the minimiser, the one of least norm where there are several.

    Parameters
    ----------
    design
        The rows.
    alpha
        Penalty of each target, (T,), at least 0.
    tol
        Singular values below this share of the largest count as zero; None: those that rounding of
        the data could have made.
    """
    n, d = design.shape
    limit = POOR if tol is None else min(POOR, 1 / tol)
    if design.sparse and d > LARGE:
        return _by_iteration(design, alpha)
    if n > d:
        found = _by_normal_equations(design, alpha, limit)
    else:
        found = _by_dual(design, alpha, limit) if alpha.min() > 0 else None
    return found or _by_spectrum(design, alpha, tol)


def _by_normal_equations(design: Design, alpha: Tensor, limit: float) -> Solution | None:
    """Cholesky on the scaled A^T A; None where it is too close to singular."""
    gram, cross, _ = design.moments()
    length, constant = _lengths(design, gram.diagonal())
    scaled = gram / torch.outer(length, length)
    scaled[constant], scaled[:, constant], cross[constant] = 0, 0, 0
    W, worst = torch.empty_like(cross), 1.0
    for value in alpha.unique().tolist():
        mine = (alpha == value).to(cross.device)
        extra = torch.where(constant, 1.0, value / length**2)
        factor, failed = torch.linalg.cholesky_ex(scaled + torch.diag(extra))
        worst = max(worst, np.inf if failed else _condition(scaled, extra, factor))
        if worst > limit:
            return None
        W[:, mine] = _cholesky_solve(factor, cross[:, mine], length)
        if worst > FAIR:
            slope = design.correlation(W)[:, mine] - value * W[:, mine]
            slope[constant] = 0
            W[:, mine] += _cholesky_solve(factor, slope, length)
    missing = 0 if alpha.min() > 0 else int(constant.sum())
    return Solution(W.T.cpu(), design.shape[1] - missing, worst)


def _lengths(design: Design, square: Tensor) -> tuple[Tensor, Tensor]:
    """Return the length of each column, 1 for those that are constant, and which those are."""
    rounding = design.total * (2.0**-46 * design.x_mean.to(square.device)).square()
    constant = square <= rounding
    return torch.where(constant, 1.0, square.clamp_min(0)).sqrt(), constant


def _cholesky_solve(factor: Tensor, rhs: Tensor, length: Tensor) -> Tensor:
    return torch.cholesky_solve(rhs / length[:, None], factor) / length[:, None]


def _condition(matrix: Tensor, extra: Tensor, factor: Tensor) -> float:
    """Estimate the condition number of A from the two ends of the spectrum of A^T A."""
    largest = _largest(lambda v: matrix @ v + extra[:, None] * v, matrix)
    smallest = _largest(lambda v: torch.cholesky_solve(v, factor), matrix)
    return float((largest * smallest).sqrt())


def _largest(apply: Callable[[Tensor], Tensor], like: Tensor, steps: int = 6) -> Tensor:
    """Estimate the largest eigenvalue by the power method, from a fixed start."""
    v = torch.arange(1, len(like) + 1, dtype=like.dtype, device=like.device).sin()[:, None]
    for _ in range(steps):
        v = apply(v / v.norm())
    return v.norm()


def _by_dual(design: Design, alpha: Tensor, limit: float) -> Solution | None:
    """W = A^T (A A^T + alpha I)^-1 B: a system of N equations where N is the smaller."""
    A, B = design.whole()
    K = A @ A.T
    W = torch.empty(A.shape[1], B.shape[1], dtype=A.dtype, device=A.device)
    worst = 1.0
    for value in alpha.unique().tolist():
        mine = (alpha == value).to(A.device)
        extra = torch.full_like(K[0], value)
        factor, failed = torch.linalg.cholesky_ex(K + torch.diag(extra))
        worst = max(worst, np.inf if failed else _condition(K, extra, factor))
        if worst > min(limit, POOR / 10):  # nothing refines this one
            return None
        W[:, mine] = A.T @ torch.cholesky_solve(B[:, mine], factor)
    return Solution(W.T.cpu(), A.shape[1], worst)


@dataclass(frozen=True)
class Spectrum:
    """Singular values of A with what goes with them: A = U diag(s) V, Z = U^T B."""

    s: Tensor  # (K,), falling
    V: Tensor  # (K, D)
    Z: Tensor  # (K, T)

    def rank(self, share: float) -> int:
        """Count the singular values above a share of the largest."""
        return int((self.s > share * self.s[0]).sum())

    def cut(self, rank: int) -> Spectrum:
        """Return the leading part."""
        return Spectrum(self.s[:rank], self.V[:rank], self.Z[:rank])

    def coef(self, alpha: Tensor) -> Tensor:
        """Return V^T diag(s / (s^2 + alpha)) Z, (D, T)."""
        s = self.s[:, None]
        return self.V.T @ (s / (s.square() + alpha.to(s.device)) * self.Z)


def spectrum(design: Design) -> Spectrum:
    """Return the singular values of A above rounding."""
    R, Z, share = _reduced(design)
    found = _decomposed(R, Z)
    return found.cut(found.rank(share))


def _reduced(design: Design) -> tuple[Tensor, Tensor, float]:
    """Return A and B cut down to few rows, and the share of s_1 that rounding can reach.

    A column that lies far from zero has lost digits before it was centred.
    """
    n, d = design.shape
    R, Z = design.triangle() if n > d else design.whole()
    length, constant = _lengths(design, R.square().sum(0))
    far = (design.total**0.5 * design.x_mean.to(R.device) / length)[~constant]
    lost = float(torch.hypot(far, torch.ones_like(far)).amax()) if len(far) else 1.0
    return torch.where(constant, 0.0, R), Z, max(10, min(n, d)) * design.eps * lost


def _decomposed(R: Tensor, Z: Tensor) -> Spectrum:
    U, s, V = torch.linalg.svd(R, full_matrices=False)
    return Spectrum(s, V, U.T @ Z)


def _by_spectrum(design: Design, alpha: Tensor, tol: float | None) -> Solution:
    """Answer from the singular values of A.

    Whether A has full rank is judged with its columns scaled to one length, so that units do not
    matter. If it has not, the shortest solution is wanted, and shortness is measured in the units
    given.
    """
    n, d = design.shape
    R, Z, share = _reduced(design)
    share = share if tol is None else max(tol, share)
    if alpha.min() > 0:
        found = _decomposed(R, Z)
        least = alpha.min() + (found.s[-1] ** 2 if n >= d else 0.0)
        condition = float(((found.s[0] ** 2 + alpha.max()) / least).sqrt())
        return Solution(found.cut(found.rank(share)).coef(alpha).T.cpu(), d, condition)
    length, _ = _lengths(design, R.square().sum(0))
    scaled = _decomposed(R / length, Z)
    rank = scaled.rank(share)
    if rank == d and not alpha.any():
        return Solution((scaled.coef(alpha) / length[:, None]).T.cpu(), d, _ratio(scaled.s))
    plain = _decomposed(R, Z)
    shortest = plain.cut(min(rank, plain.rank(share))).coef(alpha)
    return Solution(shortest.T.cpu(), rank, _ratio(scaled.s) if n >= d else np.inf)


def _ratio(s: Tensor) -> float:
    return float(s[0] / s[-1]) if s[-1] > 0 else np.inf


def _by_iteration(design: Design, alpha: Tensor) -> Solution:
    """LSQR, target by target, for sparse matrices too wide for anything of size D x D."""
    A, B = design.operator(), design.targets()
    found = [
        lsqr(A, b, damp=a**0.5, atol=1e-13, btol=1e-13, conlim=0, iter_lim=10 * min(design.shape))
        for a, b in zip(alpha.tolist(), B.T, strict=True)
    ]
    coef = torch.from_numpy(np.stack([answer[0] for answer in found]))
    rank = design.shape[1] if alpha.min() > 0 else None
    return Solution(coef, rank, max(float(answer[6]) for answer in found))
