"""Covariances of Kalman's filter and smoother, each computed once.

They depend on which channels were measured when, not on what was measured, and settle after a few
steps. So steps share them: a table holds the distinct ones, and each step has a number in it. A
hundred thousand steps without a gap need some dozens of matrices; after a gap the filter soon
returns to those it had.

All of it is done on square roots, P = L L^T, by orthogonal transformations: no subtraction, so a
covariance cannot lose its positive definiteness however long the series and however exact the
measurement. Shapes: T steps, N states, M measured channels.
Reference: 1977, Bierman, Factorization methods for discrete sequential estimation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from castalia.errors import InvalidParameter
from castalia.models.sequence.kalman_recursion import LinearGaussian

__all__ = ["FilterTable", "SmootherTable", "square_root"]

SAME = 1e-13  # covariances that differ by less, relative to their largest entry, are one


def square_root(matrix: np.ndarray) -> np.ndarray:
    """Return L with L L^T = matrix, also of one that is only semidefinite."""
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
        return vectors * np.sqrt(values.clip(0))


def _triangle(wide: np.ndarray) -> np.ndarray:
    """Return the square L with L L^T = wide wide^T, lower triangular."""
    upper: np.ndarray = np.linalg.qr(wide.T, mode="r")  # type: ignore[assignment]
    return upper.T


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.abs(one - other).max() <= SAME * np.abs(other).max())


@dataclass
class FilterTable:
    """Distinct steps of the filter.

    Attributes
    ----------
    roots, covariances
        Of the filtered state, (N, N) each.
    predicted
        Covariances before the measurement.
    gains
        K, (N, M); columns of channels not measured are zero.
    whites
        S^-1/2, (M, M), zero for them; ``whites @ error`` is standard normal.
    constants
        The part of a step's log-likelihood that does not depend on the measurement.
    patterns
        Which channels were measured, (M,).
    """

    system: LinearGaussian
    roots: list[np.ndarray] = field(default_factory=list)
    covariances: list[np.ndarray] = field(default_factory=list)
    predicted: list[np.ndarray] = field(default_factory=list)
    gains: list[np.ndarray] = field(default_factory=list)
    whites: list[np.ndarray] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    patterns: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._next: dict[tuple[int, bytes], int] = {}
        self._settled: dict[bytes, int] = {}
        self._noise = square_root(self.system.process_noise)
        self._begin = square_root(self.system.covariance)

    def walk(self, measured: np.ndarray) -> np.ndarray:
        """Return the number of each step's covariances, (T,), for a mask (T, M)."""
        steps, at = np.empty(len(measured), dtype=np.int64), -1
        change = np.flatnonzero((measured[1:] != measured[:-1]).any(axis=1)) + 1
        for first, end in zip([0, *change], [*change, len(measured)], strict=True):
            pattern = measured[first].tobytes()
            for t in range(first, end):
                before, at = at, self._follow(at, pattern)
                steps[t] = at
                if at == before:  # settled: the same until something else is measured
                    steps[t:end] = at
                    break
        return steps

    def _follow(self, before: int, pattern: bytes) -> int:
        """Return the step that comes after another, computed where it is new."""
        key = before, pattern
        if key not in self._next:
            self._next[key] = self._new(before, pattern)
        return self._next[key]

    def _new(self, before: int, pattern: bytes) -> int:
        system = self.system
        wide = (
            self._begin
            if before < 0
            else np.hstack([system.transition @ self.roots[before], self._noise])
        )
        predicted = _triangle(wide)
        root, gain, white, constant = self._measured(predicted, pattern)
        covariance = root @ root.T
        known = [self._settled.get(pattern, -1)]
        if before >= 0 and self.patterns[before] == pattern:
            known.append(before)
        for other in known:
            if other >= 0 and _close(covariance, self.covariances[other]):
                self._settled[pattern] = other
                return other
        self.roots.append(root)
        self.covariances.append(covariance)
        self.predicted.append(predicted @ predicted.T)
        self.gains.append(gain)
        self.whites.append(white)
        self.constants.append(constant)
        self.patterns.append(pattern)
        return len(self.roots) - 1

    def _measured(
        self, predicted: np.ndarray, pattern: bytes
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return the root after a measurement, its gain, whitening and constant."""
        m, n = self.system.observation.shape
        seen = np.flatnonzero(np.frombuffer(pattern, dtype=bool))
        gain, white = np.zeros((n, m)), np.zeros((m, m))
        if not len(seen):
            return predicted, gain, white, 0.0
        d = len(seen)
        array = np.zeros((d + n, d + n))  # [R^1/2, H L; 0, L] times its transpose is [S, ...]
        array[:d, :d] = square_root(self.system.measurement_noise[np.ix_(seen, seen)])
        array[:d, d:] = self.system.observation[seen] @ predicted
        array[d:, d:] = predicted
        found = _triangle(array)
        inverse = _inverse(found[:d, :d])
        gain[:, seen] = found[d:, :d] @ inverse
        white[np.ix_(seen, seen)] = inverse
        log_volume = np.log(np.abs(found[:d, :d].diagonal())).sum()
        return found[d:, d:], gain, white, float(-log_volume - 0.5 * d * np.log(2 * np.pi))


@dataclass
class SmootherTable:
    """Distinct steps of the smoother, over those of a filter.

    Attributes
    ----------
    covariances
        Of the smoothed state, (N, N) each.
    gains
        G of each step of the filter, (N, N).
    """

    table: FilterTable
    covariances: list[np.ndarray] = field(default_factory=list)
    gains: dict[int, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._roots: list[np.ndarray] = []
        self._of: list[int] = []
        self._before: dict[tuple[int, int], int] = {}
        self._settled: dict[int, int] = {}

    def walk(self, steps: np.ndarray) -> np.ndarray:
        """Return the number of each step's smoothed covariance, (T,), for the filter's steps."""
        found, at = np.empty_like(steps), -1
        change = np.flatnonzero(steps[1:] != steps[:-1]) + 1
        runs = list(zip([0, *change], [*change, len(steps)], strict=True))
        for first, end in reversed(runs):
            filtered = int(steps[first])
            for t in range(end - 1, first - 1, -1):
                after, at = at, self._follow(at, filtered)
                found[t] = at
                if at == after:
                    found[first : t + 1] = at
                    break
        return found

    def gain(self, filtered: int) -> np.ndarray:
        """Return G = P F^T P'^-1 of a step of the filter."""
        if filtered not in self.gains:
            system = self.table.system
            cov = self.table.covariances[filtered]
            ahead = system.transition @ cov @ system.transition.T + system.process_noise
            self.gains[filtered] = _solved(ahead, system.transition @ cov).T
        return self.gains[filtered]

    def _follow(self, after: int, filtered: int) -> int:
        key = after, filtered
        if key not in self._before:
            self._before[key] = self._new(after, filtered)
        return self._before[key]

    def _new(self, after: int, filtered: int) -> int:
        root = self.table.roots[filtered]
        if after >= 0:
            gain, system = self.gain(filtered), self.table.system
            kept = root - gain @ (system.transition @ root)
            noise = gain @ square_root(system.process_noise)
            root = _triangle(np.hstack([kept, noise, gain @ self._roots[after]]))
        covariance = root @ root.T
        known = [self._settled.get(filtered, -1)]
        if after >= 0 and self._of[after] == filtered:
            known.append(after)
        for other in known:
            if other >= 0 and _close(covariance, self.covariances[other]):
                self._settled[filtered] = other
                return other
        self._roots.append(root)
        self.covariances.append(covariance)
        self._of.append(filtered)
        return len(self._roots) - 1


def _inverse(root: np.ndarray) -> np.ndarray:
    """Return the inverse of a root of what is measured, or say that something is certain."""
    try:
        return np.linalg.inv(root)
    except np.linalg.LinAlgError as error:
        raise InvalidParameter(
            "KalmanFilter: `measurement_noise` must leave every measurement some doubt; with the "
            "state's own covariance of 0 the covariance of a measurement is singular. Add a small "
            "number to the diagonal of `measurement_noise` or `covariance`."
        ) from error


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return matrix^-1 right; of least norm where the matrix has no inverse."""
    try:
        found = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        found = np.full_like(right, np.nan)
    if np.isfinite(found).all():
        return found
    return np.linalg.lstsq(matrix, right, rcond=None)[0]
