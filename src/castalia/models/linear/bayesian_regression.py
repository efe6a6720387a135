"""Bayesian linear regression: a Gaussian prior on the weights and Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from castalia.base import Interval
from castalia.models.linear.linear_model import LinearRegressor
from castalia.models.linear.solvers.least_squares_solver import Spectrum, spectrum

__all__ = ["MAPRegression"]


@dataclass(kw_only=True, eq=False, repr=False)
class MAPRegression(LinearRegressor):
    """Linear regression as a posterior: the most probable weights, and how sure one can be.

    With w ~ N(0, prior^2 I), y = w.x + b + N(0, noise^2) and nothing assumed about b, the posterior
    of w is Gaussian. Its mean, which is also its mode, is ridge regression with
    alpha = noise^2 / prior^2; its covariance gives every prediction an error bar, wider far from
    the data.

    Parameters
    ----------
    prior
        Standard deviation tau of the weights before seeing data; smaller shrinks more.
    noise
        Standard deviation sigma of the noise in y; larger trusts the prior more.
    fit_intercept
        Whether there is a constant term; its prior is flat.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (T, D)
        Posterior mean of the weights.
    intercept_ : float or ndarray of shape (T,)
        Posterior mean of the constant term.
    covariance_ : ndarray of shape (D, D)
        Posterior covariance of the weights, sigma^2 (X^T X + sigma^2 / tau^2 I)^-1, the same for
        every target.
    centre_ : ndarray of shape (D,)
        Mean of the rows, where the prediction is surest; zeros without a constant term.
    weight_ : float
        Sum of the sample weights.

    Shapes
    ------
    X (N, D), dense or sparse; y (N,) or (N, T).

    Notes
    -----
    O(N D^2 + D^3) in time, O(D^2) in memory. A sample weight divides the variance of its row's
    noise. Both standard deviations are given, not estimated; cross-validate them, or take
    scikit-learn's ``BayesianRidge`` for estimates.

    References
    ----------
    2006, Bishop, Pattern recognition and machine learning, section 3.3.

    See Also
    --------
    castalia.Ridge : the same weights without error bars, and faster.

    Examples
    --------
    >>> model = MAPRegression(prior=1.0, noise=1.0, fit_intercept=False).fit([[1.0]], [2.0])
    >>> float(model.coef_[0]), float(model.covariance_[0, 0])
    (1.0, 0.5)
    >>> mean, std = model.predict([[0.0]], return_std=True)
    >>> float(mean[0]), float(std[0])
    (0.0, 1.0)
    """

    prior: Annotated[float, Interval(0, closed="neither")] = 1.0
    noise: Annotated[float, Interval(0, closed="neither")] = 1.0

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        design = self._design(X, y, sample_weight)
        found = spectrum(design)
        alpha = torch.tensor([(self.noise / self.prior) ** 2], dtype=torch.float64)
        spread = _covariance(found, alpha.to(found.s.device), self.prior, self.noise)
        self.covariance_ = spread.cpu().numpy()
        self.centre_, self.weight_ = design.x_mean.numpy().copy(), design.total
        dtype = str(X.dtype).removeprefix("torch.")
        self._keep(found.coef(alpha).T.cpu(), design, y, dtype)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the predictive mean of each row, and its standard deviation when asked.

        Parameters
        ----------
        X
            Rows.
        return_std
            Whether to return the standard deviation of y too: that of the noise and that of what
            is not known about the weights and the constant term.

        Returns
        -------
        ndarray of shape (N,) or (N, T), or a pair with an ndarray of shape (N,)
            Mean, and standard deviation.
        """
        mean = self._outputs(X)
        return (mean, _spread(self, X)) if return_std else mean


def _covariance(found: Spectrum, alpha: Tensor, prior: float, noise: float) -> Tensor:
    """Return the posterior covariance; the prior's, where the data say nothing."""
    kept, d = found.V.shape
    seen = found.V.T * (noise**2 / (found.s.square() + alpha)) @ found.V
    if kept == d:
        return seen
    unseen = torch.linalg.qr(found.V.T, mode="complete").Q[:, kept:]  # (D, D - K)
    return seen + prior**2 * unseen @ unseen.T


def _spread(model: MAPRegression, X: Any) -> np.ndarray:
    """Return the standard deviation of y for each row."""
    X = model._matrix(X)
    rows = X.cpu().numpy() if isinstance(X, Tensor) else X.toarray() if issparse(X) else X
    away = rows - model.centre_
    weights = ((away @ model.covariance_) * away).sum(axis=1)  # (x - m)^T S (x - m)
    constant = 1 / model.weight_ if model.fit_intercept else 0.0
    return np.sqrt(model.noise**2 * (1 + constant) + weights)
