"""What a network has to beat: guessing, a linear model and gradient boosting."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from castalia.data import Dataset
from castalia.method.answer_scores import Answers, answers_of
from castalia.method.classic_model import ClassicModel
from castalia.method.table_matrix import Matrix
from castalia.method.task import Task

__all__ = ["BASELINES", "GUESSES", "answer", "baseline_name", "table_baseline"]

BASELINES = ("guess", "linear", "boosting")
GUESSES = {
    "classification": "always the commonest class",
    "regression": "always the mean",
}
_NAMES = {
    ("guess", "classification"): "Guessing",
    ("guess", "regression"): "Guessing",
    ("linear", "classification"): "Logistic regression",
    ("linear", "regression"): "Ridge regression",
    ("boosting", "classification"): "Gradient boosting",
    ("boosting", "regression"): "Gradient boosting",
}


def baseline_name(key: str, kind: str) -> str:
    """Name a baseline for people.

    >>> baseline_name("linear", "regression")
    'Ridge regression'
    """
    return _NAMES[key, kind]


def table_baseline(key: str, table: Dataset, kind: str, rounds: int, seed: int) -> ClassicModel:
    """Return one of `BASELINES` for the columns of a table, not yet fitted."""
    matrix = Matrix.of(table)
    return ClassicModel(_build(key, matrix, kind, rounds, seed), matrix)


def answer(model: Any, train: Any, y: np.ndarray, test: Any, task: Task) -> Answers:
    """Fit a model of scikit-learn and let it answer the test rows."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a baseline may stop a little early
        model.fit(train, y)
    return answers_of(model, test, task, time.perf_counter() - begin)


def _build(key: str, matrix: Matrix, kind: str, rounds: int, seed: int) -> Any:
    classify = kind == "classification"
    if key == "guess":
        return DummyClassifier(strategy="prior") if classify else DummyRegressor()
    if key == "linear":
        linear = LogisticRegression(max_iter=1000) if classify else Ridge()
        return make_pipeline(_columns(matrix), linear)
    boosting = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    return boosting(
        max_iter=rounds, categorical_features=matrix.categorical or None, random_state=seed
    )


def _columns(matrix: Matrix) -> ColumnTransformer:
    numbers = make_pipeline(
        SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler()
    )
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [("numbers", numbers, matrix.numbers), ("words", words, matrix.categorical)]
    )
