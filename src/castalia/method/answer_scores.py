"""Answers of a model on test rows, and what they score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from castalia.evaluate import Interval, scores
from castalia.method.fit_plan import METRICS
from castalia.method.said_answers import Said, scorer_mean
from castalia.method.split_interval import RowsTested, split_interval, within
from castalia.method.task import Task
from castalia.method.texts.surprisal import surprises
from castalia.utils.bleu import bleu_of_counts, count_matches

__all__ = [
    "Answers",
    "answer_interval",
    "answers_of",
    "joined",
    "mean_scores",
    "measure",
    "stacked",
]


@dataclass
class Answers:
    """What a model said about some rows, in plain values.

    Attributes
    ----------
    prediction
        Class numbers, or numbers; of a language model the bits and the tokens of each passage,
        (n, 2); of a translator texts.
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
    if task.kind == "forecasting":
        return Answers(np.asarray(model.predict_windows(X))[..., 0], seconds=seconds)
    if task.kind == "language modelling":
        return Answers(surprises(model, X), seconds=seconds)
    if task.kind == "translation":
        return Answers(np.array([*model.predict(X)], dtype=str), seconds=seconds)
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
    if task.kind in ("forecasting", "language modelling", "translation"):
        said = stacked(y, answers)
        return {name: measure(name)(y, said) for name in METRICS[task.kind]}
    classes = range(len(task.classes)) if len(task.classes) else None
    found = [scores(task.kind, y, a.prediction, a.probability, classes) for a in answers]
    means = {name: float(np.mean([f[name] for f in found])) for name in found[0]}
    if task.scorer is not None and task.scorer not in means:
        means = {task.scorer: measure(task.scorer)(y, stacked(y, answers)), **means}
    return means


BY_CLASS = ("balanced_accuracy", "f1", "roc_auc")  # means over classes
BLEU_COUNTS = 10  # numbers that BLEU is made of

Score = Callable[[np.ndarray, np.ndarray], float]


def measure(metric: str) -> Score:
    """Return the function from targets (n,) and what `stacked` gives of S seeds to the mean score.

    >>> measure("accuracy")(np.array([0, 1]), np.array([[0, 1], [1, 1]]))
    0.75
    """
    return _SCORES.get(metric) or partial(scorer_mean, metric)


def answer_interval(metric: str, task: Task, answers: Answers) -> Interval:
    """Return the score of a model on new rows, with its interval over those rows."""
    y, said, score = task.codes, stacked(task.codes, [answers]), measure(metric)
    tested = RowsTested.of([np.arange(len(y))])
    counted = task.kind == "classification"
    basis = score_basis(metric, task, tested.rows)
    found = split_interval(
        lambda rows: score(y[rows], said[rows]), tested, counted=counted, basis=basis
    )
    return within(found, metric)


def score_basis(metric: str, task: Task, rows: np.ndarray) -> int | None:
    """Return how many rows a score rests on where classes count alike; None: on all of them."""
    if metric not in BY_CLASS or not len(task.classes):
        return None
    counts = np.bincount(task.codes[np.unique(rows)])
    present = counts[counts > 0]
    return int(present.min() * len(present))


def stacked(y: np.ndarray, answers: Sequence[Answers]) -> np.ndarray:
    """Return the predictions of several seeds side by side, (n, S).

    Those of a language model are two columns a seed, (n, 2 S); translations become the counts that
    BLEU is made of, ten columns a seed, (n, 10 S), so that resamples need not be counted again.
    """
    if answers[0].prediction.dtype.kind != "U":
        said = np.column_stack([a.prediction for a in answers])
        return Said.of(said, [a.probability for a in answers if a.probability is not None])
    counts = [
        [count_matches(text, wanted) for text, wanted in zip(a.prediction, y, strict=True)]
        for a in answers
    ]
    return np.concatenate([np.array(rows) for rows in counts], axis=1)


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
    if y.ndim == 2:  # a forecast counts as a whole
        return float(np.sqrt(np.square(_gaps(y, said)).mean()))
    return float(np.sqrt(np.square(said - y[:, None]).mean(axis=0)).mean())


def _mae(y: np.ndarray, said: np.ndarray) -> float:
    return float(np.abs(_gaps(y, said)).mean())


def _gaps(y: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Return how far answers are off; of forecasts, y ends with the scale of MASE."""
    return np.asarray(said - (y[:, None] if y.ndim == 1 else y[:, :-1]))


def _mase(y: np.ndarray, said: np.ndarray) -> float:
    return float((np.abs(_gaps(y, said)) / y[:, -1:]).mean())


def _bits_per_character(y: np.ndarray, said: np.ndarray) -> float:
    return float((said[:, 0::2].sum(axis=0) / y.sum()).mean())


def _perplexity(y: np.ndarray, said: np.ndarray) -> float:
    bits, tokens = said[:, 0::2].sum(axis=0), said[:, 1::2].sum(axis=0)
    return float(np.exp2(bits / np.maximum(tokens, 1)).mean())


def _bleu(y: np.ndarray, said: np.ndarray) -> float:
    sums = said.sum(axis=0).reshape(-1, BLEU_COUNTS)
    return float(np.mean([bleu_of_counts(row.tolist()).score for row in sums]))


_SCORES: dict[str, Score] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "r2": _r2,
    "rmse": _rmse,
    "mae": _mae,
    "mase": _mase,
    "bits_per_character": _bits_per_character,
    "perplexity": _perplexity,
    "bleu": _bleu,
}
