"""Gaussian mixture by expectation–maximisation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, OneOf
from castalia.errors import InvalidParameter, TrainingWarning
from castalia.models.kernel.em import Fitted, from_labels, maximise, posterior
from castalia.models.kernel.gaussians import KINDS, Mixture
from castalia.models.kernel.kmeans import Start, centers_at, enough_rows
from castalia.models.kernel.kmeans_plus_plus import SAMPLE, first_centers
from castalia.models.kernel.lloyd import lloyd, nearest
from castalia.models.kernel.points import Points
from castalia.utils.devices import piecewise
from castalia.utils.seeds import generator, seed_from
from castalia.utils.text import plural

__all__ = ["GaussianMixture"]

CLUSTERING = 300  # most steps of the k-means that EM begins with


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianMixture(DensityMixin, DirectEstimator):
    """Density as a weighted sum of normal distributions, one a cluster.

    p(x) = sum_k w_k N(x | mu_k, S_k). EM raises the likelihood in every step: rows are shared out
    by p(k | x), then weights, means and covariances are those of the shared rows. It begins with
    the clusters of k-means. Right for clusters with a shape, and where a density or probabilities
    are wanted; a local maximum may be found.

    Parameters
    ----------
    n_components
        Number K of components.
    covariance_type
        ``"full"``: each its own matrix; ``"tied"``: one for all; ``"diag"``: each its own
        variances; ``"spherical"``: each one variance.
    init
        ``"k-means"``, or an array (K, D) of means: rows then begin in the component of the nearest.
    restarts
        Number of restarts; the result of highest likelihood is kept.
    reg_covar
        Added to every variance, in units of X^2; larger keeps components from collapsing.
    tol
        Stop when the mean log-likelihood gains less than this in a step.
    steps
        Most steps of one run.
    warm_start
        Whether to begin at the mixture of the last fit.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        Shares w of the components.
    means_ : ndarray of shape (K, D)
        Means.
    covariances_ : ndarray
        (K, D, D), (D, D), (K, D) or (K,) by ``covariance_type``.
    lower_bound_ : float
        Mean log-likelihood of the training rows before the last step.
    converged_ : bool
        Whether ``tol`` was reached.
    n_iter_ : int
        Steps of the run that was kept.

    Shapes
    ------
    X (N, D): an array, a frame, or a tensor on any device; probabilities (N, K).

    Notes
    -----
    A step is one pass over the rows in pieces of a few megabytes, O(N K D^2) with matrices and
    O(N K D) without. Parameters are float64. With more than 65,536 rows (or 256 K D) EM runs on a
    sample first and goes on with all rows. Sample weights count as repetitions.

    References
    ----------
    1977, Dempster, Laird, Rubin, Maximum likelihood from incomplete data via the EM algorithm,
    JRSS B 39.

    See Also
    --------
    castalia.KMeans : quicker, for round clusters of like size.

    Examples
    --------
    >>> X = [[-1.2], [-1.0], [-0.8], [4.0], [5.0], [6.0]]
    >>> model = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> sorted(model.means_[:, 0].round(3).tolist()), model.weights_.round(3).tolist()
    ([-1.0, 5.0], [0.5, 0.5])
    """

    n_components: Annotated[int, Interval(1, whole=True)] = 1
    covariance_type: Annotated[str, OneOf(*KINDS)] = "full"
    init: Annotated[Any, Start("k-means")] = "k-means"
    restarts: Annotated[int, Interval(1, whole=True)] = 1
    reg_covar: Annotated[float, Interval(0)] = 1e-6
    tol: Annotated[float, Interval(0)] = 1e-3
    steps: Annotated[int, Interval(1, whole=True)] = 100
    warm_start: Annotated[bool, OneOf(True, False)] = False

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        points = Points(self._tensor(X), sample_weight)
        enough_rows(self, "n_components", self.n_components, points)
        with piecewise(points.origin.device) as points.spread:
            best = self._best(points)
        if not best.converged:
            warnings.warn(
                f"GaussianMixture: the mean log-likelihood still gained {self.tol:g} or more after "
                f"{plural(self.steps, 'step')}. Raise `steps`, `tol` or `reg_covar`.",
                TrainingWarning,
                stacklevel=3,
            )
        self._keep(best.mixture, points.origin.double())
        self.lower_bound_, self.n_iter_, self.converged_ = best.bound, best.steps, best.converged

    def _best(self, points: Points) -> Fitted:
        if self.warm_start and hasattr(self, "means_"):
            return self._run(points, self._mixture(points))
        seed, runs = seed_from(self.random_state), self.restarts
        found = (
            self._run(points, self._start(points, generator(seed, run)))
            for run in range(runs if isinstance(self.init, str) else 1)
        )
        return max(found, key=lambda run: run.bound)

    def _run(self, points: Points, start: Mixture) -> Fitted:
        return maximise(
            points,
            start,
            self.covariance_type,
            reg=self.reg_covar,
            tol=self.tol,
            steps=self.steps,
        )

    def _start(self, points: Points, random: torch.Generator) -> Mixture:
        """Return where to begin: clusters; of many rows, where EM led on a sample of them."""
        k = self.n_components
        if not isinstance(self.init, str):
            labels = nearest(points, centers_at(self, points, self.init, k))
            return self._from_labels(points, labels)
        tol = 1e-4 * points.variance()
        centers = first_centers(points, k, random, tol=tol, steps=CLUSTERING)
        size = max(2 * SAMPLE, 64 * k * points.d)
        if points.n <= 4 * size:
            clustering = lloyd(points, centers, tol=tol, steps=CLUSTERING)
            return self._from_labels(points, clustering.labels)
        sample = points.sample(size, random)
        return self._run(sample, self._from_labels(sample, nearest(sample, centers))).mixture

    def _from_labels(self, points: Points, labels: Tensor) -> Mixture:
        return from_labels(points, labels, self.n_components, self.covariance_type, self.reg_covar)

    def _keep(self, mixture: Mixture, origin: Tensor) -> None:
        self.weights_ = mixture.weights.cpu().numpy()
        self.means_ = (mixture.means + origin).cpu().numpy()
        self.covariances_ = mixture.covariances.cpu().numpy()

    def _mixture(self, points: Points) -> Mixture:
        """Return the fitted mixture around the points' origin."""
        found = (self.weights_, self.means_, self.covariances_)
        device = points.origin.device
        weights, means, covariances = (torch.as_tensor(a, device=device) for a in found)
        if means.shape != (self.n_components, points.d) or not self._fits(covariances):
            raise InvalidParameter(
                "GaussianMixture: `n_components`, `covariance_type` and the number of features "
                "must stay as they were for a warm start; the last fit has means of shape "
                f"{tuple(means.shape)} and covariances of shape {tuple(covariances.shape)}. Use "
                "warm_start=False."
            )
        return Mixture(weights, means - points.origin.double(), covariances)

    def _fits(self, covariances: Tensor) -> bool:
        k, d = self.n_components, self.means_.shape[1]
        shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
        return tuple(covariances.shape) == shapes[self.covariance_type]

    def _posterior(self, X: Any) -> tuple[Tensor, Tensor]:
        """Return log p(x), (N,), and p(k | x), (N, K)."""
        check_is_fitted(self, "means_")
        X = self._tensor(self._matrix(X))
        middle = torch.as_tensor(self.means_.mean(axis=0)).to(X)
        points = Points(X, origin=middle)
        components = KINDS[self.covariance_type](self._mixture(points), 0.0)

        def look(rows: slice) -> tuple[Tensor, Tensor]:
            return posterior(components.log_densities(components.seen(points.rows[rows])))

        with piecewise(X.device, wait=False) as spread:
            found = list(spread(look, points.chunks(components.width)))
        log_norms, shares = zip(*found, strict=True)
        return torch.cat(log_norms), torch.cat(shares, dim=1).T

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return p(k | x) of each row, (N, K)."""
        return np.ascontiguousarray(self._posterior(X)[1].cpu().numpy())

    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest component of each row, (N,)."""
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit and return the likeliest component of each training row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return log p(x) of each row, (N,)."""
        return self._posterior(X)[0].cpu().numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of log p(x) over the rows."""
        return float(self.score_samples(X).mean(dtype=np.float64))

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows, (n_samples, D), and the components they come from, by ``random_state``."""
        check_is_fitted(self, "means_")
        if not Interval(1, whole=True).holds(n_samples):
            raise InvalidParameter(
                "GaussianMixture.sample: `n_samples` must be a whole number at least 1; got "
                f"{n_samples!r}."
            )
        random = generator(seed_from(self.random_state), 2**20)  # no run's own stream
        weights = torch.from_numpy(self.weights_)
        labels = torch.multinomial(weights, n_samples, replacement=True, generator=random)
        normal = torch.randn(n_samples, self.means_.shape[1], dtype=torch.float64, generator=random)
        roots = torch.linalg.cholesky(torch.from_numpy(self._matrices()))
        drawn = torch.from_numpy(self.means_)[labels] + (roots[labels] @ normal[:, :, None])[..., 0]
        return drawn.numpy(), labels.numpy()

    def _matrices(self) -> np.ndarray:
        """Return all covariances as matrices, (K, D, D)."""
        k, d = self.means_.shape
        if self.covariance_type in ("full", "tied"):
            return np.broadcast_to(self.covariances_, (k, d, d)).copy()
        variances = np.broadcast_to(self.covariances_.reshape(k, -1), (k, d))
        return variances[:, :, None] * np.eye(d)

    @property
    def n_parameters_(self) -> int:
        """Free parameters: weights, means and covariances."""
        check_is_fitted(self, "means_")
        k, d = self.means_.shape
        symmetric = d * (d + 1) // 2
        of = {"full": k * symmetric, "tied": symmetric, "diag": k * d, "spherical": k}
        return of[self.covariance_type] + k * d + k - 1

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on rows; the smaller the better."""
        log_likelihood = self.score_samples(X).astype(np.float64)
        return float(self.n_parameters_ * np.log(len(log_likelihood)) - 2 * log_likelihood.sum())

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion on rows; the smaller the better."""
        return 2 * self.n_parameters_ - 2 * float(self.score_samples(X).sum(dtype=np.float64))
