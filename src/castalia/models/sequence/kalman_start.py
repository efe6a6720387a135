"""Where EM for a linear system begins: states as the main directions of short stretches of series.

The principal components of (y_t, …, y_{t+p-1}) over all t are a state from which the next p
measurements can be predicted as well as linearly possible; regressions give the matrices.
Shapes: T steps, N states, M channels, p steps of a stretch.
Reference: 1966, Ho, Kálmán, Effective construction of linear state-variable models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from castalia.models.sequence.kalman_recursion import LinearGaussian

__all__ = ["first_system", "stabilised"]

ROWS = 20_000  # stretches that are enough


def first_system(parts: Sequence[np.ndarray], states: int, inputs: int) -> LinearGaussian:
    """Return a stable system for centred series (T, M) with NaN where not measured."""
    filled = [np.where(np.isnan(part), 0.0, part) for part in parts]
    m = filled[0].shape[1]
    span = min(max(2, math.ceil(2 * states / m)), min(map(len, filled)))
    stretches = [
        sliding_window_view(part, span, axis=0).transpose(0, 2, 1).reshape(-1, span * m)
        for part in filled
    ]
    rows = np.concatenate([stretch[:ROWS] for stretch in stretches])
    directions = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2]
    basis = np.zeros((states, span * m))
    basis[: min(states, len(directions))] = directions[:states]
    states_of = [stretch @ basis.T for stretch in stretches]
    before = np.concatenate([x[:-1] for x in states_of])
    after = np.concatenate([x[1:] for x in states_of])
    now, seen = np.concatenate(states_of), np.concatenate([s[:, :m] for s in stretches])
    transition = stabilised(_regressed(before, after))
    observation = _regressed(now, seen)
    tiny = 1e-6 * max(float(np.square(now).mean()), 1e-12) * np.eye(states)
    least = 1e-3 * np.diag(np.maximum(np.square(seen).mean(axis=0), 1e-12))
    return LinearGaussian(
        transition=transition,
        observation=observation,
        process_noise=_spread(after - before @ transition.T) + tiny,
        measurement_noise=_spread(seen - now @ observation.T) + least,
        mean=np.mean([x[0] for x in states_of], axis=0),
        covariance=_spread(now) + tiny,
        control=np.zeros((states, inputs)),
        feedthrough=np.zeros((m, inputs)),
    )


def stabilised(matrix: np.ndarray, radius: float = 0.995) -> np.ndarray:
    """Return the matrix, shrunk where its spectral radius is above ``radius``."""
    largest = np.abs(np.linalg.eigvals(matrix)).max()
    return matrix * min(1.0, radius / largest) if largest > 0 else matrix


def _regressed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return W of y = W x by least squares with a slight penalty."""
    if not len(x):
        return np.zeros((y.shape[1], x.shape[1]))
    gram = x.T @ x
    penalty = 1e-8 * max(float(np.trace(gram)) / len(gram), 1e-12) * np.eye(len(gram))
    return np.linalg.solve(gram + penalty, x.T @ y).T


def _spread(rows: np.ndarray) -> np.ndarray:
    return rows.T @ rows / max(len(rows), 1)
