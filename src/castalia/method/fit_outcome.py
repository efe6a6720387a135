"""What the steps of a fit found, together, and its summary in plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from castalia.diagnose import Diagnosis
from castalia.evaluate import higher_is_better
from castalia.method.baseline_scores import BaselineScores
from castalia.method.doctor_steps import Remedies
from castalia.method.problem import Problem
from castalia.method.report import Contender
from castalia.method.report.plain_values import plain
from castalia.method.trainings import Trainings
from castalia.method.verdict import Verdict

__all__ = ["FitOutcome", "summarise"]


@dataclass(frozen=True)
class FitOutcome:
    """One record a step, in the order of the steps; ``created`` is when the fit began."""

    created: str
    baselines: BaselineScores
    checks: list[dict[str, Any]]
    remedies: Remedies
    trainings: Trainings
    diagnosis: Diagnosis
    verdict: Verdict
    advice: list[str]

    @property
    def contenders(self) -> list[Contender]:
        """The baselines, then the model."""
        return [*self.baselines.contenders.values(), self.trainings.contender]

    def notes(self, problem: Problem) -> list[str]:
        """Return the remarks on the data, and those of the steps."""
        return [*problem.kind.notes, *self.remedies.notes, *self.trainings.notes]


def summarise(problem: Problem, outcome: FitOutcome) -> dict[str, Any]:
    """Return the outcome in plain values, as ``result.json`` and ``--json`` have it."""
    kind, task = problem.kind, problem.task
    over, difference = outcome.trainings.over_seeds, outcome.verdict.difference
    return {
        "task": task.kind,
        "why": task.why,
        "target": kind.target,
        "text": kind.column,
        "unit": task.unit,
        "metric": problem.metric,
        "goal": _goal(problem, outcome),
        "rows": {"all": len(kind), "tested": len(problem.tested)},
        "contenders": [asdict(c) for c in outcome.contenders],
        "seeds": {"n": over.n, "mean": over.mean, "low": over.low, "high": over.high},
        "outcome": outcome.verdict.outcome,
        "difference": [difference.mean, difference.low, difference.high],
        "verdict": outcome.verdict.words,
        "advice": outcome.advice,
        "cure": outcome.remedies.steps,
        "plan": _plan(problem),
        "notes": outcome.notes(problem),
    }


def _goal(problem: Problem, outcome: FitOutcome) -> dict[str, Any]:
    """Return the value that is good enough, where it comes from, and whether it was reached."""
    metric, given = problem.metric, problem.plan.goal
    rival = outcome.baselines.contenders[outcome.baselines.best(metric)]
    value = float(rival.scores[metric] if given is None else given)
    ours = outcome.trainings.contender.scores[metric]
    reached = ours >= value if higher_is_better(metric) else ours <= value
    source = rival.name if given is None else "the plan"
    return {"value": value, "from": source, "reached": bool(reached)}


def _plan(problem: Problem) -> dict[str, Any] | None:
    """Return the plan in plain values, where the data can be read again."""
    plan = problem.plan
    found: dict[str, Any] = plain({"data": plan.data, **plan.deciding()})
    return found if plan.of_files else None
