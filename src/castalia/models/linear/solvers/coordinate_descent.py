"""Coordinate descent for the lasso, on A^T A of the columns that matter.

min_w 1/2 |b - A w|^2 + p |w|_1.  With the slopes g = A^T (b - A w), one coordinate at a time has a
closed form: w_j <- soft(g_j + |a_j|^2 w_j, p) / |a_j|^2. A sweep visits the coordinates that can
move; linear systems finish those whose signs are settled; the duality gap says when to stop.
Shapes: D features, K columns in work.

References: 2010, Friedman, Hastie, Tibshirani, Regularization paths for generalized linear models
via coordinate descent; 2007, Lee, Battle, Raina, Ng, Efficient sparse coding algorithms (signs
first, then a linear system); 2018, Massias, Gramfort, Salmon, Celer: a fast solver for the lasso
with dual extrapolation, arXiv 1802.07481 (working sets).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import daxpy

__all__ = ["Quadratic", "duality_gap", "lasso"]

EVERY = 10  # sweeps between checks of the non-zero weights as a whole, while their signs change


@dataclass(frozen=True)
class Quadratic:
    """1/2 |b - A w|^2 as the lasso needs it.

    Attributes
    ----------
    cross
        A^T b, (D,).
    square
        |b|^2.
    slopes
        From w to A^T (b - A w), (D,).
    block
        From column numbers to their part of A^T A, (K, K).
    """

    cross: np.ndarray
    square: float
    slopes: Callable[[np.ndarray], np.ndarray]
    block: Callable[[np.ndarray], np.ndarray]


def duality_gap(
    w: np.ndarray, slope: np.ndarray, cross: np.ndarray, square: float, penalty: float
) -> float:
    """Return how far above the minimum w can lie at most; from |b|^2, A^T b and the slopes at w.

    The residual, shrunk until no slope exceeds the penalty, is feasible in the dual problem.
    """
    inner = square - w @ cross  # b . (b - A w)
    residual = inner - w @ slope  # |b - A w|^2
    steepest = float(np.abs(slope).max(initial=0.0))
    shrink = min(1.0, penalty / steepest) if steepest > 0 else 1.0
    primal = residual / 2 + penalty * np.abs(w).sum()
    dual = shrink * inner - shrink**2 * residual / 2
    return max(float(primal - dual), 0.0)


def lasso(
    problem: Quadratic, penalty: float, start: np.ndarray, *, tol: float, sweeps: int
) -> tuple[np.ndarray, float, int]:
    """Return the minimiser, its duality gap and the number of sweeps.

    Parameters
    ----------
    problem
        The squared error.
    penalty
        p, above 0.
    start
        Where to begin, (D,).
    tol
        Stop at a gap of this share of |b|^2.
    sweeps
        Most passes over the coordinates.
    """
    w, goal, used, size = start.astype(np.float64), tol * problem.square, 0, 10
    while True:
        slope = problem.slopes(w)
        gap = duality_gap(w, slope, problem.cross, problem.square, penalty)
        if gap <= goal or used >= sweeps:
            return w, gap, used
        work = _working_set(w, slope, penalty, size)
        size = 2 * len(work)
        part = Part(problem.block(work), problem.cross[work], problem.square, penalty)
        w[work], taken = part.minimise(w[work], 0.3 * goal, sweeps - used)
        used += taken


def _working_set(w: np.ndarray, slope: np.ndarray, penalty: float, size: int) -> np.ndarray:
    """Return the columns in use and the steepest of the others, ``size`` in all or more."""
    rank = np.where(w != 0, np.inf, np.abs(slope))
    wanted = max(size, 2 * int((w != 0).sum()))
    if wanted >= len(w):
        return np.arange(len(w))
    return np.sort(np.argpartition(-rank, wanted)[:wanted])


@dataclass(frozen=True)
class Part:
    """The problem on a few columns, whose A^T A is at hand."""

    gram: np.ndarray  # (K, K)
    cross: np.ndarray  # (K,)
    square: float
    penalty: float

    def minimise(self, w: np.ndarray, goal: float, sweeps: int) -> tuple[np.ndarray, int]:
        """Return w with a duality gap of at most the goal, and the sweeps it took."""
        slope, signs = self.cross - self.gram @ w, None
        for taken in range(1, sweeps + 1):
            self._sweep(w, slope)
            before, signs = signs, np.sign(w)
            if taken % EVERY == 0 or (before is not None and np.array_equal(signs, before)):
                w = self._descended(w)
            slope = self.cross - self.gram @ w  # computed again: the updates let rounding pile up
            if duality_gap(w, slope, self.cross, self.square, self.penalty) <= goal:
                return w, taken
        return w, sweeps

    def _sweep(self, w: np.ndarray, slope: np.ndarray) -> None:
        """Minimise over each coordinate that can move, in turn; changes w and the slopes."""
        penalty, diagonal = self.penalty, self.gram.diagonal()
        movable = (w != 0) | (np.abs(slope) > penalty)
        for j in np.flatnonzero(movable & (diagonal > 0)).tolist():
            old, curve = float(w[j]), float(diagonal[j])
            pull = float(slope[j]) + curve * old
            new = max(abs(pull) - penalty, 0.0) / curve * (1.0 if pull > 0 else -1.0)
            if new != old:
                daxpy(self.gram[j], slope, a=old - new)  # slope -= (new - old) A^T a_j
                w[j] = new

    def _descended(self, w: np.ndarray) -> np.ndarray:
        """Go to the minimum over the non-zero weights; those that would change sign become zero.

        With the signs given the objective is a quadratic. On the way to its minimum the first
        weight that reaches zero stays there, and the rest go on.
        """
        w = w.copy()
        while (support := np.flatnonzero(w)).size:
            here, signs = w[support], np.sign(w[support])
            block = self.gram[np.ix_(support, support)]
            there = _solved(block, self.cross[support] - self.penalty * signs)
            crosses = np.sign(there) != signs
            if not crosses.any():
                w[support] = there
                break
            share = np.where(crosses, here / np.where(crosses, here - there, 1.0), np.inf)
            first = share.argmin()
            w[support] = here + share[first] * (there - here)
            w[support[first]] = 0.0
        return w


def _solved(block: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Solve a positive definite system; a singular one is made definite by a hair."""
    for hair in (0.0, 1e-13, 1e-10):
        try:
            shifted = block + np.diag(hair * block.diagonal()) if hair else block
            return cho_solve(cho_factor(shifted, check_finite=False), wanted, check_finite=False)
        except LinAlgError:
            continue
    return np.linalg.lstsq(block, wanted, rcond=None)[0]
