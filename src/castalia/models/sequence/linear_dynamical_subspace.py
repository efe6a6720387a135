"""Identification of a linear system from inputs and outputs, in closed form.

1. y_t = sum_i a_i y_{t-i} + sum_i b_i x_{t-i} by least squares;
2. its answer to an impulse, g_0, g_1 …, by running it;
3. the block Hankel matrix of g_1, g_2 … is observability times controllability: its singular value
   decomposition gives the smallest system with these answers.

Shapes: T steps, N states, U inputs, M outputs, L lags.
Reference: 1966, Ho, Kálmán, Effective construction of linear state-variable models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from castalia.models.sequence.affine_scan import affine_scan
from castalia.models.sequence.kalman_start import stabilised

__all__ = ["Realisation", "markov_parameters", "realised", "simulated"]


class Realisation(NamedTuple):
    """h_t = A h_{t-1} + B x_t, y_t = C h_t + D x_t."""

    transition: np.ndarray  # A (N, N)
    control: np.ndarray  # B (N, U)
    observation: np.ndarray  # C (M, N)
    feedthrough: np.ndarray  # D (M, U)


def markov_parameters(
    inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], lags: int, alpha: float, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the constant (M,) and the first ``2 n`` answers to an impulse, (2 n, M, U)."""
    middle = np.concatenate(outputs).mean(axis=0)
    m, u = outputs[0].shape[1], inputs[0].shape[1]
    rows, targets = zip(
        *(_lagged(x, y - middle, lags) for x, y in zip(inputs, outputs, strict=True)), strict=True
    )
    z, y = np.concatenate(rows), np.concatenate(targets)
    z = np.hstack([z, np.ones((len(z), 1))])
    gram = z.T @ z
    penalty = alpha * np.diag(np.maximum(gram.diagonal(), 1e-300))
    weights = np.linalg.lstsq(gram + penalty, z.T @ y, rcond=1e-13)[0].T  # (M, L M + (L + 1) U + 1)
    past = weights[:, : lags * m].reshape(m, lags, m)
    direct = weights[:, lags * m : -1].reshape(m, lags + 1, u)
    answers = np.zeros((2 * n, m, u))
    for k in range(2 * n):
        answers[k] = direct[:, k] if k <= lags else 0.0
        for i in range(1, min(k, lags) + 1):
            answers[k] += past[:, i - 1] @ answers[k - i]
    at_rest = np.eye(m) - past.sum(axis=1)
    return middle + np.linalg.lstsq(at_rest, weights[:, -1], rcond=None)[0], answers


def _lagged(x: np.ndarray, y: np.ndarray, lags: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (y_{t-1} … y_{t-L}, x_t … x_{t-L}) and their y_t."""
    t = len(y)
    past = [y[lags - i : t - i] for i in range(1, lags + 1)]
    driven = [x[lags - i : t - i] for i in range(lags + 1)]
    return np.hstack([*past, *driven]), y[lags:]


def realised(answers: np.ndarray, states: int) -> Realisation:
    """Return the system of some states whose answers to an impulse are nearest, (2 n, M, U)."""
    count, m, u = answers.shape
    n = count // 2
    block = [[answers[i + j] for j in range(n)] for i in range(n)]
    later = [[answers[i + j + 1] for j in range(n)] for i in range(n)]
    left, size, right = np.linalg.svd(np.block(block), full_matrices=False)
    keep = max(1, min(states, int((size > 1e-10 * size[0]).sum()))) if size[0] > 0 else 1
    root = np.sqrt(np.maximum(size[:keep], 1e-300))
    observe, steer = left[:, :keep] * root, root[:, None] * right[:keep]
    moved = (left[:, :keep] / root).T @ np.block(later) @ (right[:keep].T / root)
    system = _padded(stabilised(moved, 0.9999), steer[:, :u], observe[:m], states)
    direct = answers[0] - system[2] @ system[1]
    return Realisation(*system, np.where(np.abs(direct) > 1e-9, direct, 0.0))


def _padded(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, states: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add states that do nothing where fewer are enough."""
    lack = states - len(a)
    return np.pad(a, (0, lack)), np.pad(b, ((0, lack), (0, 0))), np.pad(c, ((0, 0), (0, lack)))


def simulated(system: Realisation, offset: np.ndarray, inputs: Tensor) -> Tensor:
    """Return the outputs (B, T, M) of inputs (B, T, U), from a state of zero."""
    a, b, c, d, o = (torch.from_numpy(x).to(inputs) for x in (*system, offset))
    pushed = torch.nan_to_num(inputs) @ b.T
    which = torch.zeros(inputs.shape[:2], dtype=torch.long, device=inputs.device)
    states = affine_scan(a[None], which, pushed, torch.zeros_like(pushed[:, 0]))
    return states @ c.T + torch.nan_to_num(inputs) @ d.T + o
