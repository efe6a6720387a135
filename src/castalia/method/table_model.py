"""The model for a table: any system of the catalogue that does the task, with its defaults."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from castalia.base import Estimator
from castalia.catalog import System, system_for
from castalia.method.fit_plan import FitPlan
from castalia.method.model_settings import apply_settings
from castalia.method.task import Task
from castalia.train import Training

__all__ = ["DEFAULT", "VALIDATION", "build_model", "built", "is_network", "loop", "made"]

DEFAULT = {"classification": "TabularClassifier", "regression": "TabularRegressor"}
MEMBER = {"classification": "MLPClassifier", "regression": "MLPRegressor"}  # of ensembles
VALIDATION = 0.15
OF_TREES = ("AdaBoost", "GradientBoost")  # other ensembles are of networks


def is_network(model: Any) -> bool:
    """Whether a model is one network, trained by the loop; it reads tables by itself."""
    return isinstance(model, Estimator)


def build_model(plan: FitPlan, task: Task, rows: int, seed: int = 0) -> Any:
    """Return an unfitted estimator with its own defaults, those that Python code gets too.

    Ensembles wrap a perceptron; models with a direct solver are taken as they come.
    ``plan.settings`` overrides any of it.
    """
    record = system_for(task.kind, plan.model or DEFAULT[task.kind])
    model = made(record)
    own: dict[str, Any] = {"random_state": seed, "task": task.kind, "target_name": plan.target}
    if is_network(model):
        own["training"] = _training(model, plan)
    else:
        own["device"] = plan.device
    if record.family == "ensemble" and record.name not in OF_TREES:
        own["estimator"] = made(system_for(task.kind, MEMBER[task.kind]))
        own["estimator"].training = Training(device=plan.device, verbose=False)
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


def _training(model: Estimator, plan: FitPlan) -> Training:
    """Return the model's usual training, on the device asked for."""
    return replace(model.usual_training, device=plan.device, verbose=False)
