"""Gradient boosting: each member is a step of descent in the space of functions.

F_t = F_(t-1) + lr f_t, where f_t is the weighted least-squares fit to z = g / h with weights h; g
is the negative gradient of the loss by F and h its curvature. Squared error: g = y - F, h = 1.
Logistic: g = y - p, h = p (1 - p).  Shapes: N rows, K columns of F, T members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import is_classifier
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from castalia.base import Interval, OneOf
from castalia.base.input_checks import n_rows
from castalia.errors import InvalidParameter
from castalia.models.ensemble.ensemble import Ensemble, merge_repeats

__all__ = ["GradientBoost"]

LARGEST = 4.0  # of |z|: where a probability is nearly 0 or 1, Newton's step would be huge
FLATTEST = 1e-6  # of the curvature


@dataclass(kw_only=True, eq=False, repr=False)
class GradientBoost(Ensemble):
    """Small regression trees added up, each fitted to what is still missing.

    Minimises a loss by descent over functions: a member is fitted to the negative gradient over
    the curvature at each row (Newton's step) and added with a small factor. With trees the
    strongest simple method on most tables; its members are fitted one after the other.

    Parameters
    ----------
    estimator
        The weak learner: any regressor whose ``fit`` takes ``sample_weight``. None takes a tree of
        depth 3.
    task
        ``"classification"`` or ``"regression"``. None: that of ``loss``; without one quantities are
        expected, and a target that may be classes is refused.
    members
        Number of steps; more fit the data better, in the end too well.
    lr
        Factor of each step; a smaller one needs more members and generalises better.
    loss
        ``"squared"``: regression; ``"logistic"``: classification (one tree a step for two classes,
        one a class and step for more); ``"auto"``: by ``task``.

    Attributes
    ----------
    estimators_ : list of list
        The members: for each step, one a column of F.
    start_ : ndarray (K,)
        F_0: the mean, or the log-odds of the classes.
    train_losses_ : ndarray (T,)
        Mean loss after every step.
    classes_ : ndarray (K,)
        The classes, of a classifier.

    Shapes
    ------
    X: (n, D), whatever the weak learner takes.  y: (n,).

    Notes
    -----
    For the logistic loss this is LogitBoost with shrinkage: a leaf's value is the sum of g over
    the sum of h of its rows.

    References
    ----------
    2001, Friedman, Greedy function approximation: a gradient boosting machine, Annals of
    Statistics 29. 2000, Friedman, Hastie, Tibshirani, Additive logistic regression, Annals of
    Statistics 28.

    See Also
    --------
    AdaBoost : the exponential loss.

    Examples
    --------
    >>> from castalia.testing.toys import sine
    >>> X, y = sine(200)
    >>> model = GradientBoost(members=50).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    members: Annotated[int, Interval(1, whole=True)] = 100
    lr: Annotated[float, Interval(0, 1, closed="right")] = 0.1
    loss: Annotated[str, OneOf("auto", "squared", "logistic")] = "auto"

    def _default(self) -> Any:
        return DecisionTreeRegressor(max_depth=3)

    @property
    def _classifies(self) -> bool:
        return self.loss == "logistic" or (self.loss == "auto" and self.task == "classification")

    def _says_task(self) -> bool:
        return self.task is not None or self.loss != "auto"

    def _fit_members(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int, codes: np.ndarray | None
    ) -> None:
        base = self._base()
        if is_classifier(base) or not has_fit_parameter(base, "sample_weight"):
            raise InvalidParameter(
                "GradientBoost: `estimator` must be a regressor that accepts `sample_weight`; got "
                f"{type(base).__name__}."
            )
        label = column_or_1d(y, warn=True) if codes is None else codes
        X, label, weight = merge_repeats(X, label, weight)
        w = np.ones(len(label)) if weight is None else weight
        target = self._target(label)  # (N, K)
        mean = np.average(target, axis=0, weights=w)
        self.start_ = mean if codes is None else _link(mean)
        F = np.tile(self.start_, (len(label), 1))
        self.estimators_, losses = [], []
        for t in range(self.members):
            step, g, h = [], *self._derivatives(target, F)
            z = g if codes is None else _newton(g, h)
            for k in range(F.shape[1]):
                member = self._member(seed, t * F.shape[1] + k)
                step.append(self._fit_member(member, X, z[:, k], w * h[:, k]))
            F = F + self.lr * self._step(step, X)
            self.estimators_.append(step)
            losses.append(float(np.average(self._row_losses(target, F), weights=w)))
        self.train_losses_ = np.array(losses)

    def _target(self, label: np.ndarray) -> np.ndarray:
        """Return columns: the number, the second of two classes, or one column a class."""
        if not self._classifies or len(self.classes_) == 2:
            return label.astype(np.float64)[:, None]
        return np.eye(len(self.classes_))[label]

    def _derivatives(self, target: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the negative gradient of the loss by F, and its curvature."""
        if not self._classifies:
            return target - F, np.ones_like(F)
        p = _probability(F)
        return target - p, np.maximum(p * (1 - p), FLATTEST)

    def _row_losses(self, target: np.ndarray, F: np.ndarray) -> np.ndarray:
        if not self._classifies:
            return ((target - F) ** 2)[:, 0]
        p = np.clip(_probability(F), 1e-15, 1 - 1e-15)
        if p.shape[1] == 1:
            return -(target * np.log(p) + (1 - target) * np.log(1 - p))[:, 0]
        return -(target * np.log(p)).sum(axis=1)

    def _step(self, members: list[Any], X: Any) -> np.ndarray:
        return np.column_stack([member.predict(X) for member in members])

    def _importances(self) -> np.ndarray:
        each = [_importance(member) for step in self.estimators_ for member in step]
        found = np.mean(each, axis=0)
        return found / max(found.sum(), np.finfo(found.dtype).tiny)

    def _staged(self, X: Any) -> Iterator[np.ndarray]:
        """Yield F after every step, (N, K)."""
        check_is_fitted(self, "estimators_")
        X = self._matrix(X)
        F = np.tile(self.start_, (n_rows(X), 1))
        for members in self.estimators_:
            F = F + self.lr * self._step(members, X)
            yield F

    def _decide(self, F: np.ndarray) -> np.ndarray:
        if not self._classifies:
            return F[:, 0]
        return self.classes_[_both(_probability(F)).argmax(axis=1)]

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the prediction after every step."""
        for F in self._staged(X):
            yield self._decide(F)

    def predict(self, X: Any) -> np.ndarray:
        """Return the number, or the most probable class, of each row."""
        *_, F = self._staged(X)
        return self._decide(F)

    @available_if(is_classifier)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each row."""
        *_, F = self._staged(X)
        return _both(_probability(F))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.estimator_type = "classifier" if self._classifies else "regressor"
        tags.classifier_tags = ClassifierTags() if self._classifies else None
        tags.regressor_tags = None if self._classifies else RegressorTags()
        return tags


def _importance(member: Any) -> np.ndarray:
    """Return the importance of each column; that of a tree by how much of the loss it explains."""
    tree = getattr(member, "tree_", None)
    if tree is None:
        return member.feature_importances_
    return tree.compute_feature_importances(normalize=False)


def _probability(F: np.ndarray) -> np.ndarray:
    """Return the probability of the second of two classes, or of every class."""
    return expit(F) if F.shape[1] == 1 else softmax(F, axis=1)


def _newton(g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Return g / h, not too large; K classes have K - 1 degrees of freedom."""
    columns = g.shape[1]
    share = 1.0 if columns == 1 else (columns - 1) / columns
    return share * np.clip(g / h, -LARGEST, LARGEST)


def _both(p: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - p, p]) if p.shape[1] == 1 else p


def _link(mean: np.ndarray) -> np.ndarray:
    """Return the F whose probabilities are the shares of the classes."""
    return np.log(mean / (1 - mean)) if len(mean) == 1 else np.log(mean)
