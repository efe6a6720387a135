"""The course of a search: every trial, the best so far, and those that were given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from castalia.tune.trial_record import COMPLETE, PRUNED
from castalia.utils.figure_style import COLOURS, MUTED, caption, label, start, whole_ticks

__all__ = ["draw_search"]


def draw_search(table: Mapping[str, Any], metric: str, folds: int, ax: Any = None) -> Any:
    """Draw ``cv_results_``; trials that were given up, at the mean of the folds they had done."""
    ax, _ = start(ax, (6.4, 3.4))
    state, mean = np.array(table["state"]), np.asarray(table[f"mean_test_{metric}"])
    partial = _partial_means(table, metric, folds)
    number = np.arange(1, len(mean) + 1)
    done, pruned = state == COMPLETE, (state == PRUNED) & np.isfinite(partial)
    ax.plot(number[done], mean[done], "o", color=COLOURS[0], markersize=4.5, label="trial")
    if pruned.any():
        ax.plot(number[pruned], partial[pruned], "x", color=MUTED, markersize=5, label="given up")
    best = np.fmax.accumulate(np.where(done, mean, -np.inf))
    best[~np.isfinite(best)] = np.nan
    ax.step(number, best, where="post", color=COLOURS[1], linewidth=1.6, label="best so far")
    ax.set(xlabel="trial", ylabel=label(f"mean {metric} over {folds} folds", 40))
    whole_ticks(ax.xaxis)
    caption(ax)
    return ax


def _partial_means(table: Mapping[str, Any], metric: str, folds: int) -> np.ndarray:
    """Return the mean over the folds that each trial has done; NaN where there is none."""
    scores = np.array([table[f"split{i}_test_{metric}"] for i in range(folds)])
    done = np.isfinite(scores)
    total = np.where(done, scores, 0.0).sum(axis=0)
    return np.where(done.any(axis=0), total / np.maximum(done.sum(axis=0), 1), np.nan)
