"""Errors of guessing, of a linear model and of boosting on the validation rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.measures import row_errors
from castalia.diagnose.examination.table_models import Table, boosting, guess, linear, one_thread
from castalia.diagnose.thresholds import limit

__all__ = ["Baselines", "baselines"]

LEAST_ROWS = 10


@dataclass(frozen=True)
class Baselines:
    """Errors by model and validation row, in the subject's unit."""

    errors: dict[str, np.ndarray]

    @property
    def best(self) -> str:
        """Name of the model with the lowest error."""
        return min(self.errors, key=lambda name: float(self.errors[name].mean()))

    @property
    def signal(self) -> bool:
        """Whether a model that uses the columns clearly beats guessing."""
        guessing = float(self.errors["guess"].mean())
        return float(self.errors[self.best].mean()) < limit("examine.signal") * guessing


@one_thread()
def baselines(subject: Subject) -> Baselines | None:
    """Fit the models on the training sample; None for tasks that scikit-learn has none for."""
    y, held, X = subject.labels, subject.held_labels, subject.held_table
    if y is None or held is None or X is None or subject.task is None or len(y) < LEAST_ROWS:
        return None
    if subject.task in ("binary", "multiclass") and len(np.unique(y)) < 2:
        return None
    if not np.isfinite(y).all() or not np.isfinite(held).all() or _reconstructs(subject, y):
        return None
    table = Table(subject.table, subject.seed)
    A, B = table(subject.table), table(X)
    outputs = len(np.unique(y)) if subject.task != "regression" else (1 if y.ndim == 1 else 2)
    models = {
        "guess": guess(subject.task),
        "linear": linear(subject.task),
        "boosting": boosting(subject.task, outputs, subject.seed),
    }
    found: dict[str, np.ndarray] = {}
    for name, model in models.items():
        if model is None or (found and subject.clock.over):
            continue
        predicted = np.asarray(model.fit(A, y).predict(B))
        errors = row_errors(subject.task, held, predicted.reshape(held.shape))
        if errors is not None:
            found[name] = errors / subject.unit
    return Baselines(found) if "guess" in found else None


def _reconstructs(subject: Subject, y: np.ndarray) -> bool:
    """Whether the targets are the inputs, perhaps without noise: a linear model need only copy."""
    x = subject.table
    if y.size != x.size or x.shape[1] < 2:
        return False
    return float(np.corrcoef(x.ravel(), y.ravel())[0, 1]) > limit("examine.copied")
