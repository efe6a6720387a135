"""Deep ensembles: the same network trained from several seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import available_if

from castalia.base import Interval, OneOf
from castalia.models.ensemble.averaged import Averaged, Jobs, default_member

__all__ = ["DeepEnsemble"]


def _has_likelihood(ensemble: Any) -> bool:
    return hasattr(ensemble._base(), "log_likelihood")


@dataclass(kw_only=True, eq=False, repr=False)
class DeepEnsemble(Averaged):
    """The same network trained several times, from other starts and in other orders.

    Every member sees all rows; only its seed differs. p(y | x) = (1/M) sum_m p_m(y | x): the
    mixture is never worse in log-likelihood than its members are on average (Jensen), and where
    they disagree the data say little.

    Parameters
    ----------
    estimator
        What is trained: a classifier or a regressor; with ``DistributionRegressor`` the ensemble
        is a mixture of distributions. None takes a small perceptron. Dense networks of ours are
        trained side by side.
    members
        Number of members; 5 are enough for most of the gain.
    combine
        Of classifiers: ``"average"``, the mean of probabilities; ``"logits"``, the softmax of the
        mean of logits, which is the geometric mean of probabilities made to sum to 1.
    n_jobs
        Processes that fit members which are not trained side by side, as in scikit-learn: None is
        one, -1 as many as there are cores.

    Attributes
    ----------
    estimators_ : list
        The fitted members.
    classes_ : ndarray (K,)
        The classes, of a classifier.
    together_ : bool
        Whether the members were trained side by side.

    Shapes
    ------
    X: (n, D) numbers, or a frame with named columns if the members take one.  y: (n,), or (n, T)
    for regressors of several targets.

    Notes
    -----
    Trained side by side, a member ends with the weights of a lone fit from its seed, up to
    rounding.

    References
    ----------
    2017, Lakshminarayanan, Pritzel, Blundell, Simple and scalable predictive uncertainty
    estimation using deep ensembles, arXiv 1612.01474.

    See Also
    --------
    Bagging : members that see other rows.
    SnapshotEnsemble : members from one training.

    Examples
    --------
    >>> from castalia.models.dense import MLPRegressor
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> net = MLPRegressor(hidden=(16,), epochs=100, lr=0.01)
    >>> model = DeepEnsemble(estimator=net, members=3, random_state=0).fit(X, X[:, 0] ** 2)
    >>> inside, outside = model.predict_std(np.array([[0.5], [4.0]]))
    >>> bool(outside > inside)
    True
    """

    members: Annotated[int, Interval(1, whole=True)] = 5
    combine: Annotated[str, OneOf("average", "logits")] = "average"
    n_jobs: Annotated[int | None, Jobs()] = None

    def _default(self) -> Any:
        return default_member(self.task)

    def _fit_members(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int, codes: np.ndarray | None
    ) -> None:
        members = [self._member(seed, i) for i in range(self.members)]
        self._fit_all(members, X, y, weight, jobs=self.n_jobs)

    def _combined(self, probabilities: np.ndarray) -> np.ndarray:  # (M, N, K)
        if self.combine == "logits":
            tiny = np.finfo(probabilities.dtype).tiny
            return softmax(np.log(probabilities.clip(tiny)).mean(axis=0), axis=1)
        return super()._combined(probabilities)

    def predict_std(self, X: Any) -> np.ndarray:
        """Return the standard deviation of the mixture, or how far the members spread.

        Members with a ``predict_std`` of their own add their variance to that of their means:
        sigma^2 = (1/M) sum_m (sigma_m^2 + mu_m^2) - mu^2.
        """
        if is_classifier(self) or not hasattr(self._base(), "predict_std"):
            return super().predict_std(X)
        X = self._checked(X)
        variance = np.stack([member.predict_std(X) ** 2 for member in self.estimators_])
        return np.sqrt(variance.mean(axis=0) + self._values(X).var(axis=0))

    @available_if(_has_likelihood)
    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Return log (1/M) sum_m p_m(y | x) of each row."""
        X = self._checked(X)
        each = np.stack([member.log_likelihood(X, y) for member in self.estimators_])
        return logsumexp(each, axis=0) - np.log(len(each))
