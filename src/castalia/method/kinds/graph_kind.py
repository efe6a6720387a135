"""What nodes, links and whole graphs share in the practical method."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from castalia.catalog import SYSTEMS, System
from castalia.errors import InvalidParameter
from castalia.method.kinds.kind import Kind, probability_columns
from castalia.method.table_model import built, made
from castalia.utils.text import did_you_mean

__all__ = ["GraphKind"]


class GraphKind(Kind):
    """Data of graphs: one estimator a task, whose network is a setting."""

    catalog = "graph"
    tries: ClassVar = {"network": ("sage", "gat"), "hidden": (64, 128), "lr": (0.01, 0.003)}
    checked = False
    searched = False

    def fingerprint(self) -> str:
        """Return a mark of edges, names and targets."""
        text = f"{self.X.fingerprint()} {self.task.y.tolist()}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def system(self) -> System:
        """The estimator of the task; a plan names its network by --set network=gat."""
        usual = self.usual_model()
        name = self.plan.model or usual
        if name.lower() != usual.lower():
            raise InvalidParameter(
                f"fit: `model` must be {usual} for {self.task.unit}s; got {name!r}. Networks are "
                f"chosen by --set network=gat.{did_you_mean(name, [usual])}"
            )
        return SYSTEMS[usual]

    def build(self, rows: int, seed: int = 0) -> Any:
        """Return an unfitted estimator."""
        usual = made(self.system).usual_training
        training = replace(usual, device=self.plan.device, verbose=False)
        return built(self.system, {"random_state": seed, "training": training}, self.plan)

    @staticmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return the answer for each, and the probabilities of classes."""
        if not hasattr(model, "classes_"):
            return {"prediction": model.predict(X)}
        probability = model.predict_proba(X)
        label = model.classes_[probability.argmax(axis=1)]
        return {"prediction": label, **probability_columns(model, probability)}
