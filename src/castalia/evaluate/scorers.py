"""Scores by scikit-learn's scorers, of answers that were given already."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["answer_score", "check_scorer", "scorer_names"]

_ROOMS = {
    "classification": ("_classification", "_ranking"),
    "regression": ("_regression",),
}


def scorer_names(task: str) -> list[str]:
    """Return the names of scikit-learn's scorers for a task.

    Examples
    --------
    >>> "average_precision" in scorer_names("classification"), scorer_names("regression")[0]
    (True, 'd2_absolute_error_score')
    """
    rooms = _ROOMS.get(task, ())
    return [
        name
        for name in get_scorer_names()
        if get_scorer(name)._score_func.__module__.rpartition(".")[2] in rooms
    ]


def check_scorer(name: str, task: str, own: tuple[str, ...] = ()) -> None:
    """Refuse a metric that is none of ``own`` and no scorer of scikit-learn for the task."""
    known = [*own, *scorer_names(task)]
    if name not in known:
        article = "" if task == "language modelling" else "a "
        raise InvalidParameter(
            f"fit: `metric` must be {listing(own)} for {article}{task}"
            f"{', or a scorer of scikit-learn' if task in _ROOMS else ''}; got {name!r}."
            f"{did_you_mean(name, known)}"
        )


class SaidClasses(ClassifierMixin, BaseEstimator):
    """A classifier that repeats what was answered; a row is the number of an answer."""

    def __init__(
        self, prediction: np.ndarray, probability: np.ndarray | None, classes: int
    ) -> None:
        self.prediction, self.probability, self.classes = prediction, probability, classes
        self.classes_ = np.arange(classes)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return class numbers."""
        return self.prediction[X[:, 0]]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return probabilities; those of a decision without any are 0 and 1."""
        if self.probability is None:
            return np.eye(self.classes)[self.prediction][X[:, 0]]
        return self.probability[X[:, 0]]


class SaidNumbers(RegressorMixin, BaseEstimator):
    """A regressor that repeats what was answered."""

    def __init__(self, prediction: np.ndarray) -> None:
        self.prediction = prediction

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return numbers."""
        return self.prediction[X[:, 0]]


def answer_score(
    name: str, y: Any, prediction: Any, probability: Any = None, classes: int | None = None
) -> float:
    """Return what a scorer of scikit-learn makes of answers; NaN where it is not defined.

    Parameters
    ----------
    name
        Of the scorer, such as ``"average_precision"`` or ``"neg_median_absolute_error"``.
    y
        Class numbers from 0, or numbers, (n,). Of two classes the second is the positive one.
    prediction
        Likewise, (n,).
    probability
        Of a classification, (n, K), or None.
    classes
        How many there are, K; None for a regression.

    Examples
    --------
    >>> answer_score("f1_macro", np.array([0, 1, 1]), np.array([0, 1, 0]), classes=2)
    0.6666666666666666
    """
    said: Any = (
        SaidNumbers(np.asarray(prediction, dtype=float))
        if classes is None
        else SaidClasses(np.asarray(prediction), probability, classes)
    )
    rows = np.arange(len(y))[:, None]
    try:
        with (
            warnings.catch_warnings(),
            config_context(assume_finite=True, skip_parameter_validation=True),
        ):
            warnings.simplefilter("ignore")  # of classes that a resample lacks
            return float(get_scorer(name)(said, rows, np.asarray(y)))
    except ValueError:
        return float("nan")
