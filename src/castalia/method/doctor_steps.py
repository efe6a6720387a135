"""The doctor's part in a fit: checks before the training, remedies, the diagnosis after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from castalia.data.row_splits import holdout
from castalia.diagnose import Diagnosis, cure, preflight
from castalia.diagnose.estimators import DIAGNOSIS
from castalia.evaluate import higher_is_better
from castalia.method.answer_scores import answers_of, mean_scores
from castalia.method.problem import Problem
from castalia.method.run_context import RunContext
from castalia.method.table_model import VALIDATION
from castalia.utils.atomic_files import atomic_write

__all__ = ["Remedies", "run_checks", "save_diagnosis", "try_remedies"]


@dataclass(frozen=True)
class Remedies:
    """What the doctor tried: the steps, the settings that helped, and remarks."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def run_checks(problem: Problem, context: RunContext) -> list[dict[str, Any]]:
    """Run the preflight checks, where there are any for this model and kind of data."""
    plan, kind = problem.plan, problem.kind
    if plan.preflight_seconds <= 0 or not problem.network or not kind.checked:
        return []

    def work() -> list[dict[str, Any]]:
        rows = problem.parts[0].train
        model = kind.build(len(rows), plan.seed)
        return [
            asdict(c) for c in preflight(model, *kind.rows(rows), seconds=plan.preflight_seconds)
        ]

    found: list[dict[str, Any]] = context.stages.do("preflight", work)
    context.narrator.checked(found)
    return found


def try_remedies(problem: Problem, context: RunContext) -> Remedies:
    """Try the doctor's remedies on validation rows cut off the training rows, if asked to."""
    if not problem.plan.doctor:
        return Remedies()
    if not problem.network:
        note = f"{problem.model_name} is not one network: no remedies were tried."
        context.narrator.note(note)
        return Remedies(notes=[note])
    found = context.stages.do("cure", lambda: _cure(problem))
    context.narrator.cured(found["steps"])
    notes = [
        f"Doctor: {step['name']}; {step['remedy']}; validation score {step['before']:.4g} → "
        f"{step['after']:.4g}, {'kept' if step['kept'] else 'taken back'}."
        for step in found["steps"]
    ]
    return Remedies(found["steps"], found["changes"], notes)


def _cure(problem: Problem) -> dict[str, Any]:
    kind, task, rows = problem.kind, problem.task, problem.parts[0].train
    model = kind.build(len(rows), problem.plan.seed)
    kept, held = _held_out(problem, rows, model.training.validation)
    asked, truth = kind.X.take(held), task.codes[held]

    def score(fitted: Any) -> float:
        found = mean_scores(task, truth, [answers_of(fitted, asked, task, 0.0)])
        return found[problem.metric] * (1 if higher_is_better(problem.metric) else -1)

    found = cure(model, *kind.rows(kept), *kind.rows(held), score=score)
    return {"steps": [vars(step) for step in found.steps], "changes": found.changes}


def _held_out(problem: Problem, rows: np.ndarray, share: Any) -> tuple[np.ndarray, np.ndarray]:
    """Cut validation rows off: as the kind of data asks for, else at random."""
    kept, held = problem.kind.cut_validation(rows, share)
    if held is not None:
        return kept, held
    task = problem.task
    labels = task.codes[rows] if task.kind == "classification" else None
    inner, outer = holdout(len(rows), VALIDATION, seed=problem.plan.seed, labels=labels)
    return rows[inner], rows[outer]


def save_diagnosis(problem: Problem, context: RunContext, facts: Mapping[str, Any]) -> Diagnosis:
    """Return what the doctor found in the training of the saved model; write it into the run."""
    text, name = facts.get("diagnosis"), problem.model_name
    unwatched = Diagnosis(notes=(f"The training of {name} was not watched.",), subject=name)
    found = unwatched if text is None else Diagnosis.from_json(text)
    atomic_write(context.folder / DIAGNOSIS, found.to_json())
    return found
