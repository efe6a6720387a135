"""What a search leaves, in scikit-learn's words: ``cv_results_``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from castalia.tune.trial_record import Trial

__all__ = ["cv_results"]

TIMES = ("fit_time", "score_time")


def cv_results(
    trials: Sequence[Trial],
    settings: Sequence[Mapping[str, Any]],
    folds: int,
    metrics: Sequence[str],
) -> dict[str, Any]:
    """Return one entry a trial, in order of their numbers; of a grid, in its order.

    Beside scikit-learn's columns, ``state`` says how a trial ended. Trials that were given up or
    failed have no mean, and come last in the ranks.
    """
    return {
        **_times(trials),
        **{f"param_{name}": _column([s[name] for s in settings]) for name in settings[0]},
        "params": [dict(s) for s in settings],
        **{k: v for name in metrics for k, v in _scores(trials, folds, name).items()},
        "state": [trial.state for trial in trials],
    }


def _times(trials: Sequence[Trial]) -> dict[str, np.ndarray]:
    found = {}
    for name in TIMES:
        spent = [trial.scores(name) or [np.nan] for trial in trials]
        found[f"mean_{name}"] = np.array([np.mean(s) for s in spent])
        found[f"std_{name}"] = np.array([np.std(s) for s in spent])
    return found


def _column(values: Sequence[Any]) -> np.ma.MaskedArray:
    """Return values of any kind as scikit-learn does: masked where a setting does not apply."""
    kinds = {np.asarray(value).dtype.kind for value in values if np.ndim(value) == 0}
    numbers = all(np.ndim(value) == 0 for value in values) and kinds <= set("biuf")
    kind = np.result_type(*values) if numbers else object
    column: np.ma.MaskedArray = np.ma.masked_all(len(values), dtype=kind)
    for i, value in enumerate(values):
        column[i] = value
    return column


def _scores(trials: Sequence[Trial], folds: int, name: str) -> dict[str, np.ndarray]:
    table = np.full((len(trials), folds), np.nan)
    for row, trial in zip(table, trials, strict=True):
        row[: len(trial.folds)] = trial.scores(name)
    mean = table.mean(axis=1)  # NaN where a fold is missing: given up or failed
    with np.errstate(invalid="ignore"):  # NaN where a score is infinite
        spread = table.std(axis=1)
    return {
        **{f"split{i}_test_{name}": table[:, i] for i in range(folds)},
        f"mean_test_{name}": mean,
        f"std_test_{name}": spread,
        f"rank_test_{name}": _ranks(mean),
    }


def _ranks(mean: np.ndarray) -> np.ndarray:
    """Return 1 for the best; equal ones share a rank, and those without a mean are last."""
    known = np.where(np.isnan(mean), np.nanmin(mean) - 1, mean)
    return rankdata(-known, method="min").astype(np.int32)
