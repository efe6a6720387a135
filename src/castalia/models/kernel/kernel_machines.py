"""Kernel ridge regression, kernel logistic regression and support vector machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval
from castalia.base.targets import class_weights, encode_classes, numeric_target
from castalia.models.kernel.cholesky_blocks import factor
from castalia.models.kernel.covariance_kernels import RBF
from castalia.models.kernel.gaussian_process_classifier import class_columns
from castalia.models.kernel.gaussian_process_regressor import IsKernel, kept_rows, spreads
from castalia.models.kernel.kernel_algebra import Kernel
from castalia.models.kernel.kernel_matrix import check_room, cross_matrix, gram_matrix
from castalia.models.kernel.laplace_evidence import posterior_mode

__all__ = ["KernelRidge", "LogisticKernelMachine", "SupportVectorMachine"]

ROWS = 4096  # rows predicted at a time


@dataclass(kw_only=True, eq=False, repr=False)
class _KernelMachine(DirectEstimator):
    """f(x) = sum_i a_i k(x_i, x) + b, fitted with hyperparameters as they are."""

    kernel: Annotated[Any, IsKernel()] = None

    def _prepare(self, X: np.ndarray, weight: np.ndarray | None) -> Tensor:
        """Choose the kernel and return its matrix of the training rows."""
        wide = float(np.linalg.norm(spreads(X, weight)))
        self.kernel_: Kernel = RBF(wide / 2**0.5) if self.kernel is None else self.kernel
        self.X_train_ = X
        check_room(type(self).__name__, len(X), self._tensor(X).device)
        return gram_matrix(self.kernel_, self._theta(), self._tensor(X))

    def _theta(self) -> Tensor:
        return self._tensor(self.kernel_.theta(self.X_train_.shape[1]))

    def _values(self, X: Any) -> np.ndarray:
        """Return sum_i a_i k(x_i, x), (M, T)."""
        check_is_fitted(self, "dual_")
        rows, kept = self._tensor(self._matrix(X)).double(), self._tensor(self.X_train_)
        theta, dual = self._theta(), self._tensor(self.dual_)
        parts = [cross_matrix(self.kernel_, theta, part, kept) @ dual for part in rows.split(ROWS)]
        return torch.cat(parts).cpu().numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class KernelRidge(RegressorMixin, _KernelMachine):
    """Ridge regression on the features of a kernel, however many those are.

    f(x) = sum_i a_i k(x_i, x), a = (K + alpha I)^-1 y: the mean of a Gaussian process with noise of
    variance alpha, without its error bars.

    Parameters
    ----------
    kernel
        Sums and products of kernels. None: an RBF as wide as the rows are spread.
    alpha
        Penalty; larger is smoother.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel.
    dual_ : ndarray of shape (N, T)
        Weights a of the training rows.
    X_train_ : ndarray of shape (N, D)
        Rows that count.
    multi_ : bool
        Whether y had columns.

    Shapes
    ------
    X (N, D), y (N,) or (N, T).

    Notes
    -----
    O(N^3) by Cholesky's factor in double precision. There is no constant term: add ``Constant()``
    to the kernel, or centre y. With the kernel ``Linear()`` it is ridge regression.

    References
    ----------
    1998, Saunders, Gammerman, Vovk, Ridge regression learning algorithm in dual variables, ICML.

    See Also
    --------
    castalia.GaussianProcessRegressor : learns the kernel and gives error bars.

    Examples
    --------
    >>> X = np.linspace(0, 5, 30)[:, None]
    >>> model = KernelRidge(kernel=RBF(1.0), alpha=1e-3).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[2.5]])[0] - np.sin(2.5)) < 0.01)
    True
    """

    alpha: Annotated[float, Interval(0, closed="neither")] = 1.0

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        Y = numeric_target(self, y).astype(np.float64).reshape(len(y), -1)
        X, Y, weight = kept_rows(X, Y, sample_weight)
        self.multi_ = y.ndim == 2
        K = self._prepare(X, weight)
        penalty = torch.full((len(X),), float(self.alpha), dtype=K.dtype, device=K.device)
        K.diagonal().add_(penalty if weight is None else penalty / self._tensor(weight))
        root, _ = factor(K, owner=type(self).__name__)
        self.dual_ = torch.cholesky_solve(self._tensor(Y), root).cpu().numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) of each row, (M,) or (M, T)."""
        values = self._values(X)
        return values if self.multi_ else values[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class _KernelClassifier(ClassifierMixin, _KernelMachine):
    """One function against the rest for each class; of two classes one function."""

    class_weight: Any = None

    def _start(
        self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None
    ) -> tuple[Tensor, np.ndarray, np.ndarray]:
        """Learn the classes; return the kernel matrix, 0/1 targets and weights."""
        self.classes_, codes = encode_classes(self, y)
        weight = class_weights(self, codes, sample_weight, ones=True)
        X, Y, kept = kept_rows(X, class_columns(codes, len(self.classes_)), weight)
        kept = np.ones(len(X)) if kept is None else kept
        return self._prepare(X, kept), Y, kept

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) of each row: (M,) for two classes, else (M, K)."""
        values = self._values(X) + self.intercept_
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the largest f, (M,)."""
        f = self.decision_function(X)
        return self.classes_[(f > 0).astype(int) if f.ndim == 1 else f.argmax(axis=1)]


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticKernelMachine(_KernelClassifier):
    """Logistic regression on the features of a kernel.

    Minimises alpha/2 a^T K a + sum_n log(1 + exp(-y_n f(x_n))), f(x) = sum_i a_i k(x_i, x): smooth
    boundaries with probabilities.

    Parameters
    ----------
    kernel
        Sums and products of kernels. None: an RBF as wide as the rows are spread.
    alpha
        Penalty; larger is smoother.
    class_weight
        None, ``"balanced"``, or a dict from class to weight; multiplies the sample weights.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    kernel_ : Kernel
        The kernel.
    dual_ : ndarray of shape (N, C)
        Weights a of the training rows.
    intercept_ : float
        0: a constant term is ``Constant()`` in the kernel.
    X_train_ : ndarray of shape (N, D)
        Rows that count.

    Shapes
    ------
    X (N, D), y (N,) labels of any kind.

    Notes
    -----
    Newton's method, O(N^3) a step. It is the mode of a Gaussian process with the kernel K / alpha.

    References
    ----------
    2005, Zhu, Hastie, Kernel logistic regression and the import vector machine, JCGS 14.

    See Also
    --------
    castalia.GaussianProcessClassifier : averages over f, and learns the kernel.

    Examples
    --------
    >>> xor = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> LogisticKernelMachine(kernel=RBF(0.5), alpha=0.1).fit(xor, [0, 1, 1, 0]).predict(xor)
    array([0, 1, 1, 0])
    """

    alpha: Annotated[float, Interval(0, closed="neither")] = 0.1

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        K, Y, weight = self._start(X, y, sample_weight)
        K, weights = K / self.alpha, self._tensor(weight)
        modes = [posterior_mode(K, row, weights) for row in self._tensor(Y.T.copy()).split(1)]
        self.dual_ = torch.cat([m.dual for m in modes]).T.cpu().numpy() / self.alpha
        self.intercept_ = 0.0

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (M, K)."""
        f = self.decision_function(X)
        p = 0.5 * (1 + np.tanh(f / 2))
        if f.ndim == 1:
            return np.stack([1 - p, p], axis=1)
        return p / p.sum(axis=1, keepdims=True)


@dataclass(kw_only=True, eq=False, repr=False)
class SupportVectorMachine(_KernelClassifier):
    """Support vector machine: the widest margin in the space of a kernel.

    Minimises |f|^2 / 2 + C sum_n max(0, 1 - y_n f(x_n)), f(x) = sum_i a_i k(x_i, x) + b. Only rows
    on the margin or inside it, the support vectors, have weights. Several classes are taken one
    against the rest.

    Parameters
    ----------
    kernel
        Sums and products of kernels. None: an RBF as wide as the rows are spread.
    C
        Price of a row inside the margin; smaller is smoother.
    class_weight
        None, ``"balanced"``, or a dict from class to weight; multiplies the sample weights.
    tol
        Tolerance of the solver.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    kernel_ : Kernel
        The kernel.
    support_ : ndarray of int
        Rows (of those that count) with a weight.
    dual_ : ndarray of shape (S, C)
        Their weights.
    intercept_ : ndarray of shape (C,)
        Constant terms.
    X_train_ : ndarray of shape (S, D)
        The support vectors.

    Shapes
    ------
    X (N, D), y (N,) labels of any kind.

    Notes
    -----
    The dual is solved by libsvm through ``sklearn.svm.SVC`` on the kernel matrix, so memory is
    N^2 numbers; it gives no probabilities.

    References
    ----------
    1995, Cortes, Vapnik, Support-vector networks, Machine Learning 20. 2011, Chang, Lin, LIBSVM.

    See Also
    --------
    castalia.LinearSVM : without a kernel, for many rows.
    castalia.LogisticKernelMachine : with probabilities.

    Examples
    --------
    >>> xor = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> SupportVectorMachine(kernel=RBF(0.5), C=10.0).fit(xor, [0, 1, 1, 0]).predict(xor)
    array([0, 1, 1, 0])
    """

    C: Annotated[float, Interval(0, closed="neither")] = 1.0
    tol: Annotated[float, Interval(0, closed="neither")] = 1e-4

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        gram, Y, weight = self._start(X, y, sample_weight)
        K = gram.cpu().numpy()
        dual, intercept = np.zeros(Y.shape), np.zeros(Y.shape[1])
        for task, positive in enumerate(Y.T):
            solver = SVC(kernel="precomputed", C=self.C, tol=self.tol, random_state=0)
            solver.fit(K, positive, sample_weight=weight)
            dual[solver.support_, task] = solver.dual_coef_[0]
            intercept[task] = solver.intercept_[0]
        self.support_ = np.flatnonzero(np.abs(dual).max(axis=1) > 0)
        self.dual_, self.intercept_ = dual[self.support_], intercept
        self.X_train_ = self.X_train_[self.support_]
