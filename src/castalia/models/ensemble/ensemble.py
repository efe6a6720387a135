"""What ensembles share: a wrapped estimator whose task they take over, and members made from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from castalia.base import Constraint, DirectEstimator, Estimator, OneOf
from castalia.base.input_checks import check_matrix, check_X
from castalia.base.targets import encode_classes, numeric_target
from castalia.data import Dataset
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.dense.dense_parameters import Dense
from castalia.models.ensemble.bootstrap import by_content, row_codes
from castalia.models.ensemble.likely_task import TASKS, likely_task
from castalia.train import Training
from castalia.utils.seeds import derive, seed_from

__all__ = ["Ensemble", "Learner", "class_codes", "merge_repeats", "take"]


class Learner(Constraint):
    """Something with ``fit``, ``predict`` and ``get_params``."""

    def rule(self) -> str:
        """Say so."""
        return "an estimator with `fit`, `predict` and `get_params`, or None"

    def holds(self, value: Any) -> bool:
        """Whether it can be cloned, fitted and asked."""
        methods = ("fit", "predict", "get_params")
        return value is None or (
            not isinstance(value, type) and all(hasattr(value, method) for method in methods)
        )


def take(X: Any, rows: np.ndarray) -> Any:
    """Return some rows of an array, a frame or a data set."""
    return X.take(rows) if isinstance(X, Dataset) else _safe_indexing(X, rows)


def class_codes(classes: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the position of each label among the sorted classes."""
    return np.searchsorted(classes, found)


def merge_repeats(
    X: Any, y: np.ndarray, weight: np.ndarray | None
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Return every different row once, with the sum of its weights, in an order given by content.

    So a row of weight 2 and a row written twice are the same to learners for which the order of the
    rows, or their number, plays a part.

    >>> merge_repeats(np.array([[2.0], [1.0], [2.0]]), np.array([0, 1, 0]), None)[1:]
    (array([1, 0]), array([1., 2.]))
    """
    order = by_content(X, y)
    if not isinstance(X, np.ndarray) and not issparse(X):  # frames are put in order only
        return take(X, order), y[order], None if weight is None else weight[order]
    X, y = X[order], y[order]
    w = np.ones(len(y)) if weight is None else weight[order]
    same = np.diff(row_codes(X)) == 0 if issparse(X) else _repeats(X)
    targets = y[:, None] if y.ndim == 1 else y
    same &= (targets[1:] == targets[:-1]).all(axis=1)
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    summed = np.add.reduceat(w, first)
    return X[first], y[first], None if weight is None and len(first) == len(y) else summed


def _repeats(X: np.ndarray) -> np.ndarray:
    """Return whether each row is the one before it, from the second on; NaN equals NaN."""
    same = (X[1:] == X[:-1]) | (np.isnan(X[1:]) & np.isnan(X[:-1]))
    return np.asarray(same.all(axis=1))


@dataclass(kw_only=True, eq=False, repr=False)
class Ensemble(DirectEstimator):
    """Base of ensembles: a classifier or a regressor, as the wrapped estimator is.

    Parameters
    ----------
    estimator
        What the members are copies of, ours or scikit-learn's; None takes a small default.
    task
        ``"classification"`` or ``"regression"``. None: that of ``estimator``; without one classes
        are expected, and a target that may be quantities is refused.
    """

    estimator: Annotated[Any, Learner()] = field(default=None, kw_only=False)
    task: Annotated[str | None, OneOf(None, *TASKS)] = None

    def _default(self) -> Any:
        """Return the estimator that None stands for, by the task."""
        raise NotImplementedError

    def _fit_members(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int, codes: np.ndarray | None
    ) -> None:
        """Fit on checked rows; ``codes`` are the class numbers of a classification."""
        raise NotImplementedError

    def _base(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    def _matrix(self, X: Any, *, reset: bool = False) -> Any:
        X = self._encoded(X, reset=reset)
        ours = isinstance(self._base(), Estimator | DirectEstimator)
        if isinstance(X, Dataset) and not ours:  # scikit-learn's take arrays
            return check_matrix(self, X, reset=reset)
        return check_X(self, X, reset=reset)

    def set_params(self, **params: Any) -> Ensemble:
        """Set parameters; ``estimator__lr`` works from the default ``estimator=None`` too."""
        nested = {name: params.pop(name) for name in [*params] if name.startswith("estimator__")}
        super().set_params(**params)
        if nested and self.estimator is None:
            self.estimator = self._default()
        super().set_params(**nested)
        return self

    def _says_task(self) -> bool:
        """Whether the parameters say what the task is."""
        return self.task is not None or self.estimator is not None

    def _check_task(self, y: np.ndarray) -> None:
        """Refuse parameters that contradict each other, and a target of a doubtful task."""
        own, name = "classification" if is_classifier(self) else "regression", type(self).__name__
        if self.task not in (None, own):
            raise InvalidParameter(
                f"{name}: `task` must be that of the other parameters, {own!r}; got {self.task!r}."
            )
        found = likely_task(y)
        if found != own and not self._says_task():
            kind = {"classification": "classes", "regression": "continuous quantities"}
            raise InvalidData(
                f"{name}: `y` must hold {kind[own]} where `task` is not set; its "
                f"{len(np.unique(y)):,} different values may be {kind[found]}. "
                f"{self._remedy(found)}, or task={own!r} if they are {kind[own]}."
            )

    def _remedy(self, found: str) -> str:
        return f"Set task={found!r}"

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        if not (is_classifier(self) or is_regressor(self)):
            raise InvalidParameter(
                f"{type(self).__name__}: `estimator` must be a classifier or a regressor; got "
                f"{type(self._base()).__name__}."
            )
        self._check_task(y)
        codes = None
        if sample_weight is not None and not sample_weight.all():  # rows of weight 0 are absent
            kept = np.flatnonzero(sample_weight)
            X, y, sample_weight = take(X, kept), y[kept], sample_weight[kept]
        if is_classifier(self):
            self.classes_, codes = encode_classes(self, y)
            y = self.classes_[codes]
        else:
            y = numeric_target(self, y)
        self._fit_members(X, y, sample_weight, seed_from(self.random_state), codes)

    def _member(self, seed: int, number: int) -> Any:
        """Return a fresh copy of the wrapped estimator with a seed of its own."""
        made = clone(self._base())
        settings = made.get_params(deep=True)
        own = derive(seed, number) % 2**31
        new: dict[str, Any] = {
            name: own for name in settings if name.split("__")[-1] == "random_state"
        }
        if isinstance(made, Dense) and made.training is None:
            made.training = Training()  # all epochs: averaging mends what early stopping would
        if self.device != "auto":
            new |= {
                name: self.device for name in ("device", "training__device") if name in settings
            }
            if "training" in settings and settings["training"] is None:
                new["training__device"] = self.device
        return made.set_params(**new)

    def _fit_member(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Fit one member on the rows of positive weight."""
        if weight is None:
            return member.fit(X, y)
        rows = np.flatnonzero(weight)
        if not has_fit_parameter(member, "sample_weight"):
            raise InvalidParameter(
                f"{type(self).__name__}: `estimator` must accept `sample_weight` in `fit` to be "
                f"fitted with weights; got {type(member).__name__}."
            )
        return member.fit(take(X, rows), y[rows], sample_weight=weight[rows].astype(np.float64))

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much each column lowers the impurity of trees, (D,), where members are such."""
        check_is_fitted(self, "estimators_")
        return self._importances()

    def _importances(self) -> np.ndarray:
        return np.mean([member.feature_importances_ for member in self.estimators_], axis=0)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or the R2 of a regressor."""
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base())
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.target_tags.required = True  # a pipeline does not say so
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.sparse = inner.input_tags.sparse
        if tags.classifier_tags is not None:  # exclusive classes only
            tags.classifier_tags.multi_label = False
            tags.target_tags.multi_output = False
        return tags
