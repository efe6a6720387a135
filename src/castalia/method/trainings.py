"""The trainings of a fit: every seed on every part, and what they score together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from castalia.evaluate import Interval, interval
from castalia.evaluate import metric as metric_named
from castalia.method.answer_scores import Answers, joined, mean_scores
from castalia.method.model_settings import apply_settings
from castalia.method.problem import Problem
from castalia.method.report import Contender
from castalia.method.report.score_formats import duration, score
from castalia.method.run_context import RunContext
from castalia.method.train_test_split import Part
from castalia.method.training_run import fit_directly, train_network
from castalia.utils.text import plural

__all__ = ["Trainings", "train_seeds"]

FINAL = "final"  # after folds: the model on all rows


@dataclass(frozen=True)
class Trainings:
    """What the model answered, seed by seed.

    Attributes
    ----------
    seeds
        Answers of each seed on all tested rows.
    contender
        The model's row in the table of scores.
    over_seeds
        Its score over seeds, with the interval.
    chosen
        The seed whose model is saved: that of the lowest validation loss.
    stage
        Folder of that training in the run.
    notes
        Remarks.
    """

    seeds: list[Answers]
    contender: Contender
    over_seeds: Interval
    chosen: int
    stage: str
    notes: list[str] = field(default_factory=list)

    @property
    def answers(self) -> Answers:
        """Answers of the chosen seed."""
        return self.seeds[self.chosen]


class Job(NamedTuple):
    """One training: its stage's name, seed and part, its number among all, and its seconds."""

    name: str
    seed: int
    part: Part
    number: int
    total: int
    seconds: float | None


def train_seeds(problem: Problem, changes: Mapping[str, Any], context: RunContext) -> Trainings:
    """Train every seed on every part; with a time limit, at least the first seed."""
    parts, cv = problem.parts, problem.plan.cv
    pairs = [(seed, part) for seed in range(problem.kind.seeds) for part in parts]
    total, found, notes = len(pairs) + bool(cv), dict[int, list[Answers]](), list[str]()
    for number, (seed, part) in enumerate(pairs, start=1):
        name = part.stage(f"seed-{seed}")
        if seed and context.late and context.stages.done(name) is None:
            notes.append(f"The time limit left no time for seed {seed} and later ones.")
            context.narrator.note(notes[-1])
            break
        job = Job(name, seed, part, number, total, context.share(total - number + 1))
        found.setdefault(seed, []).append(_train(problem, changes, context, job))
    if cv:
        rows = Part("", np.arange(len(problem.kind)), parts[0].test)
        _train(problem, changes, context, Job(FINAL, 0, rows, total, total, context.share(1)))
    seeds = [joined(answers) for answers in found.values() if len(answers) == len(parts)]
    return _summed_up(problem, seeds, notes)


def _train(problem: Problem, changes: Mapping[str, Any], context: RunContext, job: Job) -> Answers:
    def work() -> dict[str, Any]:
        rows = len(job.part.train)
        model = problem.kind.build(rows, problem.plan.seed + job.seed)
        apply_settings(model, changes)
        words = f"{type(model).__name__} on {plural(rows, problem.task.unit)} ({job.name})"
        context.narrator.training(job.number, job.total, words)
        return _fitted(problem, context, job, model)

    found = Answers.of(context.stages.do(job.name, work))
    context.narrator.trained(job.number, job.total, _trained_words(job.name, found))
    return found


def _fitted(problem: Problem, context: RunContext, job: Job, model: Any) -> dict[str, Any]:
    kind, run = problem.kind, context.folder / job.name
    test = kind.X.take(job.part.test)
    if not problem.network:
        known = kind.rows(job.part.train)
        return fit_directly(model, known, test, problem.task, run=run, adapter=kind.direct)
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


def _summed_up(problem: Problem, seeds: list[Answers], notes: list[str]) -> Trainings:
    metric = problem.metric
    values = [mean_scores(problem.task, problem.truth, [a])[metric] for a in seeds]
    over = _over_seeds(values, metric)
    note = plural(over.n, "seed")
    if over.known:
        note += f", mean of {', '.join(score(value, metric) for value in values)}"
    row = problem.contender(seeds, problem.model_name, "model", note)
    chosen = 0 if problem.plan.cv else _lowest_validation_loss(seeds)
    stage = FINAL if problem.plan.cv else f"seed-{chosen}"
    return Trainings(seeds, row, over, chosen, stage, notes)


def _over_seeds(values: list[float], metric: str) -> Interval:
    found = interval(values)
    if metric_named(metric).fraction and found.known:
        low = found.low if metric == "r2" else max(found.low, 0.0)
        return Interval(found.mean, low, min(found.high, 1.0), found.n)
    return found


def _lowest_validation_loss(seeds: list[Answers]) -> int:
    """Return the seed with the lowest validation loss: the test rows have no say."""
    return int(np.argmin([(a.facts["best"] or {}).get("val_loss", np.inf) for a in seeds]))
