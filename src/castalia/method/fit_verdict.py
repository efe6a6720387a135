"""Is the model worth using here? Decided on the test rows; a better baseline is saved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from castalia.base import save
from castalia.method.baseline_scores import BaselineScores
from castalia.method.fit_result import BASELINE
from castalia.method.problem import Problem
from castalia.method.run_context import RunContext
from castalia.method.trainings import Trainings
from castalia.method.verdict import Verdict, compare

__all__ = ["decide"]


def decide(
    problem: Problem, baselines: BaselineScores, trainings: Trainings, context: RunContext
) -> Verdict:
    """Compare the model with the best baseline, and save that one where it is to be used."""
    key = baselines.best(problem.metric)
    verdict = compare(
        problem.metric,
        problem.truth,
        trainings.seeds,
        baselines.answers[key],
        (trainings.contender, baselines.contenders[key]),
        "the network" if problem.network else problem.model_name,
        problem.task.unit,
    )
    saved = verdict.outcome in ("worse", "equal") and _save_baseline(problem, key, context)
    if not saved:
        return verdict
    folder = context.folder
    where = f"It is saved, too: give {folder / BASELINE} in place of {folder}."
    return replace(verdict, words=f"{verdict.words} {where}")


def _save_baseline(problem: Problem, key: str, context: RunContext) -> bool:
    """Save a baseline fitted on the training rows; return whether it can be saved."""
    rows = np.arange(len(problem.kind)) if problem.plan.cv else problem.parts[0].train
    model = problem.kind.handed_over(key, rows)
    if model is not None:
        save(model, context.folder / BASELINE)
    return model is not None
