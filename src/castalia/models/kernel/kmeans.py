"""k-means clustering."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Constraint, DirectEstimator, Interval, OneOf
from castalia.base.input_checks import check_weight
from castalia.errors import InvalidData, ShapeMismatch, TrainingWarning
from castalia.models.kernel.kmeans_plus_plus import first_centers
from castalia.models.kernel.lloyd import Clustering, distances, lloyd, nearest
from castalia.models.kernel.points import Points
from castalia.utils.devices import piecewise
from castalia.utils.seeds import generator, seed_from
from castalia.utils.text import plural

__all__ = ["KMeans", "Start", "centers_at", "enough_rows"]


class Start(Constraint):
    """A named way to begin, or an array with one row a cluster."""

    def __init__(self, *names: str) -> None:
        self.names = OneOf(*names)

    def rule(self) -> str:
        """Say both."""
        return f"{self.names.rule()}, or an array with one row of numbers a cluster"

    def holds(self, value: Any) -> bool:
        """Whether it is a name or has rows and columns."""
        if isinstance(value, str):
            return self.names.holds(value)
        return np.ndim(value) == 2 and np.asarray(value).dtype.kind in "fiu"

    def hint(self, value: Any) -> str:
        """Suggest the nearest name."""
        return self.names.hint(value)


@dataclass(kw_only=True, eq=False, repr=False)
class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, DirectEstimator):
    """Clusters around centres: every row belongs to the nearest one.

    Minimises sum_n w_n |x_n - c(x_n)|^2, the inertia, by turns: rows go to their nearest centre,
    centres to the mean of their rows. Right for round clusters of like size; for long or unlike
    ones ``GaussianMixture`` is better. Features must be on one scale.

    Parameters
    ----------
    n_clusters
        Number K of clusters.
    init
        ``"k-means++"``: rows far from each other, drawn by chance; or an array (K, D) of centres to
        begin with.
    restarts
        Number of restarts; the result with the smallest inertia is kept. An array or a warm
        start leaves nothing to chance, so there is one run.
    tol
        Stop when the squared movements of all centres sum to less than this share of a feature's
        variance; 0 runs until no row changes its cluster.
    steps
        Most steps of one run.
    warm_start
        Whether to begin at the centres of the last fit.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (K, D)
        Centres.
    labels_ : ndarray of shape (N,)
        Cluster of each training row. ``castalia.save`` leaves it out.
    inertia_ : float
        Weighted sum of squared distances to the nearest centre.
    n_iter_ : int
        Steps of the run that was kept.

    Shapes
    ------
    X (N, D): an array, a frame, a tensor on any device, a scipy sparse matrix; transformed (N, K).

    Notes
    -----
    A step costs one matrix product, O(N D K), in pieces of a few megabytes; the rows are copied
    once, around their mean. With more than 32,768 rows (or 512 K) the beginning is found on a
    sample of at least 8,192: three times k-means++ and a whole run, the best of which continues on
    all rows. With fewer, what comes out depends on the rows and their weights only: shuffling rows,
    or repeating them instead of weighting, gives the same clusters. A cluster that lost all its
    rows gets the row farthest from its centre.

    References
    ----------
    1982, Lloyd, Least squares quantization in PCM. 2007, Arthur, Vassilvitskii, k-means++.

    See Also
    --------
    castalia.GaussianMixture : clusters with a shape, and probabilities.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.0, 3.0], [9.0, 1.0], [9.0, 3.0]]
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.tolist()), model.inertia_
    ([[0.0, 2.0], [9.0, 2.0]], 4.0)
    """

    _sparse: ClassVar[bool] = True
    _unsaved: ClassVar[tuple[str, ...]] = ("labels_",)

    n_clusters: Annotated[int, Interval(1, whole=True)] = 8
    init: Annotated[Any, Start("k-means++")] = "k-means++"
    restarts: Annotated[int, Interval(1, whole=True)] = 1
    tol: Annotated[float, Interval(0)] = 1e-4
    steps: Annotated[int, Interval(1, whole=True)] = 300
    warm_start: Annotated[bool, OneOf(True, False)] = False

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        points = Points(X if issparse(X) else self._tensor(X), sample_weight)
        with piecewise(points.origin.device) as points.spread:
            best = self._best(points)
        self._judge(best)
        self.cluster_centers_ = (best.centers + points.origin).cpu().numpy()
        self.labels_ = best.labels.cpu().numpy()
        self.inertia_, self.n_iter_ = best.inertia, best.steps

    def _best(self, points: Points) -> Clustering:
        enough_rows(self, "n_clusters", self.n_clusters, points)
        continued = self.warm_start and hasattr(self, "cluster_centers_")
        start = self.cluster_centers_ if continued else self.init
        tol = self.tol * points.variance()
        if not isinstance(start, str):
            centers = centers_at(self, points, start, self.n_clusters)
            return lloyd(points, centers, tol=tol, steps=self.steps)
        seed = seed_from(self.random_state)
        runs = (self._run(points, generator(seed, run), tol) for run in range(self.restarts))
        return min(runs, key=lambda run: run.inertia)

    def _run(self, points: Points, random: torch.Generator, tol: float) -> Clustering:
        centers = first_centers(points, self.n_clusters, random, tol=tol, steps=self.steps)
        return lloyd(points, centers, tol=tol, steps=self.steps)

    def _judge(self, found: Clustering) -> None:
        distinct = len(found.labels.unique())
        if distinct < self.n_clusters:
            warnings.warn(
                f"KMeans: found {plural(distinct, 'cluster')} with rows in them, not "
                f"{self.n_clusters}; the rows may hold no more distinct points. Lower "
                "`n_clusters`.",
                TrainingWarning,
                stacklevel=4,
            )
        if not found.converged:
            warnings.warn(
                f"KMeans: the centres still moved after {plural(self.steps, 'step')}. Raise "
                "`steps` or `tol`.",
                TrainingWarning,
                stacklevel=4,
            )

    def _around(self, X: Any) -> tuple[Points, Tensor]:
        """Return later rows and the centres, both from the middle of the centres."""
        check_is_fitted(self, "cluster_centers_")
        X = self._matrix(X)
        X = X if issparse(X) else self._tensor(X)
        like = {} if issparse(X) else {"device": X.device, "dtype": X.dtype}
        centers = torch.as_tensor(self.cluster_centers_).to(**like)
        points = Points(X, origin=centers.mean(dim=0))
        return points, centers - points.origin

    def predict(self, X: Any) -> np.ndarray:
        """Return the nearest centre's number for each row, (N,)."""
        points, centers = self._around(X)
        with piecewise(points.origin.device, wait=False) as points.spread:
            return nearest(points, centers).cpu().numpy()

    def transform(self, X: Any) -> Any:
        """Return the distance from each centre, (N, K); a tensor where X was one."""
        points, centers = self._around(X)
        with piecewise(points.origin.device, wait=False) as points.spread:
            found = distances(points, centers).T
        return found if isinstance(X, Tensor) else np.ascontiguousarray(found.cpu().numpy())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the inertia of the rows: the higher the better."""
        points, centers = self._around(X)
        with piecewise(points.origin.device, wait=False) as points.spread:
            squares = points.squares(centers, nearest(points, centers)).cpu().double().numpy()
        weight = check_weight(self, squares[:, None], sample_weight)
        return -float(squares.sum() if weight is None else squares @ weight)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def enough_rows(owner: Any, name: str, wanted: int, points: Points) -> None:
    """Refuse more clusters than there are rows that count."""
    rows = int((points.weight > 0).sum())
    if wanted > rows:
        raise InvalidData(
            f"{type(owner).__name__}: `{name}` must be at most the number of rows with a weight "
            f"above 0; got {wanted} and n_samples={rows}."
        )


def centers_at(owner: Any, points: Points, start: Any, k: int) -> Tensor:
    """Return given centres, (K, D), from the points' origin."""
    centers = torch.as_tensor(np.asarray(start)).to(points.origin)
    if centers.shape != (k, points.d):
        raise ShapeMismatch(
            f"{type(owner).__name__}: the centres to begin with must have shape "
            f"({k}, {points.d}), a row a cluster; got {tuple(centers.shape)}."
        )
    return centers - points.origin
