"""The network for a table: sizes that suit its rows, and one training."""

from __future__ import annotations

import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from castalia.base import save
from castalia.catalog import system
from castalia.data import Dataset
from castalia.diagnose.estimators import DIAGNOSIS
from castalia.errors import CastaliaWarning, InvalidParameter
from castalia.method.plan import FitPlan
from castalia.method.scores import answers_of
from castalia.method.settings import apply_settings
from castalia.method.task import Task
from castalia.train import Callback, Training
from castalia.train.state import TrainState
from castalia.utils.text import listing

__all__ = ["TimeLimit", "build_network", "train_network"]

MOST_STEPS = 20_000
DEFAULT = {"classification": "MLPClassifier", "regression": "MLPRegressor"}
VALIDATION = 0.15
# (up to this many rows, widths, rows of a batch)
SIZES = ((2_000, (64, 64), 32), (20_000, (128, 128), 128), (float("inf"), (256, 256), 512))
CHECKPOINT_STEPS = 500  # a second or two of work on a small table


class TimeLimit(Callback):
    """Ends a training after the epoch in which its time is up."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.started = seconds, time.monotonic()

    def on_epoch_end(self, state: TrainState) -> None:
        """Look at the clock."""
        if time.monotonic() - self.started > self.seconds:
            state.stop("the time limit")


def build_network(plan: FitPlan, task: Task, rows: int, seed: int = 0) -> Any:
    """Return an unfitted estimator with sensible sizes for so many training rows.

    Small tables get a small network, weight decay, a little dropout, averaged weights and early
    stopping; ``plan.settings`` overrides any of it.
    """
    name = plan.model or DEFAULT[task.kind]
    record = system(name)
    if record.data != "table" or task.kind not in record.tasks:
        raise InvalidParameter(
            f"fit: `model` must do {task.kind} on tables; {name} does "
            f"{listing(record.tasks, 'and')} on {record.data} data."
        )
    package, attribute = record.path.split(":")
    model = getattr(import_module(package), attribute)()
    hidden, batch = next((h, b) for most, h, b in SIZES if rows <= most)
    steps = max(1, -(-int(rows * (1 - VALIDATION)) // batch))
    own = {
        "hidden": hidden,
        "dropout": 0.1,
        "batch_size": batch,
        "lr": 3e-3 if batch == 32 else 1e-3,
        "epochs": int(np.clip(MOST_STEPS // steps, 20, 300)),
        "random_state": seed,
    }
    known = model.get_params(deep=False)
    if "training" in known:
        own["training"] = Training(
            optimizer="adamw",
            weight_decay=0.01,
            average="ema",
            patience=20,
            validation=VALIDATION,
            device=plan.device,
            verbose=False,
        )
    model.set_params(**{k: v for k, v in own.items() if k in known})
    apply_settings(model, plan.settings)
    return model


def train_network(
    model: Any,
    rows: tuple[Dataset, np.ndarray],
    test: Dataset,
    task: Task,
    *,
    run: Path,
    verbose: Any = False,
    time_limit: float | None = None,
    validation: tuple[Dataset, np.ndarray] | None = None,
) -> dict[str, Any]:
    """Train in a run folder, save the model there and return its answers on the test rows.

    Parameters
    ----------
    model
        From `build_network`.
    rows
        Training rows and their targets.
    test
        Rows to answer.
    task
        The task.
    run
        Folder for checkpoints; the same call goes on where an interrupted one stopped.
    verbose
        Whether to show progress.
    time_limit
        Seconds.
    validation
        Validation rows and targets; None lets the training cut its own.
    """
    begin = time.perf_counter()
    training = model.training
    share = training.validation
    training.run, training.verbose = str(run), verbose
    training.checkpoint_every = _checkpoint_every(model, len(rows[1]))
    if time_limit is not None:
        training.callbacks = (TimeLimit(time_limit),)
    if validation is not None:
        training.validation = validation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CastaliaWarning)  # told once, for the whole table
        model.fit(*rows)
    seconds = time.perf_counter() - begin
    training.callbacks, training.validation, training.run = (), share, None
    training.checkpoint_every = None
    model.run_ = None
    save(model, run / "model")
    answers = answers_of(model, test, task, seconds)
    answers.facts = {**_facts(model), "diagnosis": _diagnosis(run)}
    return answers.record()


def _checkpoint_every(model: Any, rows: int) -> int:
    return max(CHECKPOINT_STEPS, -(-rows // model.batch_size))


def _diagnosis(run: Path) -> str | None:
    """Return what the doctor left in a run's folder."""
    path = run / DIAGNOSIS
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _facts(model: Any) -> dict[str, Any]:
    """Return what the report tells about the training."""
    return {
        "history": model.history_,
        "epochs": model.n_iter_,
        "best": model.best_,
        "stopped": model.stopped_,
        "resolved": model.settings_,
        "weights": sum(p.numel() for p in model.module_.parameters()),
        "train": model.settings_["rows"],
        "validation": model.settings_["validation_rows"],
        "most_epochs": model.epochs,
    }
