"""The trainings of a fit: one a part, each with its own seed, and what they score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from castalia.method.answer_scores import Answers
from castalia.method.contest_entry import Entry
from castalia.method.fit_result import MODEL
from castalia.method.model_settings import apply_settings
from castalia.method.problem import Problem
from castalia.method.report.score_formats import duration, score
from castalia.method.run_context import RunContext
from castalia.method.train_test_split import Part
from castalia.method.training_run import fit_directly, train_network
from castalia.utils.text import plural

__all__ = ["Trainings", "train_parts"]

TRAINING = "training"
FINAL = "final"  # after folds: the model on all rows


@dataclass(frozen=True)
class Trainings:
    """What the model answered, part by part.

    Attributes
    ----------
    entry
        Its answers and scores.
    stage
        Folder of the training in the run whose model is saved: the first, or that on all rows.
    notes
        Remarks.
    """

    entry: Entry
    stage: str
    notes: list[str] = field(default_factory=list)

    @property
    def facts(self) -> dict[str, Any]:
        """What the first training left: history, settings and the like."""
        return self.entry.parts[0].facts


class Job(NamedTuple):
    """One training: its stage's name and part, its number among all, and its seconds."""

    name: str
    part: Part
    number: int
    total: int
    seconds: float | None


def train_parts(problem: Problem, changes: Mapping[str, Any], context: RunContext) -> Trainings:
    """Train on every part, each with its own seed; with a time limit, at least on the first."""
    parts, cv = problem.parts, problem.plan.cv
    total, found, notes = len(parts) + bool(cv), list[Answers](), list[str]()
    for number, part in enumerate(parts, start=1):
        name = part.stage(TRAINING)
        if number > 1 and not cv and context.late and context.stages.done(name) is None:
            notes.append(f"The time limit left no time for training {number} and later ones.")
            context.narrator.note(notes[-1])
            break
        job = Job(name, part, number, total, context.share(total - number + 1))
        found.append(_train(problem, changes, context, job))
    if cv:
        rows = Part("", np.arange(len(problem.kind)), parts[0].test)
        _train(problem, changes, context, Job(FINAL, rows, total, total, context.share(1)))
    entry = problem.entry(MODEL, found, problem.model_name, "model")
    entry = replace(entry, shown=replace(entry.shown, note=_note(entry, problem.metric)))
    return Trainings(entry, FINAL if cv else parts[0].stage(TRAINING), notes)


def _train(problem: Problem, changes: Mapping[str, Any], context: RunContext, job: Job) -> Answers:
    def work() -> dict[str, Any]:
        rows = len(job.part.train)
        model = problem.kind.build(rows, problem.plan.seed + job.part.seed)
        apply_settings(model, changes)
        words = f"{type(model).__name__} on {plural(rows, problem.task.unit)} ({job.name})"
        context.narrator.training(job.number, job.total, words)
        return _fitted(problem, context, job, model)

    found = Answers.of(context.stages.do(job.name, work, together=problem.network))
    context.narrator.trained(job.number, job.total, _trained_words(job.name, found))
    return found


def _fitted(problem: Problem, context: RunContext, job: Job, model: Any) -> dict[str, Any]:
    kind, run = problem.kind, context.folder / job.name
    test = kind.X.take(job.part.test)
    if not problem.network:
        known = kind.rows(job.part.train)
        adapter = None if getattr(model, "reads_tables", False) else kind.direct
        return fit_directly(model, known, test, problem.task, run=run, adapter=adapter)
    train, validation = kind.cut_validation(job.part.train, model.training.validation)
    return train_network(
        model,
        kind.rows(train),
        test,
        problem.task,
        run=run,
        verbose=problem.plan.verbose,
        time_limit=job.seconds,
        validation=None if validation is None else kind.rows(validation),
    )


def _trained_words(name: str, found: Answers) -> str:
    why = f", {found.facts['stopped']}" if found.facts.get("stopped") else ""
    epochs = found.facts["epochs"]
    did = "fitted" if epochs is None else plural(epochs, "epoch")
    return f"{name}: {did} in {duration(found.seconds)}{why}"


def _note(entry: Entry, metric: str) -> str:
    """Say what it scored on each part."""
    if len(entry.each) == 1:
        return "one training"
    values = ", ".join(score(value, metric) for value in entry.each)
    return f"{len(entry.each)} trainings, each with its own split and seed: {values}"
