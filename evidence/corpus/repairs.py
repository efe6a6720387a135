"""Repairable faults planted in the settings of our estimators.

A case is a healthy estimator, the data it does well on, and the settings that spoil it. It is
repaired when ``diagnose(spoilt, X, y).apply()`` reaches 95 % of the healthy score on rows that
nobody was fitted on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_wine,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_moons,
)
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

import castalia
from castalia.diagnose import Diagnosis, diagnose
from castalia.errors import CastaliaWarning, Diverged
from castalia.train import Training

ENOUGH = 0.95


@dataclass(frozen=True)
class Fault:
    """One planted fault."""

    name: str
    model: Callable[[], Any]
    data: Callable[[], tuple[np.ndarray, np.ndarray]]
    spoil: dict[str, Any]
    balanced: bool = False
    quick: bool = False

    def rows(self) -> list[np.ndarray]:
        """Rows and targets to train on and to score on."""
        X, y = self.data()
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
        return [X, y, X_test, y_test]

    def score(self, model: Any) -> float:
        """Fit a clone and score it; a training that diverges scores nothing."""
        X, y, X_test, y_test = self.rows()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CastaliaWarning)
            try:
                fitted = clone(model).fit(X, y)
            except Diverged:
                return 0.0
        if self.balanced:
            return float(balanced_accuracy_score(y_test, fitted.predict(X_test)))
        return max(float(fitted.score(X_test, y_test)), 0.0)

    def spoilt(self) -> Any:
        """The estimator with the fault."""
        return self.model().set_params(**self.spoil)

    def treat(self) -> tuple[float, float, float, Diagnosis]:
        """Scores of the healthy, the spoilt and the repaired estimator, and the diagnosis."""
        X, y, _, _ = self.rows()
        found = diagnose(self.spoilt(), X, y)
        return (
            self.score(self.healthy()),
            self.score(self.spoilt()),
            self.score(found.apply()),
            found,
        )

    def healthy(self) -> Any:
        """The estimator without the fault."""
        return self.model()


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:1000], y[:1000]


@cache
def moons() -> tuple[np.ndarray, np.ndarray]:
    return make_moons(600, noise=0.15, random_state=0)


@cache
def friedman() -> tuple[np.ndarray, np.ndarray]:
    return make_friedman1(800, noise=0.5, random_state=0)


@cache
def circuits() -> tuple[np.ndarray, np.ndarray]:
    return make_friedman2(800, noise=20.0, random_state=0)


@cache
def scaled_wine() -> tuple[np.ndarray, np.ndarray]:
    X, y = wine()
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@cache
def plane() -> tuple[np.ndarray, np.ndarray]:
    X, y = linear()
    return X / X.std(axis=0), y


@cache
def wine() -> tuple[np.ndarray, np.ndarray]:
    return load_wine(return_X_y=True)


@cache
def cancer() -> tuple[np.ndarray, np.ndarray]:
    return load_breast_cancer(return_X_y=True)


@cache
def scaled_cancer() -> tuple[np.ndarray, np.ndarray]:
    X, y = cancer()
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@cache
def rare() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        3000, 10, n_informative=5, weights=[0.97], class_sep=0.8, flip_y=0, random_state=0
    )


@cache
def noisy() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    X = random.normal(size=(400, 30))
    return X, X[:, 0] - X[:, 1] + X[:, 2] + random.normal(size=400)


@cache
def linear() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    X = random.normal(size=(600, 8)) * np.logspace(0, 3, 8)
    return X, X @ (random.normal(size=8) / np.logspace(0, 3, 8)) + 0.1 * random.normal(size=600)


def _classifier(**own: Any) -> Any:
    own = {"hidden": (64, 64), "epochs": 20, "batch_size": 32, **own}
    return castalia.MLPClassifier(random_state=0, training=Training(verbose=False), **own)


def _regressor(**own: Any) -> Any:
    own = {"hidden": (64, 64), "epochs": 60, "batch_size": 32, **own}
    return castalia.MLPRegressor(random_state=0, training=Training(verbose=False), **own)


def _logistic(**own: Any) -> Any:
    return castalia.LogisticRegression(solver="sgd", epochs=30, lr=0.05, random_state=0, **own)


def _least_squares(**own: Any) -> Any:
    return castalia.LinearRegression(solver="sgd", epochs=60, lr=0.02, random_state=0, **own)


def _scaled(make: Callable[[], Any]) -> Callable[[], Any]:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return lambda: make_pipeline(StandardScaler(), make())


@dataclass(frozen=True)
class Unscaled(Fault):
    """A fault that lies in what is missing around the estimator."""

    def healthy(self) -> Any:
        """The estimator behind a scaler."""
        return _scaled(self.model)()


@dataclass(frozen=True)
class Unweighted(Fault):
    """A fault that lies in a setting the healthy estimator has."""

    def healthy(self) -> Any:
        """The estimator with balanced classes."""
        return self.model().set_params(class_weight="balanced")


def _patient(**own: Any) -> Any:
    return _classifier(epochs=60, lr=3e-3, **own)


SIGMOIDS = {"activation": "sigmoid", "hidden": (32,) * 8}
SGD = {"training__optimizer": "sgd"}
FAULTS = (
    # rates
    Fault("classifier, Adam at 3", _classifier, digits, {"lr": 3.0}),
    Fault("classifier, Adam at 0.3", _classifier, digits, {"lr": 0.3}),
    Fault("classifier, Adam at 1e-6", _classifier, digits, {"lr": 1e-6}),
    Fault("classifier, Adam at 1e-5", _classifier, digits, {"lr": 1e-5}),
    Fault("classifier, wine, Adam at 3e-6", _classifier, wine, {"lr": 3e-6}, quick=True),
    Fault("classifier, SGD at 20", _classifier, digits, {"lr": 20.0, "training__optimizer": "sgd"}),
    Fault(
        "classifier, SGD at 1e-5",
        _classifier,
        digits,
        {"lr": 1e-5, "training__optimizer": "sgd"},
    ),
    Fault(
        "classifier, plain SGD at Adam's rate", _classifier, digits, {"training__optimizer": "sgd"}
    ),
    Fault(
        "regressor, plain SGD at Adam's rate", _regressor, friedman, {"training__optimizer": "sgd"}
    ),
    Fault("regressor, Adam at 10", _regressor, friedman, {"lr": 10.0}),
    Fault("regressor, Adam at 1e-6", _regressor, friedman, {"lr": 1e-6}),
    Fault(
        "regressor, momentum at 1",
        _regressor,
        friedman,
        {"lr": 1.0, "training__optimizer": "momentum"},
    ),
    Fault("logistic regression, SGD at 300", _logistic, scaled_cancer, {"lr": 300.0}),
    Fault("logistic regression, SGD at 1e-6", _logistic, scaled_cancer, {"lr": 1e-6}, quick=True),
    # architecture
    Fault("classifier, eight sigmoid layers", _classifier, digits, SIGMOIDS),
    Fault("regressor, eight sigmoid layers", _regressor, friedman, SIGMOIDS),
    Fault(
        "classifier, no non-linearity",
        lambda: _classifier(epochs=60, lr=3e-3),
        moons,
        {"activation": "identity"},
        quick=True,
    ),
    Fault("classifier, one hidden unit", _classifier, digits, {"hidden": (1,)}),
    Fault("regressor, one hidden unit", _regressor, friedman, {"hidden": (1,)}),
    # duration
    Fault("classifier, one epoch", _classifier, digits, {"epochs": 1}),
    Fault("regressor, one epoch", _regressor, friedman, {"epochs": 1}),
    Fault("classifier, one batch an epoch", _classifier, digits, {"batch_size": 1000}),
    Fault(
        "regressor, one batch an epoch", _regressor, friedman, {"batch_size": 1000, "epochs": 20}
    ),
    # regularisation
    Fault("classifier, dropout 0.95", _classifier, digits, {"dropout": 0.95}),
    Fault("regressor, dropout 0.9", _regressor, friedman, {"dropout": 0.9}),
    Fault("classifier, weight decay 1", _classifier, digits, {"training__weight_decay": 1.0}),
    Fault("regressor, weight decay 1", _regressor, friedman, {"training__weight_decay": 1.0}),
    Fault("logistic regression, C = 1e-5", _logistic, scaled_cancer, {"C": 1e-5}),
    Fault(
        "regressor, memorises noise",
        lambda: _regressor(dropout=0.3).set_params(training__patience=10),
        noisy,
        {"epochs": 200, "hidden": (256, 256), "dropout": 0.0, "training__patience": None},
    ),
    # data
    Unscaled("logistic regression, columns as measured", _logistic, cancer, {}, quick=True),
    Unscaled("least squares, columns as measured", _least_squares, linear, {}, quick=True),
    Unweighted("classifier, one class in thirty", _classifier, rare, {}, balanced=True),
    Unweighted("logistic regression, one class in thirty", _logistic, rare, {}, balanced=True),
    # a second half, on which no remedy was improved
    Fault("cancer, Adam at 1", _classifier, cancer, {"lr": 1.0}),
    Fault("cancer, Adam at 1e-6", _classifier, cancer, {"lr": 1e-6}),
    Fault("cancer, SGD at 1e-5", _classifier, cancer, {"lr": 1e-5, **SGD}),
    Fault("cancer, weight decay 3", _classifier, cancer, {"training__weight_decay": 3.0}),
    Fault("cancer, dropout 0.97", _classifier, cancer, {"dropout": 0.97}),
    Fault("wine, Adam at 3", _patient, wine, {"lr": 3.0}),
    Fault("wine, one epoch at 1e-4", _patient, wine, {"epochs": 1, "lr": 1e-4}),
    Fault("wine, dropout 0.97", _patient, wine, {"dropout": 0.97}),
    Fault("wine, weight decay 1", _patient, wine, {"training__weight_decay": 1.0}),
    Fault("moons, Adam at 1", _patient, moons, {"lr": 1.0}),
    Fault("moons, Adam at 1e-6", _patient, moons, {"lr": 1e-6}),
    Fault("moons, plain SGD at 1e-4", _patient, moons, {"lr": 1e-4, **SGD}),
    Fault("moons, one epoch", _patient, moons, {"epochs": 1}),
    Fault("moons, dropout 0.95", _patient, moons, {"dropout": 0.95}),
    Fault("moons, one hidden unit", _patient, moons, {"hidden": (1,)}),
    Fault("circuits, Adam at 3", _regressor, circuits, {"lr": 3.0}),
    Fault("circuits, Adam at 1e-5", _regressor, circuits, {"lr": 1e-5}),
    Fault("circuits, one epoch", _regressor, circuits, {"epochs": 1}),
    Fault("circuits, weight decay 1", _regressor, circuits, {"training__weight_decay": 1.0}),
    Fault("circuits, dropout 0.95", _regressor, circuits, {"dropout": 0.95}),
    Fault("circuits, no non-linearity", _regressor, circuits, {"activation": "identity"}),
    Fault("circuits, one batch an epoch", _regressor, circuits, {"batch_size": 1000, "epochs": 20}),
    Fault("logistic regression, wine, SGD at 1e-5", _logistic, scaled_wine, {"lr": 1e-5}),
    Fault("logistic regression, wine, SGD at 300", _logistic, scaled_wine, {"lr": 300.0}),
    Fault("logistic regression, wine, C = 1e-4", _logistic, scaled_wine, {"C": 1e-4}),
    Fault("least squares, SGD at 1e-6", _least_squares, plane, {"lr": 1e-6}),
    Fault("least squares, SGD at 10", _least_squares, plane, {"lr": 10.0}),
)
