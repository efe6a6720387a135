"""The baselines of a fit: fitted on every part, saved, and scored on the test rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.method.answer_scores import Answers
from castalia.method.contest_entry import Entry
from castalia.method.problem import Problem
from castalia.method.run_context import RunContext
from castalia.method.saved_contender import save_contender
from castalia.method.train_test_split import Part

__all__ = ["fit_baselines"]

FINAL = "final"  # after folds: on all rows


def fit_baselines(problem: Problem, context: RunContext) -> list[Entry]:
    """Fit every baseline of this kind of data, save it, and score it on the test rows."""
    found = []
    for key, name in problem.kind.baselines.items():
        parts = [_answers(problem, context, key, part) for part in problem.parts]
        if problem.plan.cv:
            everything = np.arange(len(problem.kind))
            _answers(problem, context, key, Part(FINAL, everything, problem.parts[0].test))
        entry = problem.entry(key, parts, name, "baseline", problem.kind.baseline_note(key))
        context.narrator.baseline(entry.shown, problem.metric)
        found.append(entry)
    return found


def _answers(problem: Problem, context: RunContext, key: str, part: Part) -> Answers:
    """Fit a baseline on a part; the one that is handed over is saved."""

    def work() -> dict[str, Any]:
        model, answers = problem.kind.baseline(key, part)
        kept = part.name == FINAL if problem.plan.cv else part is problem.parts[0]
        if kept and model is not None:
            save_contender(model, context.contender(key))
        return answers.record()

    return Answers.of(context.stages.do(part.stage(key), work))
