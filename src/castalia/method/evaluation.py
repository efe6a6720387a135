"""Scores of a saved model on new rows whose target is known."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from typing import Any

from castalia.errors import InvalidData
from castalia.method.answer_scores import answer_interval, answers_of, mean_scores
from castalia.method.fit_plan import METRICS
from castalia.method.kinds import Asked, Table, kind_of
from castalia.method.report.column_importance import column_importance
from castalia.method.saved_model import (
    find_columns,
    find_formats,
    find_metric,
    find_target,
    find_text,
    load_model,
)
from castalia.method.task import Task

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True)
class Evaluation:
    """What a model scores on a table, on images or on texts.

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
    importance
        Of tables, where it was asked for: which columns the model uses on these rows.
    """

    task: str
    target: str
    rows: int
    metric: str
    interval: list[float]
    scores: dict[str, float]
    notes: list[str] = field(default_factory=list)
    unit: str = "row"
    importance: dict[str, Any] = field(default_factory=dict)


def evaluate(
    model: str | os.PathLike[str],
    data: Any,
    *,
    name: str | None = None,
    target: str | None = None,
    text: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    drop_missing: bool = False,
    explain: bool = False,
) -> Evaluation:
    """Score a saved model on a table, on images or on texts, with a known target.

    Parameters
    ----------
    model
        Folder of a run, whose recommended model is taken, or of a saved model.
    data
        What ``castalia.read`` takes; the path of a text, or those of two parallel ones.
    name
        Another model of the run, such as ``"boosting"``.
    target
        Column with the truth; None takes the one the run was trained for.
    text
        Column with the texts; None takes the one the run was trained on.
    header
        Whether a text file starts with column names.
    encoding
        Encoding of a text file; None: found out.
    drop_missing
        Whether rows without a target are left out, with a note, instead of refused.
    explain
        Whether to say which columns of a table the model uses on these rows.
    """
    estimator = load_model(model, name)
    kind = kind_of(estimator)
    asked = Asked(
        target or find_target(model),
        text or find_text(model),
        header,
        encoding,
        (),
        drop_missing,
        find_formats(model),
        **find_columns(model),
    )
    rows = kind.known_rows(estimator, data, asked)
    task = kind.known_task(estimator, rows)
    answers = [answers_of(estimator, rows.X, task, 0.0)]
    scores = mean_scores(task, task.codes, answers)
    metric = find_metric(model)
    if metric not in scores or not math.isfinite(scores[metric]):
        metric = METRICS[task.kind][0]
    reach = answer_interval(metric, task, answers[0])
    return Evaluation(
        task.kind,
        rows.target,
        len(task.y),
        metric,
        [reach.low, reach.high],
        scores,
        [*rows.notes, *rows.unseen],
        rows.unit,
        _importance(estimator, rows.X, task, metric) if explain else {},
    )


def _importance(model: Any, X: Any, task: Task, metric: str) -> dict[str, Any]:
    if kind_of(model) is not Table:
        raise InvalidData(
            "evaluate: `explain` must be left out for models of images and texts; columns are what "
            "it explains."
        )
    return column_importance(model, X, task.y, metric)
