"""What the steps of a fit found, together, and its summary in plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from castalia.data.url_files import without_password
from castalia.diagnose import Diagnosis
from castalia.evaluate import higher_is_better
from castalia.method.contest_entry import Entry
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
    entries: list[Entry]
    checks: list[dict[str, Any]]
    remedies: Remedies
    trainings: Trainings
    diagnosis: Diagnosis
    verdict: Verdict
    advice: list[str]

    @property
    def contenders(self) -> list[Contender]:
        """Rows of the table of scores: the baselines, the model, and the blend."""
        return [entry.shown for entry in self.entries]

    @property
    def recommended(self) -> Entry:
        """The contender to use."""
        return next(e for e in self.entries if e.key == self.verdict.recommended)

    def notes(self, problem: Problem) -> list[str]:
        """Return the remarks on the data, and those of the steps."""
        return [
            *problem.kind.warnings,
            *problem.kind.notes,
            *self.remedies.notes,
            *self.trainings.notes,
        ]


def summarise(problem: Problem, outcome: FitOutcome) -> dict[str, Any]:
    """Return the outcome in plain values, as ``result.json`` and ``--json`` have it."""
    kind, task = problem.kind, problem.task
    difference, trained = outcome.verdict.difference, outcome.trainings.entry
    return {
        "task": task.kind,
        "why": task.why,
        "target": kind.target,
        "text": kind.column,
        "formats": dict(kind.formats or {}),
        "unit": task.unit,
        "metric": problem.metric,
        "goal": _goal(problem, outcome),
        "rows": {"all": len(kind), "tested": len(problem.tested)},
        "contenders": [asdict(c) for c in outcome.contenders],
        "seeds": {"n": len(trained.each), "each": trained.each},
        "outcome": outcome.verdict.outcome,
        "recommended": outcome.verdict.recommended,
        "models": {entry.key: entry.shown.name for entry in outcome.entries},
        "difference": [difference.mean, difference.low, difference.high],
        "verdict": outcome.verdict.words,
        "advice": outcome.advice,
        "cure": outcome.remedies.steps,
        "plan": _plan(problem),
        "notes": outcome.notes(problem),
    }


def _goal(problem: Problem, outcome: FitOutcome) -> dict[str, Any]:
    """Return the value that is good enough, where it comes from, and whether it is reached.

    Without a goal in the plan, the best baseline is the one to reach.
    """
    metric, given = problem.metric, problem.plan.goal
    baselines = outcome.contenders[: outcome.entries.index(outcome.trainings.entry)]
    best = max if higher_is_better(metric) else min
    rival = best(baselines, key=lambda contender: contender.scores[metric])
    value = float(rival.scores[metric] if given is None else given)
    found = outcome.recommended.shown.scores[metric]
    reached = found >= value if higher_is_better(metric) else found <= value
    source = rival.name if given is None else "the plan"
    return {"value": value, "from": source, "reached": bool(reached)}


def _plan(problem: Problem) -> dict[str, Any] | None:
    """Return the plan in plain values, where the data can be read again."""
    plan = problem.plan
    several = isinstance(plan.data, tuple | list)
    data = [*map(without_password, plan.data)] if several else without_password(plan.data)
    found: dict[str, Any] = plain({"data": data, **plan.deciding()})
    return found if plan.of_files else None
