"""Bagging: members fitted to bootstrap samples, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import has_fit_parameter

from castalia.base import Interval, OneOf
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.ensemble.averaged import Averaged, Jobs, default_member
from castalia.models.ensemble.bootstrap import bootstrap_counts
from castalia.models.ensemble.ensemble import take
from castalia.utils.seeds import derive

__all__ = ["Bagging"]


@dataclass(kw_only=True, eq=False, repr=False)
class Bagging(Averaged):
    """Members fitted to bootstrap samples; their mean or their vote decides.

    Each member sees N rows drawn with replacement from the N there are. For members of error
    variance v and correlation c the mean has variance v (c + (1 - c) / M), so bagging helps
    learners that change much with their data (deep trees, networks) and does nothing for stable
    ones such as least squares.

    Parameters
    ----------
    estimator
        What the members are copies of: a classifier or a regressor, ours or scikit-learn's. None
        takes a small perceptron. Dense networks of ours are trained side by side.
    members
        Number of members; more never hurt, and help less and less.
    combine
        ``"average"``: mean of probabilities or numbers; ``"vote"``: the class named most often.
    oob_score
        Whether to score every row by the members that did not see it.
    n_jobs
        Processes that fit members which are not trained side by side, as in scikit-learn: None is
        one, -1 as many as there are cores.

    Attributes
    ----------
    estimators_ : list
        The fitted members.
    classes_ : ndarray (K,)
        The classes, of a classifier.
    oob_score_ : float
        Accuracy or R2 out of the bag.
    oob_prediction_ : ndarray (N, K) or (N,) or (N, T)
        Mean answer of the members that did not see a row; NaN where all have.
    together_ : bool
        Whether the members were trained side by side.

    Shapes
    ------
    X: (n, D) numbers, or a frame with named columns if the members take one.  y: (n,), or (n, T)
    for regressors of several targets.

    Notes
    -----
    Row weights say how often a row counts: the number of draws is their sum and at least n. A
    sample with a single class is drawn again.

    References
    ----------
    1996, Breiman, Bagging predictors, Machine Learning 24.

    See Also
    --------
    DeepEnsemble : all rows for every member; only the seeds differ.
    AdaBoost : members that mend each other's mistakes.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = Bagging(members=5, random_state=0, oob_score=True).fit(X, y)
    >>> len(model.estimators_), model.oob_score_ > 0.9
    (5, True)
    """

    members: Annotated[int, Interval(1, whole=True)] = 10
    combine: Annotated[str, OneOf("average", "vote")] = "average"
    oob_score: Annotated[bool, OneOf(True, False)] = False
    n_jobs: Annotated[int | None, Jobs()] = None

    def _default(self) -> Any:
        return default_member(self.task)

    def _fit_members(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int, codes: np.ndarray | None
    ) -> None:
        if self.combine == "vote" and codes is None:
            raise InvalidParameter(
                "Bagging: `combine` must be 'average' for a regressor; got 'vote'. Numbers have no "
                "majority."
            )
        random = np.random.default_rng(derive(seed, self.members))
        target = y if codes is None else codes
        needed = 0 if codes is None else 2
        counts = bootstrap_counts(
            X, target, weight, samples=self.members, random=random, classes=needed
        )  # (M, N)
        members = [self._member(seed, i) for i in range(self.members)]
        self._fit_all(members, X, y, weight, counts, self.n_jobs)
        if self.oob_score:
            self._score_out_of_bag(X, y, codes, counts == 0)

    def _fit_member(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        if weight is not None and not has_fit_parameter(member, "sample_weight"):
            rows = np.repeat(np.arange(len(y)), weight)
            return member.fit(take(X, rows), y[rows])
        return super()._fit_member(member, X, y, weight)

    def _combined(self, probabilities: np.ndarray) -> np.ndarray:
        if self.combine == "vote":
            probabilities = self._one_hot(probabilities.argmax(axis=2))
        return probabilities.mean(axis=0)

    def _score_out_of_bag(
        self, X: Any, y: np.ndarray, codes: np.ndarray | None, unseen: np.ndarray
    ) -> None:
        found = self._probabilities(X) if is_classifier(self) else self._values(X)
        if self.combine == "vote":
            found = self._one_hot(found.argmax(axis=2))
        voters = unseen.sum(axis=0)  # (N,)
        judged = voters > 0
        if not judged.any():
            raise InvalidData(
                f"Bagging: `oob_score` needs rows that some member has not seen; got none of "
                f"{len(y)} with members={self.members}. Take more members."
            )
        mask = unseen.reshape(*unseen.shape, *[1] * (found.ndim - 2))
        with np.errstate(invalid="ignore"):
            mean = (found * mask).sum(axis=0) / voters.reshape(-1, *[1] * (found.ndim - 2))
        self.oob_prediction_ = mean
        if codes is None:
            self.oob_score_ = float(r2_score(y[judged], mean[judged]))
        else:
            self.oob_score_ = float(accuracy_score(codes[judged], mean[judged].argmax(axis=1)))
