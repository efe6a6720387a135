"""Regression with a likelihood: a distribution of y for every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import column_or_1d
from torch import Tensor
from torch.distributions import AffineTransform, Distribution, TransformedDistribution

from castalia.base import Interval, OneOf, Regressor, Target, TargetCodec
from castalia.base.targets import NumberCodec
from castalia.errors import InvalidData
from castalia.models.dense.dense_parameters import Dense
from castalia.objectives import LIKELIHOODS, Likelihood, MixtureLikelihood
from castalia.protocols import Spec
from castalia.utils.seeds import seed_from, seed_scope
from castalia.utils.shared_arrays import shared_tensor

__all__ = ["DistributionRegressor"]


class LikelihoodCodec(NumberCodec):
    """Numbers under a likelihood; counts and rates keep their own units."""

    def fit(
        self, est: Any, adapter: Any, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn mean and deviation, of what is scaled, and how many outputs a row needs."""
        likelihood = est._likelihood()
        if not likelihood.scaled and y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        target = super().fit(est, adapter, X, y, weight)
        if not likelihood.scaled:
            est.target_mean_ = np.zeros_like(est.target_mean_)
            est.target_scale_ = np.ones_like(est.target_scale_)
            target = self.encode(est, y)
            _refuse_negative(est, target.y)
        return Target(target.y, likelihood.outputs(target.outputs), weight)


def _refuse_negative(est: Any, values: Tensor) -> None:
    if bool((values < 0).any()):
        raise InvalidData(
            f"{type(est).__name__}: y must hold counts or rates of at least 0 for likelihood "
            f"{est.likelihood!r}; got {float(values.min()):g}. Use 'gaussian' instead."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class DistributionRegressor(Regressor, Dense):
    """Dense network whose outputs are the parameters of a likelihood.

    Minimises - log p(y | theta(x)). Right when the spread of y changes with x, when y is a count,
    or when several answers are possible; for the mean alone ``MLPRegressor`` is simpler.

    Parameters
    ----------
    likelihood
        ``"gaussian"``, ``"laplace"`` (heavy tails), ``"poisson"`` (counts) or ``"mixture"`` (of
        normals).
    components
        Number of normals of a mixture.
    hidden, activation, dropout
        As for ``MLPClassifier``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.dense.MLP``.
    history_ : list of dict
        Negative log-likelihood of every epoch, in standardised units of y.

    Shapes
    ------
    X: (n, D) numbers, or a frame with named columns of any kind.  y: (n,) or (n, T).

    Notes
    -----
    ``predict`` returns the mean of the distribution, ``predict_std`` its standard deviation.

    References
    ----------
    1994, Nix, Weigend, Estimating the mean and variance of the target probability distribution,
    ICNN. 1994, Bishop, Mixture density networks, NCRG/94/004.

    See Also
    --------
    MLPRegressor : the mean alone.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 300)[:, None]
    >>> y = X[:, 0] + np.random.default_rng(0).normal(scale=0.1 + np.abs(X[:, 0]))
    >>> model = DistributionRegressor(epochs=60, lr=0.01, random_state=0).fit(X, y)
    >>> wide, narrow = model.predict_std(np.array([[2.0], [0.0]]))
    >>> bool(wide > 2 * narrow)
    True
    """

    codec: ClassVar[TargetCodec] = LikelihoodCodec()

    likelihood: Annotated[str, OneOf(*LIKELIHOODS)] = "gaussian"
    components: Annotated[int, Interval(1, whole=True)] = 3

    def _likelihood(self) -> Likelihood:
        return (
            MixtureLikelihood(self.components)
            if self.likelihood == "mixture"
            else LIKELIHOODS[self.likelihood]()
        )

    def _objective(self, spec: Spec) -> Likelihood:
        return self._likelihood()

    def predict_distribution(self, X: Any) -> Distribution:
        """Return the distribution of y for each row as a ``torch.distributions`` object."""
        scaled = self._likelihood().distribution(self._outputs(X).double())
        if not self._likelihood().scaled:
            return scaled
        return _Rescaled(
            scaled, torch.from_numpy(self.target_mean_), torch.from_numpy(self.target_scale_)
        )

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean of the distribution of each row."""
        return self._shape(self.predict_distribution(X).mean)

    def predict_std(self, X: Any) -> np.ndarray:
        """Return the standard deviation of the distribution of each row."""
        return self._shape(self.predict_distribution(X).variance.sqrt())

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Return the log-likelihood of each row's target."""
        values = shared_tensor(np.asarray(y, dtype=np.float64).reshape(len(np.asarray(y)), -1))
        return self.predict_distribution(X).log_prob(values).numpy()

    def sample(self, X: Any, n: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw ``n`` values of y for each row.

        Returns
        -------
        ndarray
            (n, rows), or (n, rows, T) for several targets.
        """
        distribution = self.predict_distribution(X)
        with seed_scope(seed_from(random_state)):
            drawn = distribution.sample(torch.Size([n])).numpy()
        return drawn[..., 0] if self.one_target_ else drawn

    def _shape(self, values: torch.Tensor) -> np.ndarray:
        return values[:, 0].numpy() if self.one_target_ else values.numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.likelihood == "poisson"
        # Several counts a row work, but scikit-learn's check of this tag feeds negatives.
        tags.target_tags.multi_output = self.likelihood != "poisson"
        return tags


class _Rescaled(TransformedDistribution):
    """A distribution in standardised units, shifted and scaled back, with mean and variance."""

    def __init__(self, base: Distribution, mean: torch.Tensor, scale: torch.Tensor) -> None:
        self.shift, self.factor = mean, scale
        super().__init__(base, [AffineTransform(mean, scale, event_dim=1)], validate_args=False)

    @property
    def mean(self) -> torch.Tensor:
        return self.base_dist.mean * self.factor + self.shift

    @property
    def variance(self) -> torch.Tensor:
        return self.base_dist.variance * self.factor**2
