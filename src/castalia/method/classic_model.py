"""A model of scikit-learn behind the features of a kind of data: a table, images or texts."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from sklearn.utils import Tags

__all__ = ["ClassicModel", "Features"]


class Features(Protocol):
    """How the rows of a kind of data become an array that scikit-learn takes."""

    def fit(self, X: Any) -> Any:
        """Learn what it needs."""

    def encode(self, X: Any) -> np.ndarray:
        """Return the array."""

    def state(self) -> dict[str, Any]:
        """Return what was learnt, as JSON values."""


class ClassicModel:
    """An estimator of scikit-learn that takes a kind of data as it is.

    Parameters
    ----------
    estimator
        A classifier or regressor of scikit-learn.
    features
        What turns rows into its input.
    """

    def __init__(self, estimator: Any, features: Any) -> None:
        self.estimator, self.features = estimator, features

    def fit(self, X: Any, y: np.ndarray) -> ClassicModel:
        """Fit the features, then the estimator."""
        self.features.fit(X)
        self.estimator.fit(self.features.encode(X), y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return a class or a number for each row."""
        return np.asarray(self.estimator.predict(self.features.encode(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, (n, K)."""
        return np.asarray(self.estimator.predict_proba(self.features.encode(X)))

    @property
    def classes_(self) -> np.ndarray:
        """The classes of a classifier, in order."""
        return np.asarray(self.estimator.classes_)

    def __sklearn_tags__(self) -> Tags:
        return self.estimator.__sklearn_tags__()
