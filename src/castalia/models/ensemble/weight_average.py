"""Weight averaging: an ensemble along one trajectory, folded into a single network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import nn

from castalia.base import Estimator, Interval, OneOf
from castalia.errors import InvalidParameter
from castalia.models.ensemble.averaged import default_member
from castalia.models.ensemble.ensemble import Ensemble
from castalia.train import Training

__all__ = ["WeightAverage"]


@dataclass(kw_only=True, eq=False, repr=False)
class WeightAverage(Ensemble):
    """A network whose weights are the mean of those passed on the way.

    Near a minimum the steps wander around it; their mean lies nearer to it than they do. To first
    order the network of the mean weights answers as the mean of the networks, so this is an
    ensemble that costs one network when it predicts.

    Parameters
    ----------
    estimator
        An estimator of ours that is trained by gradients. None takes a small
        perceptron.
    average
        ``"swa"``: plain mean over the ends of the last quarter of the epochs; ``"ema"``: moving
        average over the steps.
    decay_rate
        Of the moving average: weights older than about 1 / (1 - decay) steps fade.

    Attributes
    ----------
    estimator_ : object
        The fitted estimator; its network has the mean weights.
    module_ : torch.nn.Module
        That network.
    classes_ : ndarray (K,)
        The classes, of a classifier.

    Shapes
    ------
    As those of the wrapped estimator.

    Notes
    -----
    The same as ``Training(average=…)`` on the estimator itself; this class gives it a name beside
    the other ensembles.

    References
    ----------
    2018, Izmailov et al., Averaging weights leads to wider optima and better generalization, arXiv
    1803.05407.

    See Also
    --------
    SnapshotEnsemble : averages predictions along a trajectory.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> WeightAverage(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    average: Annotated[str, OneOf("swa", "ema")] = "swa"
    decay_rate: Annotated[float, Interval(0, 1, closed="neither")] = 0.999

    def _default(self) -> Any:
        return default_member(self.task)

    def _fit_members(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int, codes: np.ndarray | None
    ) -> None:
        member = self._member(seed, 0)
        if not isinstance(member, Estimator):
            raise InvalidParameter(
                "WeightAverage: `estimator` must be one of ours that is trained by gradients; got "
                f"{type(member).__name__}."
            )
        training = member.training if member.training is not None else Training()
        kind = "swa" if self.average == "swa" else ("ema", self.decay_rate)
        member.set_params(training=replace(training, average=kind))
        self.estimator_ = self._fit_member(member, X, y, weight)

    @property
    def module_(self) -> nn.Module:
        """The network with the mean weights."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.module_

    @available_if(is_classifier)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each row."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(self._matrix(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class, or the number, of each row."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(self._matrix(X))
