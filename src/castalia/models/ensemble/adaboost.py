"""AdaBoost: weak learners that each mend the mistakes of those before.

epsilon_t = sum_i w_i [h_t(x_i) != y_i],  alpha_t = log((1 - epsilon_t) / epsilon_t) + log(K - 1),
w_i <- w_i exp(alpha_t [h_t(x_i) != y_i]) / Z,  H(x) = argmax_k sum_t alpha_t [h_t(x) = k].
Shapes: N rows, K classes, T members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import softmax
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from castalia.base import Interval, OneOf
from castalia.base.input_checks import n_rows
from castalia.errors import InvalidParameter
from castalia.models.ensemble.ensemble import Ensemble, class_codes, merge_repeats

__all__ = ["AdaBoost"]

SMALLEST = 1e-10  # error of a member without mistakes, so that its say stays finite


@dataclass(kw_only=True, eq=False, repr=False)
class AdaBoost(Ensemble):
    """Weak learners in a row, each fitted to the rows that those before got wrong.

    Every member votes with the log-odds of its being right. The training error stays below the
    product of 2 sqrt(epsilon_t (1 - epsilon_t)), so it falls exponentially while each member is a
    little better than chance. Right for clean tables; mislabelled rows get ever larger weights.

    Parameters
    ----------
    estimator
        The weak learner: any classifier whose ``fit`` takes ``sample_weight``. None takes a tree
        with a single question.
    task
        ``"classification"``: the only one there is.
    members
        Most members; fewer when one makes no mistake, or is no better than chance.

    Attributes
    ----------
    estimators_ : list
        The T members.
    errors_ : ndarray (T,)
        Weighted error epsilon_t of each member.
    alphas_ : ndarray (T,)
        Say alpha_t of each member.
    train_errors_ : ndarray (T,)
        Training error of the first t members together.
    bounds_ : ndarray (T,)
        Bound on it: for two classes 2^t prod sqrt(epsilon (1 - epsilon)), in general
        prod (1 - epsilon + epsilon e^alpha) e^(-alpha / 2).
    classes_ : ndarray (K,)
        The classes.

    Shapes
    ------
    X: (n, D), whatever the weak learner takes.  y: (n,) classes.

    Notes
    -----
    For two classes this is the original algorithm (its alpha is half of ours, which changes no
    vote); for more it is SAMME, and a member need only beat 1 / K.

    References
    ----------
    1997, Freund, Schapire, A decision-theoretic generalization of on-line learning and an
    application to boosting, JCSS 55. 2009, Zhu, Zou, Rosset, Hastie, Multi-class AdaBoost,
    Statistics and its Interface 2.

    See Also
    --------
    GradientBoost : boosting of any smooth loss.
    Bagging : members that do not know of each other.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = AdaBoost(members=40).fit(X, y)
    >>> bool((model.train_errors_ <= model.bounds_).all())
    True
    """

    task: Annotated[str | None, OneOf(None, "classification")] = None
    members: Annotated[int, Interval(1, whole=True)] = 50

    def _default(self) -> Any:
        return DecisionTreeClassifier(max_depth=1)

    def _fit_members(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int, codes: np.ndarray | None
    ) -> None:
        base = self._base()
        if codes is None or not has_fit_parameter(base, "sample_weight"):
            raise InvalidParameter(
                "AdaBoost: `estimator` must be a classifier that accepts `sample_weight`; got "
                f"{type(base).__name__}."
            )
        X, codes, weight = merge_repeats(X, codes, weight)
        y = self.classes_[codes]
        n, classes = len(y), len(self.classes_)
        start = np.full(n, 1 / n) if weight is None else weight / weight.sum()
        w, votes = start, np.zeros((n, classes))
        self.estimators_: list[Any] = []
        errors, alphas, together = [], [], []
        for t in range(self.members):
            member = self._fit_member(self._member(seed, t), X, y, w * n)
            said = class_codes(self.classes_, member.predict(X))
            missed = said != codes
            error = float(w[missed].sum())
            useful = error < 1 - 1 / classes
            if not useful and self.estimators_:
                break
            capped = max(error, SMALLEST)
            alpha = np.log((1 - capped) / capped) + np.log(classes - 1) if useful else 1.0
            self.estimators_.append(member)
            errors.append(error)
            alphas.append(float(alpha))
            votes[np.arange(n), said] += alpha
            together.append(float(start[votes.argmax(axis=1) != codes].sum()))
            if not useful or error == 0:
                break
            w = w * np.exp(alpha * missed)
            w = w / w.sum()
        self.errors_, self.alphas_ = np.array(errors), np.array(alphas)
        self.train_errors_ = np.array(together)
        grown = 1 - self.errors_ + self.errors_ * np.exp(self.alphas_)
        self.bounds_ = np.cumprod(grown * np.exp(-self.alphas_ / 2))

    def _remedy(self, found: str) -> str:
        return f"Take GradientBoost(task={found!r})"

    def _importances(self) -> np.ndarray:
        each = [member.feature_importances_ for member in self.estimators_]
        return np.average(each, axis=0, weights=self.alphas_)

    def _staged_votes(self, X: Any) -> Iterator[np.ndarray]:
        """Yield each class's share of the say after every member, (N, K)."""
        check_is_fitted(self, "estimators_")
        X = self._matrix(X)
        rows = np.arange(n_rows(X))
        votes, total = np.zeros((len(rows), len(self.classes_))), 0.0
        for member, alpha in zip(self.estimators_, self.alphas_, strict=True):
            votes[rows, class_codes(self.classes_, member.predict(X))] += alpha
            total += alpha
            yield votes / total

    def _votes(self, X: Any) -> np.ndarray:
        *_, last = self._staged_votes(X)
        return last

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the prediction of the first member, of the first two, and so on."""
        for votes in self._staged_votes(X):
            yield self.classes_[votes.argmax(axis=1)]

    def predict(self, X: Any) -> np.ndarray:
        """Return the class with the largest say."""
        votes = self._votes(X)
        return self.classes_[votes.argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return each class's share of the say, (N, K); for two classes their difference, (N,)."""
        votes = self._votes(X)
        return votes[:, 1] - votes[:, 0] if len(self.classes_) == 2 else votes

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the softmax of alpha-weighted votes over K - 1, as SAMME's loss implies."""
        votes = self._votes(X)
        return softmax(votes * self.alphas_.sum() / (len(self.classes_) - 1), axis=1)

    def margins(self, X: Any, y: Any) -> np.ndarray:
        """Return by how much the true class beats the best other, from -1 to 1."""
        votes = self._votes(X)
        codes = class_codes(self.classes_, np.asarray(y))
        rows = np.arange(len(codes))
        own = votes[rows, codes]
        votes[rows, codes] = -np.inf
        return own - votes.max(axis=1)
