"""Kalman's filter and the Rauch–Tung–Striebel smoother, step by step as in the textbook.

state        x_t = F x_{t-1} + B u_t + q_t,   q ~ N(0, Q);   x_0 ~ N(m + B u_0, P)
measurement  y_t = H x_t + D u_t + r_t,       r ~ N(0, R)

predict      m' = F m + B u,  P' = F P F^T + Q
update       S = H P' H^T + R,  K = P' H^T S^-1,  m = m' + K (y - H m' - D u),  P = P' - K S K^T
smooth       G = P F^T P'^-1,  m^s = m + G (m^s+ - m'+),  P^s = P + G (P^s+ - P'+) G^T

The plus marks the step after.

This is the definition; ``kalman_smoother`` computes the same faster and keeps covariances positive.
Shapes: T steps, N states, M measured channels, U inputs.
Reference: 1960, Kalman, A new approach to linear filtering and prediction problems; 1965, Rauch,
Tung, Striebel, Maximum likelihood estimates of linear dynamic systems.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["LinearGaussian", "plain_filter", "plain_smooth"]


class LinearGaussian(NamedTuple):
    """The matrices of a linear system with normal noise, in float64."""

    transition: np.ndarray  # F (N, N)
    observation: np.ndarray  # H (M, N)
    process_noise: np.ndarray  # Q (N, N)
    measurement_noise: np.ndarray  # R (M, M)
    mean: np.ndarray  # m (N,)
    covariance: np.ndarray  # P (N, N)
    control: np.ndarray  # B (N, U)
    feedthrough: np.ndarray  # D (M, U)


def plain_filter(
    system: LinearGaussian, y: np.ndarray, u: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return filtered means (T, N), covariances (T, N, N) and the log-likelihood of y (T, M).

    NaN marks what was not measured.
    """
    u = np.zeros((len(y), system.control.shape[1])) if u is None else u
    mean, cov = system.mean + system.control @ u[0], system.covariance
    means, covs, log_likelihood = [], [], 0.0
    for t, measured in enumerate(y):
        if t:
            mean = system.transition @ mean + system.control @ u[t]
            cov = system.transition @ cov @ system.transition.T + system.process_noise
        seen = ~np.isnan(measured)
        if seen.any():
            h, r = system.observation[seen], system.measurement_noise[np.ix_(seen, seen)]
            error = measured[seen] - h @ mean - (system.feedthrough @ u[t])[seen]
            spread = h @ cov @ h.T + r
            gain = np.linalg.solve(spread, h @ cov).T
            mean, cov = mean + gain @ error, cov - gain @ spread @ gain.T
            distance = error @ np.linalg.solve(spread, error)
            log_volume = np.linalg.slogdet(2 * np.pi * spread)[1]
            log_likelihood -= 0.5 * float(distance + log_volume)
        means.append(mean)
        covs.append(cov)
    return np.array(means), np.array(covs), log_likelihood


def plain_smooth(
    system: LinearGaussian, y: np.ndarray, u: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return smoothed means (T, N) and covariances (T, N, N)."""
    u = np.zeros((len(y), system.control.shape[1])) if u is None else u
    means, covs, _ = plain_filter(system, y, u)
    f = system.transition
    for t in range(len(y) - 2, -1, -1):
        ahead = f @ covs[t] @ f.T + system.process_noise
        gain = np.linalg.solve(ahead, f @ covs[t]).T
        predicted = f @ means[t] + system.control @ u[t + 1]
        means[t] = means[t] + gain @ (means[t + 1] - predicted)
        covs[t] = covs[t] + gain @ (covs[t + 1] - ahead) @ gain.T
    return means, covs
