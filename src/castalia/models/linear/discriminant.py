"""Linear discriminants: what the classifiers of this family share beyond coefficients.

F(x) = w x + b.  The boundary F = 0 is a hyperplane with normal w; F(x) / |w| is the signed distance
from it, and it passes through the origin if and only if b = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from torch import Tensor

from castalia.base import DirectEstimator, OneOf, check_parameters
from castalia.base.input_checks import check_target, check_weight, split_target
from castalia.base.targets import encode_classes
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.linear.linear_model import LinearModel
from castalia.models.linear.solvers.affine_design import Affine

__all__ = ["Discriminant", "Online"]


@dataclass(kw_only=True, eq=False, repr=False)
class Discriminant(ClassifierMixin, LinearModel, DirectEstimator):
    """Base of classifiers by hyperplanes; ``coef_`` is (1, D) for two classes and (K, D) for K."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the score of the second of two classes, (N,), or of each class, (N, K)."""
        scores = self._outputs(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the highest score."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def distance(self, X: Any) -> np.ndarray:
        """Return each row's signed distance from the boundary, F(x) / |w|.

        With two classes it is positive on the side of the second; with K classes there is a column
        for the hyperplane F_k = 0 of each.
        """
        scores = self.decision_function(X)
        norms = np.linalg.norm(self.coef_, axis=1)
        if scores.ndim == 1 and len(norms) == 2:  # two outputs for two classes: F = F_1 - F_0
            norms = np.linalg.norm(self.coef_[1:] - self.coef_[:1], axis=1)
        return scores / (norms if scores.ndim == 2 else norms[0])

    def _design(self, X: Any) -> Affine:
        """Return checked rows as they are computed with."""
        return Affine(X if issparse(X) else self._tensor(X), self.fit_intercept)

    def _keep(self, theta: Tensor) -> None:
        """Set ``coef_`` and ``intercept_`` from parameters (K, P)."""
        found = theta.detach().cpu().numpy()
        if self.fit_intercept:
            self.coef_, self.intercept_ = found[:, :-1].copy(), found[:, -1].copy()
        else:
            self.coef_, self.intercept_ = found.copy(), np.zeros(len(found), found.dtype)

    def _theta(self, design: Affine) -> Tensor:
        """Return ``coef_`` and ``intercept_`` as parameters (K, P)."""
        parts = [self.coef_, self.intercept_[:, None]] if self.fit_intercept else [self.coef_]
        found = torch.from_numpy(np.concatenate(parts, axis=1))
        return found.to(design.device, design.dtype)

    def _codes(self, y: np.ndarray, classes: Any, *, first: bool) -> np.ndarray:
        """Return the class numbers of a part of the data, for ``partial_fit``."""
        name = type(self).__name__
        if first:
            if classes is None:
                raise InvalidParameter(
                    f"{name}: `classes` must be passed on the first call to partial_fit; got None. "
                    "A part of the data need not show every class."
                )
            self.classes_, _ = encode_classes(self, np.asarray(classes))
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise InvalidParameter(
                f"{name}: `classes` is not the same as on last call to partial_fit; got "
                f"{np.unique(classes).tolist()[:10]}, was {self.classes_.tolist()[:10]}."
            )
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise InvalidData(
                f"{name}: y must hold only classes given to the first call of partial_fit; got "
                f"{y[unknown].tolist()[0]!r}, which is not one of {self.classes_.tolist()[:10]}."
            )
        return np.searchsorted(self.classes_, y)


@dataclass(kw_only=True, eq=False, repr=False)
class Online(Discriminant):
    """Base of rules that go over the rows one by one.

    Parameters
    ----------
    warm_start
        Whether a further ``fit`` goes on from the weights there are.
    """

    warm_start: Annotated[bool, OneOf(True, False)] = False

    def _read(self, X: Any, y: Any, weight: Any) -> tuple[Passed, bool]:
        """Check all rows, labels and weights; say whether to go on from before.

        That is so for a warm start with the classes of the last fit.
        """
        check_parameters(self)
        X, y = split_target(X, y)
        X = self._matrix(X, reset=True)
        before = getattr(self, "classes_", np.empty(0)) if self.warm_start else np.empty(0)
        self.classes_, codes = encode_classes(self, check_target(self, X, y))
        rows = _counted(X, codes, check_weight(self, X, weight))
        return rows, np.array_equal(before, self.classes_)

    def _read_part(self, X: Any, y: Any, classes: Any, weight: Any) -> tuple[Passed, bool]:
        """Check a part of the rows, for ``partial_fit``; say whether it is the first."""
        check_parameters(self)
        first = not hasattr(self, "coef_")
        X = self._matrix(X, reset=first)
        codes = self._codes(check_target(self, X, y), classes, first=first)
        return _counted(X, codes, check_weight(self, X, weight)), first


class Passed(NamedTuple):
    """The rows a rule goes over, their class numbers, and the factors of their steps or None."""

    X: Any
    codes: np.ndarray
    weight: np.ndarray | None


def _counted(X: Any, codes: np.ndarray, weight: np.ndarray | None) -> Passed:
    """Return the rows with a weight above 0: the others are left out."""
    if weight is None or weight.all():
        return Passed(X, codes, weight)
    kept = np.flatnonzero(weight)
    return Passed(X[kept], codes[kept], weight[kept])
