"""Gaussian process regression."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Constraint, DirectEstimator, Interval, OneOf
from castalia.base.targets import numeric_target
from castalia.errors import InvalidData, InvalidParameter, TrainingWarning
from castalia.models.kernel.covariance_kernels import RBF, White
from castalia.models.kernel.evidence_maximiser import BOUNDS, best_start, climb, random_starts
from castalia.models.kernel.gaussian_evidence import GaussianEvidence, GaussianFit
from castalia.models.kernel.kernel_algebra import Constant, Kernel
from castalia.models.kernel.kernel_matrix import check_room, cross_matrix, noise_variance
from castalia.utils.seeds import generator, seed_from

__all__ = [
    "GaussianProcessRegressor",
    "IsKernel",
    "first_kernel",
    "kept_rows",
    "learn_kernel",
    "spreads",
]

FEW = 128  # rows of the batch in which many starts are tried
ROWS = 2048  # rows predicted at a time


class IsKernel(Constraint):
    """A kernel, or None for the usual one."""

    def rule(self) -> str:
        """Say so."""
        return "a kernel of castalia.models.kernel, or None"

    def holds(self, value: Any) -> bool:
        """Whether it is one."""
        return value is None or isinstance(value, Kernel)


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianProcessRegressor(RegressorMixin, DirectEstimator):
    """Regression by a distribution over functions: predictions with error bars.

    y = f(x) + noise, f a Gaussian process with a kernel; mean k*^T K^-1 y, variance
    k** - k*^T K^-1 k*. Best for up to some ten thousand rows, smooth functions, and where
    uncertainty matters; beyond, ``SparseGaussianProcess``.

    Parameters
    ----------
    kernel
        Sums and products of kernels, such as ``RBF() * Periodic() + White(0.1)``. None: a constant
        times an RBF with a length scale a column, plus white noise, in the units of the data.
    learn
        Whether hyperparameters are those of the highest marginal likelihood, from the kernel's own
        on; otherwise they stay.
    restarts
        Random starts beside that one, tried in one batch.
    normalize_y
        Whether y is standardised first, and predictions are put back.
    steps
        Most steps of the last climb.
    tol
        Relative gain of the marginal likelihood at which to stop.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its hyperparameters, in the units of X and of the standardised y.
    log_marginal_likelihood_ : float
        log p(y | X) of the (standardised) targets.
    X_train_ : ndarray of shape (N, D)
        Rows that count.
    y_train_ : ndarray of shape (N, T)
        Their targets, standardised.
    weight_ : ndarray of shape (N,)
        How often each counts.
    dual_ : ndarray of shape (N, T)
        K^-1 y.
    y_mean_, y_scale_ : ndarray of shape (T,)
        What targets were standardised by.
    multi_ : bool
        Whether y had columns.
    jitter_ : float
        What had to be added to the diagonal of K; 0 as a rule.

    Shapes
    ------
    X (N, D): an array, a frame, or a tensor; y (N,) or (N, T), all columns with one kernel.

    Notes
    -----
    Exact by Cholesky's factor in double precision: O(N^3) time and a few matrices of N^2 numbers.
    Matrices and gradients are built in blocks of rows, so a GPU takes some ten thousand rows. A
    weight w counts as w equal observations. Predicted deviations are those of y, White noise
    included.

    References
    ----------
    2006, Rasmussen, Williams, Gaussian processes for machine learning, MIT Press.

    See Also
    --------
    castalia.SparseGaussianProcess : for many rows.
    castalia.KernelRidge : the mean alone, with hyperparameters given.

    Examples
    --------
    >>> X = np.linspace(0, 5, 20)[:, None]
    >>> model = GaussianProcessRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[2.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(2.5)) < 0.01), bool(std[0] < 0.1)
    (True, True)
    """

    _unsaved: ClassVar[tuple[str, ...]] = ()

    kernel: Annotated[Any, IsKernel()] = None
    learn: Annotated[bool, OneOf(True, False)] = True
    restarts: Annotated[int, Interval(0, whole=True)] = 4
    normalize_y: Annotated[bool, OneOf(True, False)] = True
    steps: Annotated[int, Interval(1, whole=True)] = 100
    tol: Annotated[float, Interval(0)] = 1e-6

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        self.__dict__.pop("_fit", None)
        Y = numeric_target(self, y).astype(np.float64).reshape(len(y), -1)
        X, Y, weight = kept_rows(X, Y, sample_weight)
        check_room(type(self).__name__, len(X), self._tensor(Y).device)
        self.multi_ = y.ndim == 2
        self._standardise(Y, weight)
        self.X_train_, self.y_train_ = X, (Y - self.y_mean_) / self.y_scale_
        self.weight_ = np.ones(len(X)) if weight is None else weight
        kernel = first_kernel(X, weight) if self.kernel is None else self.kernel
        evidence = self._evidence(kernel)
        theta = kernel.theta(X.shape[1]).to(evidence.X)
        _refuse_twins(self, evidence, theta)
        if self.learn and len(theta):
            theta = learn_kernel(self, evidence, theta)
        self.kernel_ = kernel.with_theta(theta.cpu(), X.shape[1])
        self._remember(theta)

    def _standardise(self, Y: np.ndarray, weight: np.ndarray | None) -> None:
        self.y_mean_, self.y_scale_ = np.zeros(Y.shape[1]), np.ones(Y.shape[1])
        if self.normalize_y:
            self.y_mean_ = np.average(Y, axis=0, weights=weight)
            spread = np.sqrt(np.average((Y - self.y_mean_) ** 2, axis=0, weights=weight))
            self.y_scale_ = np.where(spread > 1e-12 * np.abs(self.y_mean_).clip(1), spread, 1.0)

    def _evidence(self, kernel: Kernel) -> GaussianEvidence:
        X, y, weight = (self._tensor(a) for a in (self.X_train_, self.y_train_, self.weight_))
        plain = bool((weight == 1).all())
        return GaussianEvidence(kernel, X, y, None if plain else weight, type(self).__name__)

    def _remember(self, theta: Tensor) -> None:
        self._fit = self._evidence(self.kernel_).fit(self._theta())
        self.dual_ = self._fit.dual.cpu().numpy()
        self.log_marginal_likelihood_, self.jitter_ = self._fit.value, self._fit.jitter
        if self.jitter_:
            warnings.warn(
                f"{type(self).__name__}: the kernel matrix was not positive definite, so "
                f"{self.jitter_:.1g} was added to its diagonal. Add White() to the kernel.",
                TrainingWarning,
                stacklevel=4,
            )

    def _theta(self) -> Tensor:
        return self._tensor(self.kernel_.theta(self.X_train_.shape[1]))

    def _fitted(self) -> GaussianFit:
        """Return the factor; a loaded model computes it when first asked."""
        check_is_fitted(self, "dual_")
        if "_fit" not in self.__dict__:
            self._fit = self._evidence(self.kernel_).fit(self._theta())
        return self._fit

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_fit", None)
        return state

    # -- what it can be asked --

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean of y at rows, (M,) or (M, T); also its deviation, or the covariance.

        Parameters
        ----------
        X
            Rows.
        return_std
            Whether to return standard deviations of y too, noise included, shaped as the mean.
        return_cov
            Whether to return the covariance matrix of all rows instead, (M, M) or (M, M, T).
        """
        if return_std and return_cov:
            raise InvalidParameter(
                "GaussianProcessRegressor.predict: at most one of `return_std` and `return_cov` "
                "must be True; got both."
            )
        check_is_fitted(self, "dual_")
        rows = self._tensor(self._matrix(X)).double()
        parts = [self._at(part, return_std) for part in rows.split(ROWS)] or [self._at(rows, False)]
        mean = self._shaped(torch.cat([p[0] for p in parts]).cpu().numpy() * self.y_scale_
                            + self.y_mean_)  # fmt: skip
        if return_cov:
            return mean, self._covariance(rows)
        if not return_std:
            return mean
        std = torch.cat([p[1] for p in parts]).sqrt().cpu().numpy()[:, None] * self.y_scale_
        return mean, self._shaped(std)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values if self.multi_ else values[..., 0]

    def _at(self, rows: Tensor, spread: bool) -> tuple[Tensor, Tensor]:
        """Return means (B, T) and variances (B,) at rows, standardised."""
        theta = self._theta()
        K = cross_matrix(self.kernel_, theta, rows, self._tensor(self.X_train_))
        mean = K @ self._tensor(self.dual_)
        if not spread:
            return mean, mean[:, 0]
        white = torch.linalg.solve_triangular(self._fitted().root, K.T, upper=False)
        prior = self.kernel_.diag(theta, rows)
        return mean, (prior - white.square().sum(dim=0)).clamp_min(0)

    def _covariance(self, rows: Tensor) -> np.ndarray:
        theta = self._theta()
        K = cross_matrix(self.kernel_, theta, rows, self._tensor(self.X_train_))
        white = torch.linalg.solve_triangular(self._fitted().root, K.T, upper=False)
        prior = cross_matrix(self.kernel_, theta, rows, rows).clone()
        prior.diagonal().copy_(self.kernel_.diag(theta, rows))
        found = (prior - white.T @ white).cpu().numpy()
        return self._shaped(found[..., None] * self.y_scale_**2)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of an interval that holds a new y with probability ``level``."""
        if not 0 < level < 1:
            raise InvalidParameter(
                f"GaussianProcessRegressor: `level` must lie between 0 and 1; got {level!r}."
            )
        mean, std = self.predict(X, return_std=True)
        width = float(ndtri(0.5 + level / 2)) * std
        return mean - width, mean + width

    def log_likelihood(self, X: Any, y: Any) -> np.ndarray:
        """Return log p(y | x) of each further row, (M,): that of the normal it predicts."""
        mean, std = self.predict(X, return_std=True)
        z = (np.asarray(y, dtype=np.float64) - mean) / std
        found = -0.5 * z**2 - np.log(std) - 0.5 * np.log(2 * np.pi)
        return found.sum(axis=1) if self.multi_ else found

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw values at rows jointly, (M, n_samples) or (M, T, n_samples)."""
        mean, cov = self.predict(X, return_cov=True)
        random = np.random.default_rng(seed_from(random_state))
        mean, cov = mean.reshape(len(mean), -1), cov.reshape(*cov.shape[:2], -1)
        draws = np.stack(
            [
                random.multivariate_normal(mean[:, t], cov[..., t], n_samples, method="eigh").T
                for t in range(mean.shape[1])
            ],
            axis=1,
        )
        return draws if self.multi_ else draws[:, 0]

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """Return log p(y | X) at logarithms of hyperparameters, the learnt ones when None.

        With ``eval_gradient`` also its gradient, (P,).
        """
        if theta is None and not eval_gradient:
            check_is_fitted(self, "dual_")
            return self.log_marginal_likelihood_
        evidence = self._evidence(self.kernel_)
        at = self._theta() if theta is None else self._tensor(np.asarray(theta, dtype=np.float64))
        if not eval_gradient:
            return evidence.fit(at).value
        value, gradient = evidence.value_and_slope(at)
        return value, gradient.cpu().numpy()

    def leave_one_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and deviation of each training target given all others, without refitting."""
        fit = self._fitted()
        middle, variance = self._evidence(self.kernel_).leave_one_out(fit)
        std = variance.sqrt().cpu().numpy()[:, None] * self.y_scale_
        mean = middle.cpu().numpy() * self.y_scale_ + self.y_mean_
        return self._shaped(mean), self._shaped(std)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def kept_rows(
    X: Any, Y: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return rows in float64 with their targets and weights, those of weight 0 left out."""
    X = np.array(X.cpu() if isinstance(X, Tensor) else X, dtype=np.float64)
    if weight is None:
        return X, Y, None
    counted = weight > 0
    if not counted.any():
        raise InvalidData("fit: at least one row must have a weight above 0; got none.")
    return X[counted], Y[counted], np.asarray(weight, dtype=np.float64)[counted]


def spreads(X: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the standard deviation of each column, (D,); 1 where it does not vary."""
    mean = np.average(X, axis=0, weights=weight)
    spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    return np.where(spread > 1e-12 * np.abs(mean), spread, 1.0)


def first_kernel(X: np.ndarray, weight: np.ndarray | None) -> Kernel:
    """Return the usual kernel, with length scales of the size of the columns' spreads."""
    scales = spreads(X, weight) * X.shape[1] ** 0.5
    return Constant() * RBF(tuple(scales.tolist()), ard=True) + White(0.1)


def learn_kernel(owner: Any, evidence: Any, theta: Tensor) -> Tensor:
    """Return the hyperparameters of highest evidence, (P,)."""
    n, device = len(evidence.X), theta.device
    source = generator(seed_from(owner.random_state))
    order = torch.randperm(n, generator=source).to(device)
    if owner.restarts:
        starts = random_starts(theta.cpu(), owner.restarts, source).to(device)
        theta = best_start(evidence.some(order[:FEW]).values_and_slopes, starts)
    bounds = [BOUNDS] * len(theta)

    def values(part: Any) -> Any:
        def value(at: np.ndarray) -> tuple[float, np.ndarray]:
            found, slope = part.value_and_slope(torch.from_numpy(at).to(device))
            return found / len(part.X), slope.cpu().numpy() / len(part.X)

        return value

    at, metric = theta.cpu().numpy(), None
    for size in [size for size in (n // 4,) if size > 2 * FEW] + [n]:
        part = evidence if size == n else evidence.some(order[:size])
        settings = {"steps": owner.steps, "tol": owner.tol, "bounds": bounds, "metric": metric}
        found = climb(values(part), at, **settings)
        inside = np.abs(found.theta).max() < BOUNDS[1] - 1
        at, metric = found.theta, found.metric.todense() if inside and size < n else None
    return torch.from_numpy(at).to(device)


def _refuse_twins(owner: Any, evidence: GaussianEvidence, theta: Tensor) -> None:
    """Refuse equal rows with unlike targets where the kernel leaves no room for noise."""
    noise = noise_variance(evidence.kernel, theta, evidence.X)
    if bool((noise > 0).all()):
        return
    X, y = owner.X_train_, owner.y_train_
    order = np.lexsort(X.T[::-1])
    same = (X[order][1:] == X[order][:-1]).all(axis=1)
    apart = np.abs(y[order][1:] - y[order][:-1]).max(axis=1) > 1e-9
    if (same & apart).any():
        at = int(np.flatnonzero(same & apart)[0])
        rows = sorted((int(order[at]), int(order[at + 1])))
        raise InvalidData(
            f"{type(owner).__name__}: rows {rows[0]} and {rows[1]} of X are equal and their y "
            "differ, which a kernel without noise cannot explain. Add White() to the kernel."
        )
