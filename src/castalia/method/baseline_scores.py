"""The baselines of a fit: their answers on the test rows, and what these score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from castalia.method.answer_scores import Answers, joined
from castalia.method.problem import Problem
from castalia.method.report import Contender
from castalia.method.run_context import RunContext
from castalia.method.train_test_split import Part
from castalia.method.verdict import best_baseline

__all__ = ["BaselineScores", "fit_baselines"]


@dataclass(frozen=True)
class BaselineScores:
    """Answers and scores, each by the baseline's key."""

    answers: dict[str, Answers]
    contenders: dict[str, Contender]

    def best(self, metric: str) -> str:
        """Return the key of the one with the best score."""
        best = best_baseline(list(self.contenders.values()), metric)
        return next(key for key, found in self.contenders.items() if found is best)


def fit_baselines(problem: Problem, context: RunContext) -> BaselineScores:
    """Fit every baseline of this kind of data and score it on the test rows."""
    found = BaselineScores({}, {})
    for key, name in problem.kind.baselines.items():
        answers = joined([_answers(problem, context, key, part) for part in problem.parts])
        note = problem.kind.baseline_note(key)
        scored = problem.contender([answers], name, "baseline", note)
        context.narrator.baseline(scored, problem.metric)
        found.answers[key], found.contenders[key] = answers, scored
    return found


def _answers(problem: Problem, context: RunContext, key: str, part: Part) -> Answers:
    def work() -> dict[str, Any]:
        return problem.kind.baseline(key, part).record()

    return Answers.of(context.stages.do(part.stage(key), work))
