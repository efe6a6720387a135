"""Answers of a model on test rows, and what they score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from castalia.evaluate import Interval, bootstrap, scores
from castalia.method.task import Task

__all__ = ["Answers", "answers_of", "joined", "mean_scores", "measure", "row_interval"]


@dataclass
class Answers:
    """What a model said about some rows, in plain values.

    Attributes
    ----------
    prediction
        Class numbers, or numbers.
    probability
        (n, K), or None.
    seconds
        Time to fit.
    facts
        History, settings and the like.
    """

    prediction: np.ndarray
    probability: np.ndarray | None = None
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return it as a mapping that a stage can keep."""
        return vars(self)

    @classmethod
    def of(cls, found: dict[str, Any]) -> Answers:
        """Return what `record` gave."""
        probability = found["probability"]
        return cls(
            np.array(found["prediction"]),
            None if probability is None else np.array(probability, dtype=float),
            found["seconds"],
            found["facts"],
        )


def answers_of(model: Any, X: Any, task: Task, seconds: float) -> Answers:
    """Ask a fitted model about rows; classes it never saw get probability 0."""
    if task.kind == "regression":
        return Answers(np.asarray(model.predict(X), dtype=float), seconds=seconds)
    if not hasattr(model, "predict_proba"):
        return Answers(np.searchsorted(task.classes, model.predict(X)), seconds=seconds)
    probability = np.zeros((len(X), len(task.classes)))
    probability[:, np.searchsorted(task.classes, model.classes_)] = model.predict_proba(X)
    return Answers(probability.argmax(axis=1), probability, seconds)


def joined(parts: Sequence[Answers]) -> Answers:
    """Put the answers of several folds one after the other."""
    probability = [p.probability for p in parts if p.probability is not None]
    return Answers(
        np.concatenate([p.prediction for p in parts]),
        np.concatenate(probability) if probability else None,
        sum(p.seconds for p in parts),
        parts[0].facts,
    )


def mean_scores(task: Task, y: np.ndarray, answers: Sequence[Answers]) -> dict[str, float]:
    """Return every score of the task, averaged over seeds; ``y`` holds class numbers or numbers."""
    classes = range(len(task.classes)) if len(task.classes) else None
    found = [scores(task.kind, y, a.prediction, a.probability, classes) for a in answers]
    return {name: float(np.mean([f[name] for f in found])) for name in found[0]}


Score = Callable[[np.ndarray, np.ndarray], float]


def measure(metric: str) -> Score:
    """Return the function from targets (n,) and predictions (n, S) of S seeds to the mean score.

    >>> measure("accuracy")(np.array([0, 1]), np.array([[0, 1], [1, 1]]))
    0.75
    """
    return _SCORES[metric]


def row_interval(metric: str, y: np.ndarray, answers: Sequence[Answers]) -> Interval:
    """Return the score averaged over seeds, with its interval over resampled test rows."""
    return bootstrap(measure(metric), y, stacked(answers))


def stacked(answers: Sequence[Answers]) -> np.ndarray:
    """Return the predictions of several seeds side by side, (n, S)."""
    return np.column_stack([a.prediction for a in answers])


def _accuracy(y: np.ndarray, said: np.ndarray) -> float:
    return float((said == y[:, None]).mean())


def _balanced_accuracy(y: np.ndarray, said: np.ndarray) -> float:
    hit = (said == y[:, None]).mean(axis=1)
    count = np.bincount(y)
    present = count > 0
    return float((np.bincount(y, weights=hit)[present] / count[present]).mean())


def _r2(y: np.ndarray, said: np.ndarray) -> float:
    spread = float(np.square(y - y.mean()).sum())
    missed = np.square(said - y[:, None]).sum(axis=0)
    return float(1 - (missed / spread).mean()) if spread > 0 else float("nan")


def _rmse(y: np.ndarray, said: np.ndarray) -> float:
    return float(np.sqrt(np.square(said - y[:, None]).mean(axis=0)).mean())


def _mae(y: np.ndarray, said: np.ndarray) -> float:
    return float(np.abs(said - y[:, None]).mean())


_SCORES: dict[str, Score] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "r2": _r2,
    "rmse": _rmse,
    "mae": _mae,
}
