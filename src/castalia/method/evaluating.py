"""Scores of a saved model on new rows whose target is known."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import primary_metric
from castalia.evaluate import scores as every_score
from castalia.method.saved import check_columns, find_target, load_model, unseen_categories
from castalia.method.scores import Answers, answers_of, row_interval
from castalia.method.table import load_table
from castalia.method.task import Task, find_task
from castalia.utils.text import listing

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True)
class Evaluation:
    """What a model scores on a table.

    Attributes
    ----------
    task, target, rows
        What was predicted, and for how many rows.
    metric, interval
        The main measure and its 95 % bounds over resampled rows.
    scores
        Value by metric name.
    notes
        Remarks.
    """

    task: str
    target: str
    rows: int
    metric: str
    interval: list[float]
    scores: dict[str, float]
    notes: list[str] = field(default_factory=list)


def evaluate(
    model: str | os.PathLike[str], data: Any, *, target: str | None = None, header: bool = True
) -> Evaluation:
    """Score a saved model on a table with a known target.

    Parameters
    ----------
    model
        Folder of a run or of a saved model.
    data
        What ``castalia.read`` takes.
    target
        Column with the truth; None takes the one the run was trained for.
    header
        Whether a text file starts with column names.
    """
    estimator = load_model(model)
    target = target or find_target(model)
    if target is None:
        raise InvalidParameter(
            f"evaluate: `{model}` does not say what it predicts; name the column with --target."
        )
    table, notes = load_table(data, target=target, header=header)
    check_columns(estimator, table)
    task = _task(estimator, table)
    X = table.select(estimator.adapter_.encoder.used)
    answers = _answers(estimator, X, task)
    metric = primary_metric(task.kind)
    found = every_score(
        task.kind,
        task.codes,
        answers.prediction,
        answers.probability,
        range(len(task.classes)) if len(task.classes) else None,
    )
    reach = row_interval(metric, task.codes, [answers])
    notes += unseen_categories(estimator, X)
    return Evaluation(task.kind, target, len(table), metric, [reach.low, reach.high], found, notes)


def _task(estimator: Any, table: Any) -> Task:
    """Read the target as the model knows it."""
    if not is_classifier(estimator):
        return find_task(table, "regression")
    y = table.labels()
    classes = estimator.classes_
    y = np.array([str(v) for v in y]) if classes.dtype.kind in "UO" else y.astype(classes.dtype)
    strange = sorted({str(v) for v in y[~np.isin(y, classes)].tolist()})
    if strange:
        raise InvalidData(
            f"evaluate: `{table.target}` must hold classes the model knows, "
            f"{listing(classes.tolist(), 'and', 6)}; "
            f"got {listing(strange, 'and', 5)}."
        )
    return Task("classification", "", y, np.asarray(classes))


def _answers(estimator: Any, X: Any, task: Task) -> Answers:
    return answers_of(estimator, X, task, 0.0)
