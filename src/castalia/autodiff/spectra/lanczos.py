"""Lanczos: a symmetric operator, known by its products only, becomes a small tridiagonal matrix.

A Q = Q T + beta_m q_{m+1} e_m^T.  Eigenvalues of T (Ritz values) approach the extreme eigenvalues
of A first. Shapes: n size of A, m steps, L locked vectors; rows of ``basis`` are the vectors q.

With p_j the orthonormal polynomials of T, beta_j p_{j+1} = (x - alpha_j) p_j - beta_{j-1} p_{j-1},
an eigenvector of the eigenvalue x has (q_1 u)^2 <= 1 / sum_j p_j(x)^2, the Christoffel function.

References: 1950, Lanczos, An iteration method for the solution of the eigenvalue problem, J. Res.
Nat. Bur. Standards 45. Full re-orthogonalisation: 1980, Parlett, The symmetric eigenvalue problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Krylov", "lanczos"]

Product = Callable[[Tensor], Tensor]

CHECK, LARGE = 5, 10_000  # steps between two checks whether to stop; from this size on each step
ROWS = 32  # vectors for which memory is taken at first


@dataclass(frozen=True)
class Krylov:
    """What m steps of Lanczos found: an orthonormal basis and the operator seen in it."""

    basis: Tensor  # (m, n)
    alpha: Tensor  # (m,), the diagonal of T, in float64 on the CPU
    beta: Tensor  # (m,), below the diagonal; the last one couples to what was left out

    def ritz(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return Ritz values in ascending order, residuals, and coordinates as columns."""
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

    def excludes(self, x: float, chance: float) -> bool:
        """Whether x, outside all Ritz values, and what lies beyond it are no eigenvalues.

        A random first vector has (q_1 u)^2 < c^2 with a probability below sqrt(2 n / pi) c, which
        is ``chance``: an eigenvector that the Christoffel function holds below that is there with
        no larger probability. It falls beyond the Ritz values, so one x speaks for all beyond.
        """
        enough = 2 * self.basis.shape[1] / (math.pi * chance**2)
        before, now, total = 0.0, 1.0, 1.0
        coupling = [0.0, *self.beta.tolist()]
        for j, alpha in enumerate(self.alpha.tolist()):
            if total >= enough or not coupling[j + 1]:  # an invariant subspace: nothing is left
                return True
            before, now = now, ((x - alpha) * now - coupling[j] * before) / coupling[j + 1]
            total += now * now
        return total >= enough


def lanczos(
    product: Product,
    start: Tensor,
    steps: int,
    *,
    done: Callable[[Krylov], bool] = lambda _: False,
    locked: Tensor | None = None,
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
    locked
        Orthonormal rows (L, n) to stay orthogonal to: A is then seen in the rest of the space.
    """
    fixed = 0 if locked is None else len(locked)
    steps = min(steps, start.numel() - fixed)
    rows = start.new_empty(fixed + min(steps, ROWS), start.numel())
    if locked is not None:
        rows[:fixed] = locked
    alpha, beta = torch.zeros(2, steps, dtype=torch.float64)
    rest, length = _orthogonal(start, rows[:fixed])
    every = CHECK if start.numel() < LARGE else 1
    for j in range(steps):
        rows = _with_room(rows, fixed + j, fixed + steps)
        rows[fixed + j] = rest / length
        rest = product(rows[fixed + j])
        alpha[j] = torch.dot(rest, rows[fixed + j]).item()
        rest = rest - alpha[j].item() * rows[fixed + j]
        if j:
            rest -= beta[j - 1].item() * rows[fixed + j - 1]
        rest, length = _orthogonal(rest, rows[: fixed + j + 1])
        beta[j] = length
        found = Krylov(rows[fixed : fixed + j + 1], alpha[: j + 1], beta[: j + 1])
        if not length or (j % every == every - 1 and done(found)):
            break
    return found


def _with_room(rows: Tensor, needed: int, most: int) -> Tensor:
    """Return the rows, twice as many where all are in use."""
    if needed < len(rows):
        return rows
    return torch.cat([rows, rows.new_empty(min(len(rows), most - len(rows)), rows.shape[1])])


def _orthogonal(v: Tensor, basis: Tensor) -> tuple[Tensor, float]:
    """Take the part of v orthogonal to the rows; again while little is left of it."""
    before = v.norm().item()
    for _ in range(4):
        v = v - (basis @ v) @ basis
        after = v.norm().item()
        if after > 0.7 * before:
            return v, after
        before = after
    return v, 0.0  # rounding of a vector inside the basis
