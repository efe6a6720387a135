"""Lanczos: a symmetric operator, known by its products only, becomes a small tridiagonal matrix.

A Q = Q T + beta_m q_{m+1} e_m^T.  Eigenvalues of T (Ritz values) approach the extreme eigenvalues
of A first. Shapes: n size of A, m steps; rows of ``basis`` are the vectors q.

Reference: 1950, Lanczos, An iteration method for the solution of the eigenvalue problem, J. Res.
Nat. Bur. Standards 45. Full re-orthogonalisation: 1980, Parlett, The symmetric eigenvalue problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Krylov", "lanczos"]

Product = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Krylov:
    """What m steps of Lanczos found: an orthonormal basis and the operator seen in it."""

    basis: Tensor  # (m, n)
    alpha: Tensor  # (m,), the diagonal of T, in float64 on the CPU
    beta: Tensor  # (m,), below the diagonal; the last one couples to what was left out

    def ritz(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return Ritz values in ascending order, error bounds, and coordinates as columns."""
        values, coordinates = torch.linalg.eigh(self.matrix()[:-1])
        return values, (self.beta[-1] * coordinates[-1]).abs(), coordinates

    def matrix(self) -> Tensor:
        """Return T with the last beta as a row below: (m + 1, m)."""
        m = len(self.alpha)
        found = torch.zeros(m + 1, m, dtype=torch.float64)
        found.diagonal().copy_(self.alpha)
        found[1:].diagonal().copy_(self.beta)
        found[:, 1:].diagonal().copy_(self.beta[:-1])
        return found

    def vectors(self, coordinates: Tensor) -> Tensor:
        """Return vectors of size n, as rows, for columns of coordinates."""
        return coordinates.T.to(self.basis) @ self.basis


def lanczos(
    product: Product,
    start: Tensor,
    steps: int,
    *,
    done: Callable[[Krylov], bool] = lambda _: False,
    refill: Callable[[], Tensor] | None = None,
) -> Krylov:
    """Run at most ``steps`` steps from a vector.

    Parameters
    ----------
    product
        v -> A v, with A symmetric.
    start
        First vector, (n,); it need not have length one.
    steps
        Most steps; n of them make the Ritz values exact.
    done
        Asked after every few steps whether to stop.
    refill
        Gives a new vector when an invariant subspace is complete, so that repeated eigenvalues are
        found as often as they occur. Without it Lanczos ends there.
    """
    n = start.numel()
    steps = min(steps, n)
    basis = start.new_empty(steps, n)  # pages are touched only when a row is written
    alpha, beta = torch.zeros(2, steps, dtype=torch.float64)
    basis[0] = start / start.norm()
    scale = 0.0
    for j in range(steps):
        rest = product(basis[j])
        alpha[j] = torch.dot(rest, basis[j]).item()
        rest = rest - alpha[j].item() * basis[j]
        if j:
            rest -= beta[j - 1].item() * basis[j - 1]
        rest, length = _orthogonal(rest, basis[: j + 1])
        scale = max(scale, abs(alpha[j].item()), length)
        invariant = length <= n**0.5 * torch.finfo(basis.dtype).eps * scale
        beta[j] = 0.0 if invariant else length
        found = Krylov(basis[: j + 1], alpha[: j + 1], beta[: j + 1])
        if j + 1 == steps or (j % 5 == 4 and done(found)) or (invariant and refill is None):
            break
        if invariant and refill is not None:
            rest, length = _orthogonal(refill(), basis[: j + 1])
        basis[j + 1] = rest / length
    return found


def _orthogonal(v: Tensor, basis: Tensor) -> tuple[Tensor, float]:
    """Take the part of v orthogonal to the rows; again if little was left (twice is enough)."""
    before = v.norm().item()
    for _ in range(2):
        v = v - (basis @ v) @ basis
        after = v.norm().item()
        if after > 0.7 * before:
            break
        before = after
    return v, after
