"""Gaussian process regression by inducing points, for many rows.

f is known through its values at M points Z; the bound on log p(y) is
log N(y | 0, Q + S) - 1/2 sum_i (k_ii - q_ii) / s_i, Q = K_nm K_mm^-1 K_mn, S the noise. Points and
hyperparameters both maximise it. Shapes: N rows, D columns, M inducing points.
Reference: 2009, Titsias, Variational learning of inducing variables in sparse Gaussian processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from castalia.base import DirectEstimator, Interval, OneOf
from castalia.base.targets import numeric_target
from castalia.errors import InvalidParameter
from castalia.models.kernel.evidence_maximiser import BOUNDS, climb
from castalia.models.kernel.gaussian_evidence import LOG_2_PI, GaussianEvidence
from castalia.models.kernel.gaussian_process_regressor import (
    IsKernel,
    first_kernel,
    kept_rows,
    learn_kernel,
    spreads,
)
from castalia.models.kernel.kernel_algebra import Kernel
from castalia.models.kernel.kernel_matrix import cross_matrix, noise_variance
from castalia.utils.seeds import generator, seed_from

__all__ = ["SparseBound", "SparseGaussianProcess"]

ROWS = 8192  # rows that are processed at a time
JITTER = 1e-8  # of the prior variance, on the matrix of the inducing points
FIRST = 500  # rows by which the first hyperparameters are learnt


class Sums(NamedTuple):
    """What a bound needs from rows: A A^T, A y, y^2, log s, k / s, each added up."""

    square: Tensor
    cross: Tensor
    target: Tensor
    log_noise: Tensor
    prior: Tensor


class SparseBound:
    """The bound on log p(y), a chunk of rows at a time.

    Parameters
    ----------
    kernel
        The kernel, with White noise among its terms.
    X, y
        Rows (N, D) and targets (N,).
    weight
        How often each row counts, (N,).
    """

    def __init__(self, kernel: Kernel, X: Tensor, y: Tensor, weight: Tensor) -> None:
        self.kernel, self.X, self.y, self.weight = kernel, X, y, weight

    def factors(self, theta: Tensor, Z: Tensor) -> tuple[Tensor, Tensor, Tensor, Sums]:
        """Return factors of K_mm and of B = I + A A^T, c = L_B^-1 A y, and the sums."""
        K = cross_matrix(self.kernel, theta, Z, Z)
        scale = self.kernel.diag(theta, Z, noise=False)
        root = torch.linalg.cholesky(K + torch.diag_embed(JITTER * (scale + scale.mean())))
        parts = [self._sums(theta, Z, root, s) for s in range(0, len(self.X), ROWS)]
        sums = Sums(*(torch.stack(part).sum(dim=0) for part in zip(*parts, strict=True)))
        B = sums.square + torch.eye(len(Z)).to(Z)
        half = torch.linalg.cholesky(B)
        c = torch.linalg.solve_triangular(half, sums.cross[:, None], upper=False)[:, 0]
        return root, half, c, sums

    def _sums(self, theta: Tensor, Z: Tensor, root: Tensor, start: int) -> tuple[Tensor, ...]:
        def part(theta: Tensor, Z: Tensor, root: Tensor) -> tuple[Tensor, ...]:
            X, y = self.X[start : start + ROWS], self.y[start : start + ROWS]
            weight = self.weight[start : start + ROWS]
            noise = noise_variance(self.kernel, theta, X)
            share = weight / noise
            K = cross_matrix(self.kernel, theta, Z, X)
            A = torch.linalg.solve_triangular(root, K, upper=False) * share.sqrt()
            own = self.kernel.diag(theta, X, noise=False)
            return (
                A @ A.T,
                A @ (share.sqrt() * y),
                (share * y.square()).sum(),
                (weight * noise.log()).sum(),
                (share * own).sum(),
            )

        if not torch.is_grad_enabled() or len(self.X) <= ROWS:
            return part(theta, Z, root)
        return tuple(
            checkpoint(part, theta, Z, root, use_reentrant=False, preserve_rng_state=False)
        )

    def value(self, theta: Tensor, Z: Tensor) -> Tensor:
        """Return the bound, ()."""
        return self.value_of(*self.factors(theta, Z)[1:])

    def value_of(self, half: Tensor, c: Tensor, sums: Sums) -> Tensor:
        """Return the bound from what ``factors`` gives, ()."""
        fit = -half.diagonal().log().sum() - 0.5 * sums.log_noise - 0.5 * sums.target
        fit = fit + 0.5 * c.square().sum() - 0.5 * self.weight.sum() * LOG_2_PI
        return fit - 0.5 * (sums.prior - sums.square.diagonal().sum())


@dataclass(kw_only=True, eq=False, repr=False)
class SparseGaussianProcess(RegressorMixin, DirectEstimator):
    """Gaussian process regression through a few inducing points, for many rows.

    The points and the kernel's hyperparameters maximise a lower bound of the marginal likelihood,
    so more points can only help; with a point at each row it is the exact process.

    Parameters
    ----------
    kernel
        Sums and products of kernels, with White noise. None: as in ``GaussianProcessRegressor``.
    inducing
        Number M of points; all rows where there are fewer.
    learn
        Whether hyperparameters and points are learnt; otherwise the points are random rows.
    normalize_y
        Whether y is standardised first, and predictions are put back.
    steps
        Most steps of the climb.
    tol
        Relative gain of the bound at which to stop.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel with its hyperparameters, in the units of X and of the standardised y.
    elbo_ : float
        The bound on log p(y) of the standardised targets.
    inducing_ : ndarray of shape (M, D)
        The points.
    root_, half_ : ndarray of shape (M, M)
        Factors of the points' matrix and of I + A A^T.
    c_ : ndarray of shape (M,)
        What the rows say about the points.
    y_mean_, y_scale_ : float
        What targets were standardised by.

    Shapes
    ------
    X (N, D), y (N,).

    Notes
    -----
    O(N M^2) a step, in double precision and in chunks of rows. A weight w counts as w equal
    observations.

    References
    ----------
    2009, Titsias, Variational learning of inducing variables in sparse Gaussian processes, AISTATS.

    See Also
    --------
    castalia.GaussianProcessRegressor : exact, for fewer rows.

    Examples
    --------
    >>> X = np.linspace(0, 5, 300)[:, None]
    >>> model = SparseGaussianProcess(inducing=12, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[2.5]])[0] - np.sin(2.5)) < 0.02)
    True
    """

    kernel: Annotated[Any, IsKernel()] = None
    inducing: Annotated[int, Interval(1, whole=True)] = 100
    learn: Annotated[bool, OneOf(True, False)] = True
    normalize_y: Annotated[bool, OneOf(True, False)] = True
    steps: Annotated[int, Interval(1, whole=True)] = 100
    tol: Annotated[float, Interval(0)] = 1e-6

    restarts = 0  # of the first hyperparameters, learnt from some of the rows

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        Y = column_or_1d(numeric_target(self, y), warn=True).astype(np.float64)
        X, Y, weight = kept_rows(X, Y, sample_weight)
        weight = np.ones(len(X)) if weight is None else weight
        self.y_mean_, self.y_scale_ = 0.0, 1.0
        if self.normalize_y:
            self.y_mean_ = float(np.average(Y, weights=weight))
            spread = float(np.sqrt(np.average((Y - self.y_mean_) ** 2, weights=weight)))
            self.y_scale_ = spread if spread > 1e-12 * max(1.0, abs(self.y_mean_)) else 1.0
        kernel = first_kernel(X, weight) if self.kernel is None else self.kernel
        rows, target = self._tensor(X), self._tensor((Y - self.y_mean_) / self.y_scale_)
        bound = SparseBound(kernel, rows, target, self._tensor(weight))
        theta = kernel.theta(X.shape[1]).to(rows)
        if bool((noise_variance(kernel, theta, rows[:1]) <= 0).any()):
            raise InvalidParameter(
                "SparseGaussianProcess: `kernel` must have White noise among its terms; got "
                f"{kernel!r}. Add White(0.1)."
            )
        source = generator(seed_from(self.random_state))
        distinct = np.unique(X, axis=0)  # repeated rows are one point
        chosen = torch.randperm(len(distinct), generator=source)[: self.inducing]
        points = self._tensor(distinct[chosen.numpy()])
        if self.learn:
            order = torch.randperm(len(X), generator=source)
            theta, points = self._learn(bound, theta, points, order)
        self._keep(bound, theta, points)

    def _learn(
        self, bound: SparseBound, theta: Tensor, points: Tensor, order: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return hyperparameters and points of the highest bound."""
        some = order[:FIRST].to(points.device)
        first = GaussianEvidence(
            bound.kernel, bound.X[some], bound.y[some][:, None], bound.weight[some], "sparse"
        )
        theta = learn_kernel(self, first, theta)
        if len(bound.X) <= min(len(points), FIRST):  # a point at each row: nothing to gain
            return theta, points
        cut = len(theta)
        scale = self._tensor(spreads(bound.X.cpu().numpy(), None))

        def value(at: np.ndarray) -> tuple[float, np.ndarray]:
            x = torch.from_numpy(at).to(points).requires_grad_()
            try:
                found = bound.value(x[:cut], x[cut:].view_as(points) * scale) / len(bound.X)
            except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # a step too far
                return -1e10, np.zeros_like(at)
            return float(found.detach()), torch.autograd.grad(found, x)[0].cpu().numpy()

        start = torch.cat([theta, (points / scale).flatten()]).cpu().numpy()
        free = [BOUNDS] * cut + [(-np.inf, np.inf)] * points.numel()
        with torch.enable_grad():
            found = climb(value, start, steps=self.steps, tol=self.tol, bounds=free)
        end = torch.from_numpy(found.theta).to(points)
        return end[:cut], end[cut:].view_as(points) * scale

    @torch.no_grad()
    def _keep(self, bound: SparseBound, theta: Tensor, points: Tensor) -> None:
        root, half, c, sums = bound.factors(theta, points)
        self.elbo_ = float(bound.value_of(half, c, sums))
        self.kernel_ = bound.kernel.with_theta(theta.cpu(), points.shape[1])
        self.inducing_, self.c_ = points.cpu().numpy(), c.cpu().numpy()
        self.root_, self.half_ = root.cpu().numpy(), half.cpu().numpy()

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean of y at rows, (M,); with ``return_std`` its deviation too, noise in."""
        check_is_fitted(self, "c_")
        rows = self._tensor(self._matrix(X)).double()
        parts = [self._at(part) for part in rows.split(ROWS)] or [self._at(rows)]
        mean, variance = (torch.cat(p).cpu().numpy() for p in zip(*parts, strict=True))
        mean = mean * self.y_scale_ + self.y_mean_
        return (mean, np.sqrt(variance) * self.y_scale_) if return_std else mean

    def _at(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        points, root, half, c = (
            self._tensor(a) for a in (self.inducing_, self.root_, self.half_, self.c_)
        )
        theta = self._tensor(self.kernel_.theta(rows.shape[1]))
        K = cross_matrix(self.kernel_, theta, points, rows)
        white = torch.linalg.solve_triangular(root, K, upper=False)
        seen = torch.linalg.solve_triangular(half, white, upper=False)
        prior = self.kernel_.diag(theta, rows)
        variance = prior - white.square().sum(dim=0) + seen.square().sum(dim=0)
        return c @ seen, variance.clamp_min(0)

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of an interval that holds a new y with probability ``level``."""
        if not 0 < level < 1:
            raise InvalidParameter(
                f"SparseGaussianProcess: `level` must lie between 0 and 1; got {level!r}."
            )
        mean, std = self.predict(X, return_std=True)
        width = float(ndtri(0.5 + level / 2)) * std
        return mean - width, mean + width

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
