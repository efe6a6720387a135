"""A blend: the answers of several models, averaged with weights that are not negative and sum to 1.

The weights minimise the squared error of the blended numbers or probabilities on rows that no
member was trained on.
Reference: 1996, Breiman, Stacked regressions, Machine Learning 24.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.base import is_classifier
from sklearn.utils import Tags

__all__ = ["Blend", "blend_weights"]

_SUM = 1e3  # weight of the equation that the weights sum to 1


def blend_weights(said: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the weights (M,) of M members.

    Parameters
    ----------
    said
        What each member said, (n, M) numbers or (n, K, M) probabilities.
    truth
        Numbers (n,), or class numbers.

    Examples
    --------
    >>> y = np.array([0.0, 1.0, 2.0])
    >>> blend_weights(np.column_stack([y + 1, y - 1]), y).round(2)
    array([0.5, 0.5])
    """
    target = truth if said.ndim == 2 else np.eye(said.shape[1])[truth]
    A, b = said.reshape(-1, said.shape[-1]), target.reshape(-1)
    scale = _SUM * max(float(np.abs(A).max()), 1e-12) * np.sqrt(len(b))
    found = nnls(np.vstack([A, np.full(A.shape[1], scale)]), np.append(b, scale))[0]
    return np.asarray(found / found.sum())


class Blend:
    """Several fitted models as one.

    Parameters
    ----------
    members
        Models that take the same rows, by key.
    weights
        The weight of each.
    """

    def __init__(self, members: Mapping[str, Any], weights: Mapping[str, float]) -> None:
        self.members, self.weights = dict(members), dict(weights)

    @property
    def first(self) -> Any:
        """The first member, which knows how rows are read."""
        return next(iter(self.members.values()))

    @property
    def classes_(self) -> np.ndarray:
        """The classes of a classifier, in order."""
        return np.asarray(self.first.classes_)

    def predict(self, X: Any) -> np.ndarray:
        """Return a class or a number for each row."""
        if is_classifier(self.first):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return self._mean({key: model.predict(X) for key, model in self.members.items()})

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the classes, (n, K)."""
        return self._mean({key: model.predict_proba(X) for key, model in self.members.items()})

    def _mean(self, said: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.sum([self.weights[key] * values for key, values in said.items()], axis=0)

    def __sklearn_tags__(self) -> Tags:
        return self.first.__sklearn_tags__()
