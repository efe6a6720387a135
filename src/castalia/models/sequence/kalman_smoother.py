"""Kalman's filter and smoother for batches of long series.

Covariances come from the tables of ``kalman_covariances``; given them, the means obey affine
recursions, which ``affine_scan`` computes for many steps at once, on any device. Padding counts as
not measured, which changes nothing before it.
Shapes: B series, T steps, N states, M measured channels, U inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from castalia.models.sequence.affine_scan import affine_scan, times
from castalia.models.sequence.kalman_covariances import FilterTable, SmootherTable

__all__ = ["Filtered", "Smoothed", "covariances", "kalman_filter", "kalman_smooth"]


class Filtered(NamedTuple):
    """What is known at each step from what was measured until then."""

    predicted: Tensor  # means before the measurement (B, T, N)
    means: Tensor  # and after it (B, T, N)
    steps: np.ndarray  # numbers in the table (B, T)
    log_likelihood: Tensor  # (B,)


class Smoothed(NamedTuple):
    """What is known at each step from the whole series."""

    means: Tensor  # (B, T, N)
    steps: np.ndarray  # numbers in the table of the smoother (B, T)


def kalman_filter(
    table: FilterTable, measured: Tensor, inputs: Tensor, lengths: Tensor
) -> Filtered:
    """Filter series (B, T, M) with NaN where not measured, and inputs (B, T, U)."""
    system = table.system
    seen = ~measured.isnan()
    steps = np.stack([table.walk(mask) for mask in seen.cpu().numpy()])
    which = torch.from_numpy(steps).to(measured.device)
    f, h, b, d, mean = (
        _on(measured, a)
        for a in (
            system.transition,
            system.observation,
            system.control,
            system.feedthrough,
            system.mean,
        )
    )
    gains = _on(measured, np.stack(table.gains))  # (I, N, M)
    unit = torch.eye(len(f), dtype=f.dtype, device=f.device)
    direct = inputs @ d.T
    values = torch.where(seen, measured - direct, 0.0)
    pushed = inputs @ b.T  # (B, T, N)
    offsets = times(f @ gains, which, values)[:, :-1] + pushed[:, 1:]
    first = mean + pushed[:, 0]
    later = affine_scan(f @ (unit - gains @ h), which[:, :-1], offsets, first)
    predicted = torch.cat([first[:, None], later], dim=1)
    errors = torch.where(seen, values - predicted @ h.T, 0.0)
    means = predicted + times(gains, which, errors)
    white = times(_on(measured, np.stack(table.whites)), which, errors)
    constants = _on(measured, np.array(table.constants))[which]
    inside = torch.arange(measured.shape[1], device=lengths.device) < lengths[:, None]
    log_steps = (constants - 0.5 * white.square().sum(dim=2)) * inside
    return Filtered(predicted, means, steps, log_steps.sum(dim=1))


def kalman_smooth(table: SmootherTable, found: Filtered) -> Smoothed:
    """Smooth what was filtered."""
    steps = np.stack([table.walk(row) for row in found.steps])
    gains = _gains(table, found.steps)
    gain = _on(found.means, gains)
    which = torch.from_numpy(found.steps).to(found.means.device)[:, :-1].flip(1)
    back, ahead = found.means[:, :-1].flip(1), found.predicted[:, 1:].flip(1)
    offsets = back - times(gain, which, ahead)
    earlier = affine_scan(gain, which, offsets, found.means[:, -1])
    return Smoothed(torch.cat([earlier.flip(1), found.means[:, -1:]], dim=1), steps)


def _gains(table: SmootherTable, steps: np.ndarray) -> np.ndarray:
    n = len(table.table.roots[0])
    gains = np.zeros((len(table.table.roots), n, n))
    for step in np.unique(steps):
        gains[step] = table.gain(int(step))
    return gains


def _on(like: Tensor, array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(like)


def covariances(tables: Sequence[np.ndarray], steps: np.ndarray) -> Tensor:
    """Return the matrices of all steps, (B, T, N, N)."""
    return torch.from_numpy(np.stack(tables)[steps])
