"""The model for a table: any system of the catalogue that does the task, sized for its rows."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from castalia.base import Estimator
from castalia.catalog import System, system_for
from castalia.method.fit_plan import FitPlan
from castalia.method.model_settings import apply_settings
from castalia.method.task import Task
from castalia.train import Training

__all__ = ["DEFAULT", "VALIDATION", "build_model", "built", "is_network", "loop"]

MOST_STEPS = 20_000
DEFAULT = {"classification": "MLPClassifier", "regression": "MLPRegressor"}
VALIDATION = 0.15
# (up to this many rows, widths, rows of a batch)
SIZES = ((2_000, (64, 64), 32), (20_000, (128, 128), 128), (float("inf"), (256, 256), 512))
OF_TREES = ("AdaBoost", "GradientBoost")  # other ensembles are of networks


def is_network(model: Any) -> bool:
    """Whether a model is one network, trained by the loop; it reads tables by itself."""
    return isinstance(model, Estimator)


def build_model(plan: FitPlan, task: Task, rows: int, seed: int = 0) -> Any:
    """Return an unfitted estimator with sensible sizes for so many training rows.

    Small tables get a small network, weight decay, a little dropout, averaged weights and early
    stopping. Ensembles of networks get a plainer one, as they end and average trainings in their
    own way; models with a direct solver are taken as they come. ``plan.settings`` overrides any of
    it.
    """
    record = system_for(task.kind, plan.model or DEFAULT[task.kind])
    model = made(record)
    own: dict[str, Any] = {"random_state": seed}
    if is_network(model):
        own |= _sizes(rows, 300, Training(**loop(plan), average="ema", patience=20))
    else:
        own["device"] = plan.device
    if record.family == "ensemble" and record.name not in OF_TREES:
        inner = made(system_for(task.kind, DEFAULT[task.kind]))
        own["estimator"] = with_known(inner, _sizes(rows, 60, Training(**loop(plan))))
    elif task.kind == "classification" and not is_classifier(model):
        own["loss"] = "logistic"  # GradientBoost: its trees are regressors in both tasks
    return apply_settings(with_known(model, own), plan.settings)


def built(record: System, own: dict[str, Any], plan: FitPlan) -> Any:
    """Return an estimator of a system with settings of ours, and those of the plan over them."""
    own = {name: value for name, value in own.items() if name not in plan.settings}
    return apply_settings(with_known(made(record), own), plan.settings)


def made(record: System) -> Any:
    """Return an estimator of a system, with its own defaults."""
    package, attribute = record.path.split(":")
    return getattr(import_module(package), attribute)()


def with_known(model: Any, settings: dict[str, Any]) -> Any:
    """Set those settings that the model has."""
    known = model.get_params(deep=False)
    return model.set_params(**{name: v for name, v in settings.items() if name in known})


def loop(plan: FitPlan) -> dict[str, Any]:
    """Return settings of the training of every network."""
    return {
        "optimizer": "adamw",
        "weight_decay": 0.01,
        "validation": VALIDATION,
        "device": plan.device,
        "verbose": False,
    }


def _sizes(rows: int, most_epochs: int, training: Training) -> dict[str, Any]:
    hidden, batch = next((h, b) for most, h, b in SIZES if rows <= most)
    steps = max(1, -(-int(rows * (1 - VALIDATION)) // batch))
    return {
        "hidden": hidden,
        "dropout": 0.1,
        "batch_size": batch,
        "lr": 3e-3 if batch == 32 else 1e-3,
        "epochs": int(np.clip(MOST_STEPS // steps, 20, most_epochs)),
        "training": training,
    }
