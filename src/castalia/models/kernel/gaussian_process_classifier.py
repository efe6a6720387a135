"""Gaussian process classification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, OneOf
from castalia.base.targets import encode_classes
from castalia.models.kernel.covariance_kernels import RBF
from castalia.models.kernel.evidence_maximiser import BOUNDS, climb
from castalia.models.kernel.gaussian_process_regressor import IsKernel, kept_rows, spreads
from castalia.models.kernel.kernel_algebra import Constant, Kernel
from castalia.models.kernel.kernel_matrix import check_room, cross_matrix
from castalia.models.kernel.laplace_evidence import LaplaceEvidence, Mode
from castalia.utils.seeds import generator, seed_from

__all__ = ["GaussianProcessClassifier", "class_columns", "smooth_kernel"]

ROWS = 2048  # rows predicted at a time
NODES = 40  # of the quadrature that averages the sigmoid
ROUGH = 1e-8  # relative gain at which a mode is found while the kernel is learnt
FEW = 400  # rows on which random starts are tried


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianProcessClassifier(ClassifierMixin, DirectEstimator):
    """Classification by a Gaussian process behind a sigmoid: probabilities that know their limits.

    Far from all rows the probabilities go back to even. Several classes are taken one against the
    rest, with one kernel for all.

    Parameters
    ----------
    kernel
        Sums and products of kernels. None: a constant times an RBF, in the units of the data.
    learn
        Whether hyperparameters are those of the highest (approximate) marginal likelihood.
    restarts
        Random starts beside the kernel's own.
    steps
        Most steps of the climb.
    tol
        Relative gain of the marginal likelihood at which to stop.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    kernel_ : Kernel
        The kernel with its hyperparameters.
    log_marginal_likelihood_ : float
        Laplace's approximation, added up over the tasks.
    X_train_ : ndarray of shape (N, D)
        Rows that count.
    y_train_ : ndarray of shape (N, C)
        1 where a row is of the task's class; one task for two classes.
    weight_ : ndarray of shape (N,)
        How often each counts.
    dual_ : ndarray of shape (N, C)
        Weights a of f = K a.

    Shapes
    ------
    X (N, D), y (N,) labels of any kind.

    Notes
    -----
    Laplace's approximation; O(N^3) a step of Newton's method, in double precision. Probabilities
    average the sigmoid over the normal posterior of f, by Gauss–Hermite quadrature.

    References
    ----------
    1998, Williams, Barber, Bayesian classification with Gaussian processes, IEEE PAMI 20.

    See Also
    --------
    castalia.LogisticKernelMachine : the mode alone, with hyperparameters given.
    castalia.SupportVectorMachine : the widest margin instead.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 20)[:, None]
    >>> model = GaussianProcessClassifier().fit(X, np.abs(X[:, 0]) < 1)
    >>> model.predict([[0.0], [2.0]]).tolist()
    [True, False]
    """

    kernel: Annotated[Any, IsKernel()] = None
    learn: Annotated[bool, OneOf(True, False)] = True
    restarts: Annotated[int, Interval(0, whole=True)] = 0
    steps: Annotated[int, Interval(1, whole=True)] = 50
    tol: Annotated[float, Interval(0)] = 1e-5

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        self.__dict__.pop("_modes", None)
        self.classes_, codes = encode_classes(self, y)
        X, Y, weight = kept_rows(X, class_columns(codes, len(self.classes_)), sample_weight)
        check_room(type(self).__name__, len(X), self._tensor(Y).device)
        self.X_train_, self.y_train_ = X, Y
        self.weight_ = np.ones(len(X)) if weight is None else weight
        kernel = smooth_kernel(X, weight) if self.kernel is None else self.kernel
        evidence = self._evidence(kernel, tol=ROUGH)
        theta = kernel.theta(X.shape[1]).to(evidence.X)
        if self.learn and len(theta):
            theta = self._learn(evidence, theta)
        self.kernel_ = kernel.with_theta(theta.cpu(), X.shape[1])
        modes = self._fitted()
        self.dual_ = modes.dual.T.cpu().numpy()
        self.log_marginal_likelihood_ = float(modes.value.sum())

    def _learn(self, evidence: LaplaceEvidence, theta: Tensor) -> Tensor:
        source = generator(seed_from(self.random_state))
        noise = torch.randn(self.restarts, len(theta), generator=source, dtype=theta.dtype)
        starts = [theta, *(theta + noise.to(theta)).clamp(*BOUNDS)]
        few = evidence
        if self.restarts and len(evidence.X) > FEW:
            few = evidence.some(torch.randperm(len(evidence.X), generator=source)[:FEW])
        found = [self._climb(few, start.cpu().numpy()) for start in starts]
        best = max(found, key=lambda pair: pair[1])
        if few is not evidence:
            best = self._climb(evidence, best[0])
        return torch.from_numpy(best[0]).to(theta)

    def _climb(self, evidence: LaplaceEvidence, start: np.ndarray) -> tuple[np.ndarray, float]:
        def value(at: np.ndarray) -> tuple[float, np.ndarray]:
            found, slope = evidence.value_and_slope(torch.from_numpy(at).to(evidence.X))
            return found / len(evidence.X), slope.cpu().numpy() / len(evidence.X)

        ended = climb(value, start, steps=self.steps, tol=self.tol, bounds=[BOUNDS] * len(start))
        return ended.theta, ended.value

    def _evidence(self, kernel: Kernel, tol: float = 1e-12) -> LaplaceEvidence:
        X, y, weight = (self._tensor(a) for a in (self.X_train_, self.y_train_, self.weight_))
        plain = bool((weight == 1).all())
        return LaplaceEvidence(kernel, X, y, None if plain else weight, tol=tol)

    def _theta(self) -> Tensor:
        return self._tensor(self.kernel_.theta(self.X_train_.shape[1]))

    def _fitted(self) -> Mode:
        """Return the modes; a loaded model finds them again when first asked."""
        if "_modes" not in self.__dict__:
            self._modes = self._evidence(self.kernel_).modes(self._theta())
        return self._modes

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_modes", None)
        return state

    # -- what it can be asked --

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """Return the approximate log p(y | X) at logarithms of hyperparameters; maybe its slope."""
        check_is_fitted(self, "dual_")
        at = self._theta() if theta is None else self._tensor(np.asarray(theta, dtype=np.float64))
        evidence = self._evidence(self.kernel_)
        if not eval_gradient:
            return float(evidence.modes(at).value.sum())
        value, slope = evidence.value_and_slope(at)
        return value, slope.cpu().numpy()

    def latent(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of f at rows for each task, (M, C) each."""
        check_is_fitted(self, "dual_")
        rows = self._tensor(self._matrix(X)).double()
        parts = [self._at(part) for part in rows.split(ROWS)] or [self._at(rows)]
        mean, variance = (torch.cat(p).cpu().numpy() for p in zip(*parts, strict=True))
        return mean, variance

    def _at(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        theta = self._theta()
        K = cross_matrix(self.kernel_, theta, rows, self._tensor(self.X_train_))
        prior = self.kernel_.diag(theta, rows)
        modes = self._fitted()
        taken = [
            torch.linalg.solve_triangular(root, S[:, None] * K.T, upper=False)
            for root, S in zip(modes.root, modes.curvature, strict=True)
        ]
        lost = torch.stack([part.square().sum(dim=0) for part in taken], dim=1)
        return K @ self._tensor(self.dual_), (prior[:, None] - lost).clamp_min(0)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (M, K)."""
        mean, variance = self.latent(X)
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        f = mean[..., None] + np.sqrt(variance)[..., None] * nodes
        p = (0.5 * (1 + np.tanh(f / 2))) @ (weights / weights.sum())  # (M, C)
        if len(self.classes_) == 2:
            return np.concatenate([1 - p, p], axis=1)
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row, (M,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def class_columns(codes: np.ndarray, classes: int) -> np.ndarray:
    """Return 0/1 targets of one-against-rest tasks, (N, C); of two classes one task."""
    if classes == 2:
        return (codes == 1).astype(np.float64)[:, None]
    return (codes[:, None] == np.arange(classes)).astype(np.float64)


def smooth_kernel(X: np.ndarray, weight: np.ndarray | None) -> Kernel:
    """Return the usual kernel: a constant times an RBF as wide as the rows are spread."""
    return Constant(4.0) * RBF(float(np.linalg.norm(spreads(X, weight))))
