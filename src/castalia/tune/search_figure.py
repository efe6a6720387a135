"""The course of a search: every trial, the best so far, and those that were given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from castalia.tune.trial_record import COMPLETE, PRUNED
from castalia.utils.figure_style import COLOURS, MUTED, caption, label, start, whole_ticks

__all__ = ["draw_search"]


def draw_search(table: Mapping[str, Any], metric: str, folds: int, ax: Any = None) -> Any:
    """Draw ``cv_results_``; trials that were given up, where their folds so far point."""
    ax, _ = start(ax, (6.4, 3.4))
    state, mean = np.array(table["state"]), np.asarray(table[f"mean_test_{metric}"])
    expected = _expected_means(table, metric, folds)
    number = np.arange(1, len(mean) + 1)
    done, pruned = state == COMPLETE, (state == PRUNED) & np.isfinite(expected)
    ax.plot(number[done], mean[done], "o", color=COLOURS[0], markersize=4.5, label="trial")
    if pruned.any():
        ax.plot(number[pruned], expected[pruned], "x", color=MUTED, markersize=5, label="given up")
    best = np.fmax.accumulate(np.where(done, mean, -np.inf))
    best[~np.isfinite(best)] = np.nan
    ax.step(number, best, where="post", color=COLOURS[1], linewidth=1.6, label="best so far")
    ax.set(xlabel="trial", ylabel=label(f"mean {metric} over {folds} folds", 40))
    whole_ticks(ax.xaxis)
    caption(ax)
    return ax


def _expected_means(table: Mapping[str, Any], metric: str, folds: int) -> np.ndarray:
    """Return the mean that each trial would have if its other folds were as hard as for the rest.

    The mean of k folds is moved by how much, in the median of the complete trials, the mean of all
    folds differs from that of the same k. NaN where no fold is done.
    """
    scores = np.array([table[f"split{i}_test_{metric}"] for i in range(folds)]).T
    whole = scores[np.isfinite(scores).all(axis=1)]
    found = np.full(len(scores), np.nan)
    for i, row in enumerate(scores):
        done = np.isfinite(row)
        if done.any() and len(whole):
            moved = np.median(whole.mean(axis=1) - whole[:, done].mean(axis=1))
            found[i] = row[done].mean() + moved
    return found
