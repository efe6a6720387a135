"""One training: of a network in a run folder, or of a model with a direct solver."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from castalia.base import save
from castalia.data.table_adapter import TableAdapter
from castalia.diagnose.estimators import DIAGNOSIS
from castalia.errors import CastaliaWarning
from castalia.method.answer_scores import answers_of
from castalia.method.task import Task
from castalia.train import Callback
from castalia.train.state import TrainState

__all__ = ["TimeLimit", "fit_directly", "fit_in_run", "train_network", "training_facts"]

CHECKPOINT_STEPS = 500  # a second or two of work on a small table
SMALL_BATCH = 32  # where a recipe chooses its size


class TimeLimit(Callback):
    """Ends a training after the epoch in which its time is up."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.started = seconds, time.monotonic()

    def on_epoch_end(self, state: TrainState) -> None:
        """Stop where the time is up."""
        if time.monotonic() - self.started > self.seconds:
            state.stop("the time limit")


def train_network(
    model: Any,
    rows: tuple[Any, np.ndarray],
    test: Any,
    task: Task,
    *,
    run: Path,
    verbose: Any = False,
    time_limit: float | None = None,
    validation: tuple[Any, np.ndarray] | None = None,
) -> dict[str, Any]:
    """Train in a run folder, save the model there and return its answers on the test rows."""
    seconds = fit_in_run(
        model, rows, run=run, verbose=verbose, time_limit=time_limit, validation=validation
    )
    answers = answers_of(model, test, task, seconds)
    answers.facts = training_facts(model, run)
    return answers.record()


def fit_in_run(
    model: Any,
    rows: tuple[Any, np.ndarray | None],
    *,
    run: Path,
    verbose: Any = False,
    time_limit: float | None = None,
    validation: tuple[Any, np.ndarray] | None = None,
) -> float:
    """Train in a run folder, save the model there and return the seconds it took."""
    begin = time.perf_counter()
    training = model.training
    share = training.validation
    training.run, training.verbose = str(run), verbose
    X, y = rows
    training.checkpoint_every = _checkpoint_every(model, len(X if y is None else y))
    if time_limit is not None:
        training.callbacks = (TimeLimit(time_limit),)
    if validation is not None:
        training.validation = validation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CastaliaWarning)  # reported once, for the whole table
        model.fit(X, y)
    seconds = time.perf_counter() - begin
    training.callbacks, training.validation, training.run = (), share, None
    training.checkpoint_every = None
    model.run_ = None
    save(model, run / "model")
    return seconds


def training_facts(model: Any, run: Path) -> dict[str, Any]:
    """Return what the report says about a training, the doctor's diagnosis included."""
    return {**_facts(model), "diagnosis": _diagnosis(run)}


def fit_directly(
    model: Any,
    rows: tuple[Any, np.ndarray],
    test: Any,
    task: Task,
    *,
    run: Path,
    adapter: Any = TableAdapter,
) -> dict[str, Any]:
    """Fit a model with a direct solver, save it and return its answers on the test rows.

    A table becomes standardised numbers, marks of what is missing, and a column a category. What
    made them is kept in ``model.adapter_``, so the saved model answers tables as they are.
    """
    begin = time.perf_counter()
    made = None if adapter is None else adapter().fit(rows[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CastaliaWarning)  # dummy columns are collinear, for one
        model.fit(rows[0] if made is None else made.matrix(rows[0]), rows[1])
    if made is not None:
        model.adapter_ = made
    seconds = time.perf_counter() - begin
    save(model, run / "model")
    answers = answers_of(model, test, task, seconds)
    nothing: dict[str, Any] = {
        "history": [],
        "epochs": None,
        "best": None,
        "stopped": None,
        "resolved": {},
    }
    answers.facts = {**nothing, "train": len(rows[1]), "validation": 0}
    return answers.record()


def _checkpoint_every(model: Any, rows: int) -> int:
    return max(CHECKPOINT_STEPS, -(-rows // (model.batch_size or SMALL_BATCH)))


def _diagnosis(run: Path) -> str | None:
    """Return what the doctor left in a run's folder."""
    path = run / DIAGNOSIS
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _facts(model: Any) -> dict[str, Any]:
    """Return what the report says about the training."""
    return {
        "history": model.history_,
        "epochs": model.n_iter_,
        "best": model.best_,
        "stopped": model.stopped_,
        "resolved": model.settings_,
        "weights": sum(p.numel() for p in model.module_.parameters()),
        "train": model.settings_["rows"],
        "validation": model.settings_["validation_rows"],
        "most_epochs": model.recipe.amounts(model).epochs,
    }
