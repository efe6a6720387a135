"""One trial: fold by fold, from where it stopped, until it is whole or falls behind."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from castalia.tune.pruning import falls_behind
from castalia.tune.search_rows import Rows
from castalia.tune.study import Study, TakenOver
from castalia.tune.trial_record import COMPLETE, FAIL, PRUNED, Trial

__all__ = ["TrialRunner"]


@dataclass(frozen=True)
class TrialRunner:
    """What every trial of a search has in common.

    Attributes
    ----------
    estimator
        What is tuned.
    rows
        The data.
    folds
        Positions of the rows that train and of those that judge.
    metrics
        Scorers by name.
    metric
        The name that is maximised.
    prune
        Whether a trial that falls behind is given up.
    """

    estimator: Any
    rows: Rows
    folds: Sequence[tuple[np.ndarray, np.ndarray]]
    metrics: Mapping[str, Any]
    metric: str
    prune: bool

    def run(self, study: Study, trial: Trial) -> Trial | None:
        """Run the folds that are left; a trial that another worker took over is left to it."""
        try:
            self._run(study, trial)
        except TakenOver:
            return None
        return study.known[trial.number]

    def _run(self, study: Study, trial: Trial) -> None:
        model = clone(self.estimator).set_params(**study.settings(trial))
        for number in range(len(trial.folds), len(self.folds)):
            try:
                trial.folds.append(self._fold(clone(model), *self.folds[number]))
            except (ValueError, ArithmeticError) as error:
                return study.close(trial, FAIL, str(error))
            if np.isnan(trial.scores(self.metric)[-1]):
                return study.close(trial, FAIL, f"the score of fold {number} is not a number.")
            if self.prune and self._falls_behind(study, trial):
                return study.close(trial, PRUNED)
            if number + 1 < len(self.folds):
                study.keep(trial)
        return study.close(trial, COMPLETE)

    def _fold(self, model: Any, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
        begun = time.perf_counter()
        self.rows.take(train).fit(model)
        fitted, held = time.perf_counter(), self.rows.take(test)
        scores = {name: held.score(model, scoring) for name, scoring in self.metrics.items()}
        spent = {"fit_time": fitted - begun, "score_time": time.perf_counter() - fitted}
        return {**scores, **spent}

    def _falls_behind(self, study: Study, trial: Trial) -> bool:
        rivals = [rival.scores(self.metric) for rival in study.rivals(trial)]
        return falls_behind(trial.scores(self.metric), rivals)
