"""Scores of a saved model on new rows whose target is known."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from castalia.errors import InvalidData
from castalia.evaluate import primary_metric
from castalia.evaluate import scores as every_score
from castalia.method.kinds import NewRows, kind_of
from castalia.method.saved import find_target, load_model
from castalia.method.scores import answers_of, row_interval
from castalia.method.task import Task
from castalia.utils.text import listing

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True)
class Evaluation:
    """What a model scores on a table or on pictures.

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
    unit
        What one example is called.
    """

    task: str
    target: str
    rows: int
    metric: str
    interval: list[float]
    scores: dict[str, float]
    notes: list[str] = field(default_factory=list)
    unit: str = "row"


def evaluate(
    model: str | os.PathLike[str], data: Any, *, target: str | None = None, header: bool = True
) -> Evaluation:
    """Score a saved model on a table, or on pictures, with a known target.

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
    rows = kind_of(estimator).known_rows(estimator, data, target or find_target(model), header)
    task = _task(estimator, rows)
    answers = answers_of(estimator, rows.X, task, 0.0)
    metric = primary_metric(task.kind)
    found = every_score(
        task.kind,
        task.codes,
        answers.prediction,
        answers.probability,
        range(len(task.classes)) if len(task.classes) else None,
    )
    reach = row_interval(metric, task.codes, [answers])
    bounds, notes = [reach.low, reach.high], [*rows.notes, *rows.unseen]
    return Evaluation(task.kind, rows.target, len(task.y), metric, bounds, found, notes, rows.unit)


def _task(estimator: Any, rows: NewRows) -> Task:
    """Read the target as the model knows it."""
    y: Any = rows.y
    if not is_classifier(estimator):
        return Task("regression", "", y, np.array([]))
    classes = estimator.classes_
    if classes.dtype.kind in "UO":
        y = np.array([str(v) for v in y])
    else:
        with suppress(ValueError):  # words where the model knows numbers: told below
            y = y.astype(classes.dtype)
    strange = sorted({str(v) for v in y[~np.isin(y, classes)].tolist()})
    if strange:
        raise InvalidData(
            f"evaluate: `{rows.target}` must hold classes the model knows, "
            f"{listing(classes.tolist(), 'and', 6)}; "
            f"got {listing(strange, 'and', 5)}."
        )
    return Task("classification", "", y, np.asarray(classes))
