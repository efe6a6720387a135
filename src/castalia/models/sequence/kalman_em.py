"""Expectation–maximisation for the matrices of a linear system with normal noise.

Each step smooths the series and takes the matrices that are likeliest for the smoothed states:
regressions of x_t on (x_{t-1}, u_t) and of y_t on (x_t, u_t), with the smoother's covariances added
to the sums. Matrices that are given stay as they are. Where rows are measured in part, the noise of
the measurement is kept diagonal.
Shapes: B series, T steps, N states, M measured channels, U inputs.
Reference: 1982, Shumway, Stoffer, An approach to time series smoothing and forecasting using the EM
algorithm, J. Time Series Analysis 3.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from castalia.models.sequence.kalman_covariances import FilterTable, SmootherTable
from castalia.models.sequence.kalman_recursion import LinearGaussian
from castalia.models.sequence.kalman_smoother import kalman_filter, kalman_smooth

__all__ = ["Recording", "Sums", "learn", "maximised"]


class Recording(NamedTuple):
    """Series of like length: measured (B, T, M) with NaN, inputs (B, T, U), lengths (B,)."""

    measured: Tensor
    inputs: Tensor
    lengths: Tensor


@dataclass
class Sums:
    """Sums over all steps of what the smoother expects; v = (x, u), w = (x before, u)."""

    xx: np.ndarray  # sum E[x x^T] over steps from the second, (N, N)
    xw: np.ndarray  # sum E[x w^T], (N, N + U)
    ww: np.ndarray  # sum E[w w^T]
    yv: np.ndarray  # sum y E[v^T], channel by channel, (M, N + U)
    vv: np.ndarray  # sum E[v v^T] over the steps at which each channel is measured, (M, …)
    yy: np.ndarray  # sum y y^T, (M, M)
    starts: np.ndarray  # E[x_0 - B u_0] of each series, (B, N)
    spread: np.ndarray  # sum of their covariances, (N, N)
    moves: int
    measured: np.ndarray  # steps of each channel, (M,)
    whole: bool  # whether rows are measured wholly or not at all
    log_likelihood: float

    def __add__(self, other: Sums) -> Sums:
        """Add the sums of more series."""
        mine, yours = vars(self), vars(other)
        added = {name: mine[name] + yours[name] for name in mine if name not in ("starts", "whole")}
        starts = np.concatenate([self.starts, other.starts])
        return replace(self, **added, starts=starts, whole=self.whole and other.whole)


def learn(
    system: LinearGaussian,
    data: Sequence[Recording],
    *,
    fixed: Collection[str],
    floor: np.ndarray,
    tol: float,
    steps: int,
) -> tuple[LinearGaussian, list[float], bool]:
    """Run EM until a step gains less than ``tol`` a time step in log-likelihood.

    Parameters
    ----------
    system
        Where to begin.
    data
        Series.
    fixed
        Fields of the system that stay as they are.
    floor
        Least variance of the noise of each channel, (M,).
    tol, steps
        When to stop.

    Returns
    -------
    tuple
        The system, log-likelihoods for each time step, and whether ``tol`` was reached.
    """
    total = sum(int(part.lengths.sum()) for part in data)
    found: list[float] = []
    for _ in range(steps):
        sums = expected(system, data)
        found.append(sums.log_likelihood / total)
        if len(found) > 1 and found[-1] - found[-2] < tol:
            return system, found, True
        system = maximised(system, sums, fixed, floor)
    return system, found, False


def expected(system: LinearGaussian, data: Sequence[Recording]) -> Sums:
    """Return the sums over all series."""
    table = FilterTable(system)
    smoother = SmootherTable(table)
    sums = [_sums(smoother, part) for part in data]
    total = sums[0]
    for more in sums[1:]:
        total = total + more
    return total


def _sums(smoother: SmootherTable, data: Recording) -> Sums:
    filtered = kalman_filter(smoother.table, *data)
    smoothed = kalman_smooth(smoother, filtered)
    x, u, y = smoothed.means, data.inputs, data.measured
    seen = ~y.isnan()
    inside = torch.arange(x.shape[1], device=x.device) < data.lengths[:, None]
    moved = inside[:, 1:]
    n = x.shape[2]
    v, w = torch.cat([x, u], dim=2), torch.cat([x[:, :-1], u[:, 1:]], dim=2)
    ww, xw = _outer(w, w, moved), _outer(x[:, 1:], w, moved)
    covs, mask = np.stack(smoother.covariances), moved.cpu().numpy()
    ww[:n, :n] += _weighted(covs, smoothed.steps[:, :-1], mask)
    xw[:, :n] += _lagged(smoother, covs, smoothed.steps[:, 1:], filtered.steps[:, :-1], mask)
    return Sums(
        xx=_outer(x[:, 1:], x[:, 1:], moved) + _weighted(covs, smoothed.steps[:, 1:], mask),
        xw=xw,
        ww=ww,
        **_measurements(v, y, seen, covs, smoothed.steps),
        starts=(x[:, 0] - u[:, 0] @ torch.from_numpy(smoother.table.system.control).to(u).T)
        .cpu()
        .numpy(),
        spread=covs[smoothed.steps[:, 0]].sum(axis=0),
        moves=int(mask.sum()),
        log_likelihood=float(filtered.log_likelihood.sum()),
    )


def _measurements(
    v: Tensor, y: Tensor, seen: Tensor, covs: np.ndarray, steps: np.ndarray
) -> dict[str, Any]:
    """Return the sums of the regression of y on v."""
    filled, n = torch.where(seen, y, 0.0), covs.shape[1]
    mask = seen.cpu().numpy()
    whole = bool((mask == mask[..., :1]).all())
    vv = []
    for channel in range(1 if whole else y.shape[2]):
        products = _outer(v, v, seen[..., channel])
        products[:n, :n] += _weighted(covs, steps, mask[..., channel])
        vv.append(products)
    vv = vv * y.shape[2] if whole else vv
    return {
        "yv": _outer(filled, v, seen[..., 0] | True),
        "vv": np.stack(vv),
        "yy": _outer(filled, filled, seen[..., 0] | True),
        "measured": mask.sum(axis=(0, 1)),
        "whole": whole,
    }


def _outer(one: Tensor, other: Tensor, mask: Tensor) -> np.ndarray:
    """Return sum_t one_t other_t^T over the steps of a mask."""
    rows = (one * mask[..., None]).flatten(0, 1)
    return (rows.T @ other.flatten(0, 1)).cpu().numpy()


def _weighted(covs: np.ndarray, steps: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the sum of the covariances of some steps."""
    counts = np.bincount(steps[mask], minlength=len(covs)).astype(np.float64)
    return np.einsum("i,ijk->jk", counts, covs)


def _lagged(
    smoother: SmootherTable,
    covs: np.ndarray,
    later: np.ndarray,
    before: np.ndarray,
    mask: np.ndarray,
) -> np.ndarray:
    """Return the sum of Cov(x_t, x_{t-1}) = P^s_t G_{t-1}^T."""
    keys = later[mask].astype(np.int64) * len(smoother.table.roots) + before[mask]
    pairs, counts = np.unique(keys, return_counts=True)
    total = np.zeros(covs.shape[1:])
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        smoothed, filtered = divmod(pair, len(smoother.table.roots))
        total += count * covs[smoothed] @ smoother.gain(filtered).T
    return total


def maximised(
    system: LinearGaussian, sums: Sums, fixed: Collection[str], floor: np.ndarray
) -> LinearGaussian:
    """Return the likeliest system; fields that are ``fixed`` stay."""
    new = {**_dynamics(system, sums, fixed), **_measurement(system, sums, fixed, floor)}
    mean = system.mean if "mean" in fixed else sums.starts.mean(axis=0)
    apart = sums.starts - mean
    new["mean"] = mean
    new["covariance"] = (sums.spread + apart.T @ apart) / len(apart)
    return system._replace(**{name: a for name, a in new.items() if name not in fixed})


def _dynamics(system: LinearGaussian, sums: Sums, fixed: Collection[str]) -> dict[str, np.ndarray]:
    n = len(system.transition)
    found = _regressed(
        np.hstack([system.transition, system.control]),
        sums.xw,
        sums.ww,
        [slice(0, n)] * ("transition" in fixed) + [slice(n, None)] * ("control" in fixed),
    )
    left = sums.xx - found @ sums.xw.T - sums.xw @ found.T + found @ sums.ww @ found.T
    noise = 0.5 * (left + left.T) / max(sums.moves, 1)
    return {"transition": found[:, :n], "control": found[:, n:], "process_noise": noise}


def _measurement(
    system: LinearGaussian, sums: Sums, fixed: Collection[str], floor: np.ndarray
) -> dict[str, np.ndarray]:
    n = len(system.transition)
    held = [slice(0, n)] * ("observation" in fixed) + [slice(n, None)] * ("feedthrough" in fixed)
    before = np.hstack([system.observation, system.feedthrough])
    rows = [
        _regressed(before[i : i + 1], sums.yv[i : i + 1], sums.vv[i], held)
        for i in range(len(before))
    ]
    found = np.vstack(rows)
    if sums.whole:
        cross = found @ sums.yv.T
        left = sums.yy - cross - cross.T + found @ sums.vv[0] @ found.T
        noise = 0.5 * (left + left.T) / max(sums.measured[0], 1)
    else:
        fitted = np.einsum("iv,ivw,iw->i", found, sums.vv, found)
        left = sums.yy.diagonal() - 2 * (found * sums.yv).sum(axis=1) + fitted
        noise = np.diag(left / np.maximum(sums.measured, 1))
    lacking = np.maximum(floor - noise.diagonal(), 0)
    return {
        "observation": found[:, :n],
        "feedthrough": found[:, n:],
        "measurement_noise": noise + np.diag(lacking),
    }


def _regressed(
    before: np.ndarray, cross: np.ndarray, gram: np.ndarray, held: Sequence[slice]
) -> np.ndarray:
    """Return the least squares of cross = found gram, with some columns held as they were."""
    free = np.ones(gram.shape[0], dtype=bool)
    for columns in held:
        free[columns] = False
    found = before.copy()
    if free.any():
        right = cross[:, free] - before[:, ~free] @ gram[~free][:, free]
        square = gram[np.ix_(free, free)]
        found[:, free] = np.linalg.lstsq(square, right.T, rcond=1e-14)[0].T
    return found
