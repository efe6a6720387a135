"""What is fitted: rows that are read and split, the metric that decides, the model's kind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from castalia import __version__
from castalia.base import check_parameters
from castalia.evaluate import Interval, higher_is_better
from castalia.evaluate import metric as metric_named
from castalia.evaluate.class_scores import CLASS_SCORES
from castalia.evaluate.scorers import check_scorer
from castalia.method.answer_scores import (
    Answers,
    joined,
    mean_scores,
    measure,
    score_basis,
    stacked,
)
from castalia.method.contest_entry import Entry
from castalia.method.fit_plan import METRICS, FitPlan
from castalia.method.kinds import Kind
from castalia.method.report import Contender
from castalia.method.split_interval import RowsTested, split_interval, within
from castalia.method.table_model import is_network
from castalia.method.task import Task
from castalia.method.train_test_split import Part
from castalia.train import check_training

__all__ = ["Problem", "digest", "pose_problem"]

UNEVEN = 0.9  # share of the commonest class from which accuracy is blind
SIGHTED = "roc_auc"  # what decides there


@dataclass(frozen=True)
class Problem:
    """What every step of a fit reads, and none changes.

    Attributes
    ----------
    kind
        The data: plan, rows, task, split.
    metric
        The measure that decides.
    network
        Whether the model is one network, trained by the loop.
    """

    kind: Kind
    metric: str
    network: bool

    @property
    def plan(self) -> FitPlan:
        """What was asked for."""
        return self.kind.plan

    @property
    def task(self) -> Task:
        """What is predicted."""
        return self.kind.task

    @property
    def parts(self) -> list[Part]:
        """How the rows are split."""
        return self.kind.parts

    @property
    def model_name(self) -> str:
        """Name of the model in the catalogue."""
        return self.kind.system.name

    @cached_property
    def tested(self) -> np.ndarray:
        """Numbers of the tested rows, in the order of the answers."""
        return np.concatenate([part.test for part in self.parts])

    @cached_property
    def truth(self) -> np.ndarray:
        """Class numbers or numbers of the tested rows."""
        return self.task.codes[self.tested]

    @property
    def fingerprint(self) -> str:
        """What decides the result: version, settings and data."""
        return digest([self.plan.deciding(), self.kind.fingerprint()])

    def sample(self, parts: int) -> RowsTested:
        """Return the rows that the first so many parts test."""
        ratio = np.mean([len(part.test) / len(part.train) for part in self.parts[:parts]])
        tests = [part.test for part in self.parts[:parts]]
        return RowsTested.of(tests, float(ratio), self.kind.keys.order)

    def interval(self, entries: Sequence[list[Answers]]) -> Interval:
        """Return a score, or the gain of a first contender over a second, with its interval.

        It is the gain of the first where it is above 0, also where lower scores are better.
        """
        most = min(len(parts) for parts in entries)
        tested = self.sample(most)
        y, score = self.task.codes[tested.rows], measure(self.metric)
        said = [stacked(y, [joined(parts[:most])]) for parts in entries]
        sign = 1 if len(said) == 1 or higher_is_better(self.metric) else -1

        def value(rows: np.ndarray) -> float:
            found = [score(y[rows], each[rows]) for each in said]
            return found[0] if len(found) == 1 else sign * (found[0] - found[1])

        counted = self.task.kind == "classification"
        basis = score_basis(self.metric, self.task, tested.rows)
        return split_interval(value, tested, counted=counted, basis=basis)

    def entry(self, key: str, parts: list[Answers], name: str, role: str, note: str = "") -> Entry:
        """Score a contender, from its answers on each part."""
        tested = self.sample(len(parts))
        y = self.task.codes[tested.rows]
        truth = [self.task.codes[part.test] for part in self.parts[: len(parts)]]
        each = [
            measure(self.metric)(wanted, stacked(wanted, [found]))
            for wanted, found in zip(truth, parts, strict=True)
        ]
        reach = within(self.interval([parts]), self.metric)
        row = Contender(
            name,
            role,
            mean_scores(self.task, y, [joined(parts)]),
            [reach.low, reach.high] if reach.known else None,
            float(np.mean([a.seconds for a in parts])),
            note,
        )
        return Entry(key, row, parts, each)

    def facts(self) -> dict[str, Any]:
        """Return what is shown before the first step."""
        return {
            **self.kind.facts(),
            "rows": len(self.kind),
            "unit": self.task.unit,
            "target": self.kind.target,
            "task": self.task.kind,
            "why": self.task.why,
            "classes": len(self.task.classes),
            "metric": self.metric,
            "tested": len(self.tested),
            "split": self.kind.split_words(),
        }


def pose_problem(kind: Kind) -> Problem:
    """Return the problem that data sets; a wrong setting is refused here, before any work."""
    model = kind.build(len(kind))
    check_parameters(model)
    network = is_network(model)
    if network and model.training is not None:
        check_training(model.training)
    metric, note = _metric(kind.plan, kind.task, kind.metric)
    kind.task = replace(kind.task, scorer=metric)
    kind.notes += note
    return Problem(kind, metric, network)


def digest(deciding: list[Any]) -> str:
    """Return a mark of what decides a result, this version included."""
    text = json.dumps([__version__, *deciding], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def _metric(plan: FitPlan, task: Task, usual: str = "") -> tuple[str, list[str]]:
    """Return the measure that decides, and a remark where it is not the usual one."""
    allowed = METRICS[task.kind]
    if plan.metric is not None:
        ours = tuple(CLASS_SCORES) if task.kind == "classification" else ()
        check_scorer(plan.metric, task.kind, (*allowed, *ours))
        return plan.metric, []
    if usual:
        return usual, []
    common, most = max(task.counts.items(), key=lambda pair: pair[1], default=("", 0))
    share = most / len(task.y)
    if share < UNEVEN:
        return allowed[0], []
    note = (
        f"{100 * share:.0f} % of the {task.unit}s are of class `{common}`, so accuracy hardly sees "
        f"the others: {metric_named(SIGHTED).label} decides, whether they are put before it "
        f"(--metric {allowed[0]} for the other)."
    )
    return SIGHTED, [note]
