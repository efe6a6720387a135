"""ETTh1 by ridge regression in closed form: what a linear map of a window can reach on this split.

One map from 336 hours to the horizon for all channels, relative to the last step of the window or
to its mean and deviation; the penalty is chosen by the validation months. Split, scaling and
windows are those of ``evidence/forecasts.py``.
"""

from __future__ import annotations

import numpy as np

from evidence.forecasts import CONTEXT, TEST, TRAIN, VALIDATION, load
from evidence.rows import keep, print_table

PENALTIES = (1e-2, 1e2, 1e3, 3e3, 1e4, 3e4)
Pair = tuple[np.ndarray, np.ndarray]


def pairs(values: np.ndarray, begin: int, end: int, horizon: int, every: int) -> Pair:
    """Past and future of every window of every channel, (N, 336) and (N, horizon)."""
    start = np.arange(begin - CONTEXT, end - CONTEXT - horizon + 1, every)
    found = np.lib.stride_tricks.sliding_window_view(values, CONTEXT + horizon, axis=0)[start]
    found = found.reshape(-1, CONTEXT + horizon)
    return found[:, :CONTEXT], found[:, CONTEXT:]


def levels(past: np.ndarray, level: str) -> Pair:
    """Shift and scale of each window, (N, 1)."""
    if level == "last":
        return past[:, -1:], np.ones((len(past), 1))
    return past.mean(axis=1, keepdims=True), past.std(axis=1, keepdims=True) + 1e-5


def features(past: np.ndarray, level: str) -> np.ndarray:
    """The window in units of its level, and a constant."""
    shift, scale = levels(past, level)
    return np.hstack([(past - shift) / scale, np.ones((len(past), 1))])


def errors(train: Pair, others: list[Pair], level: str) -> list[list[float]]:
    """Mean squared errors on further pairs, by penalty."""
    shift, scale = levels(train[0], level)
    z, y = features(train[0], level), (train[1] - shift) / scale
    gram, cross = (z * scale**2).T @ z, (z * scale**2).T @ y  # errors count in the series' units
    found = []
    for penalty in PENALTIES:
        weights = np.linalg.solve(gram + penalty * np.eye(len(gram)), cross)
        row = []
        for past, future in others:
            shift_, scale_ = levels(past, level)
            guess = features(past, level) @ weights * scale_ + shift_
            row.append(float(np.square(guess - future).mean()))
        found.append(row)
    return found


def run(quick: bool = False) -> None:
    """Fit both levels at both horizons."""
    values, rows = load(), []
    for level in ("last", "window"):
        row = [level]
        for horizon in (96, 720):
            every = 50 if quick else 1
            train, held, test = (
                pairs(values, a, b, horizon, every)
                for a, b in ((CONTEXT, TRAIN), (TRAIN, VALIDATION), (VALIDATION, TEST))
            )
            found = errors(train, [held, test], level)
            best = int(np.argmin([of_held for of_held, _ in found]))
            keep("ridge_forecasts", level=level, horizon=horizon, errors=found)
            row.append(f"{found[best][1]:.3f} ({PENALTIES[best]:g})")
        rows.append(row)
    print_table("ETTh1, ridge", ["level", "96 h: MSE (penalty)", "720 h: MSE (penalty)"], rows)
