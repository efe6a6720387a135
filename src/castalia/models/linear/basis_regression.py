"""Regression on fixed functions of the inputs: curved in x, linear in the weights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Annotated, Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from castalia.base import Interval, OneOf
from castalia.models.linear.linear_model import LinearRegressor
from castalia.models.linear.solvers.least_squares_solver import solve
from castalia.models.linear.solvers.singular_systems import report_singular
from castalia.utils.sparse_blocks import dense_blocks

__all__ = ["BasisRegression", "PolynomialRegression", "fourier", "gaussian", "monomials"]


def monomials(X: Any, degree: int) -> Any:
    """Return all products of 1 to ``degree`` features, (N, M): x1, x2, x1^2, x1 x2, x2^2 and on.

    >>> monomials(np.array([[2.0, 3.0]]), 2).tolist()
    [[2.0, 3.0, 4.0, 6.0, 9.0]]
    """
    known: dict[tuple[int, ...], Any] = {(): 1.0}
    for order in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(X.shape[1]), order):
            known[chosen] = known[chosen[:-1]] * X[:, chosen[-1]]
    columns = list(known.values())[1:]
    return torch.stack(columns, dim=1) if isinstance(X, Tensor) else np.stack(columns, axis=1)


def gaussian(X: Any, centres: Any, bandwidth: Any) -> Any:
    """Return exp(-(x - mu_j)^2 / (2 s^2)) for each feature and centre, (N, D J).

    Examples
    --------
    >>> gaussian(np.array([[1.0]]), np.array([[1.0, 3.0]]), np.array([[1.0]])).round(4).tolist()
    [[1.0, 0.1353]]
    """
    lib = torch if isinstance(X, Tensor) else np
    away = (X[:, :, None] - centres) / bandwidth  # (N, D, J)
    return lib.exp(-(away**2) / 2).reshape(X.shape[0], -1)


def fourier(X: Any, size: int, period: Any) -> Any:
    """Return cos and sin of 2 pi k x / period for k = 1 … size and each feature, (N, 2 D size).

    >>> fourier(np.array([[0.25]]), 1, np.array([1.0])).round(6).tolist()
    [[0.0, 1.0]]
    """
    lib: Any = torch if isinstance(X, Tensor) else np
    waves = lib.arange(1, size + 1, **({"device": X.device} if lib is torch else {}))
    phase = (2 * np.pi * X / period)[:, :, None] * waves  # (N, D, K)
    both = lib.concatenate([lib.cos(phase), lib.sin(phase)], axis=2)
    return both.reshape(X.shape[0], -1)


@dataclass(kw_only=True, eq=False, repr=False)
class ExpansionRegressor(LinearRegressor):
    """Base of regressions on functions of the inputs; the penalty is ridge's.

    Parameters
    ----------
    alpha
        Weight of the penalty alpha |w|^2 beside the sum of squared errors; 0 is least squares.
    singular
        What to do when the functions are not independent on the data and alpha is 0: ``"warn"``,
        ``"raise"`` or ``"min_norm"``.
    """

    alpha: Annotated[float, Interval(0)] = 0.0
    singular: Annotated[str, OneOf("warn", "raise", "min_norm")] = "warn"

    def _functions(self, X: Any) -> Any:
        """Return the functions of dense rows, (N, M)."""
        raise NotImplementedError

    def _expanded(self, X: Any) -> Any:
        if issparse(X):
            return np.concatenate([self._functions(block) for block in dense_blocks(X)])
        return self._functions(X)

    def _learn(self, X: Any) -> None:
        """Set what the functions need to know of the training rows."""

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        self._learn(X if sample_weight is None else X[sample_weight > 0])
        design = self._design(self._expanded(X), y, sample_weight)
        alpha = torch.full((design.Y.shape[1],), float(self.alpha), dtype=torch.float64)
        found = solve(design, alpha)
        report_singular(self, found, design.shape, self.singular)
        self.condition_ = found.condition
        self._keep(found.coef, design, y, str(X.dtype).removeprefix("torch."))


@dataclass(kw_only=True, eq=False, repr=False)
class PolynomialRegression(ExpansionRegressor):
    """Least squares on the powers of the inputs and their products.

    h(x) = sum_k w_k x^k up to a degree, which is the inductive bias: a low one cannot bend, N - 1
    goes through every one of N points.

    Parameters
    ----------
    degree
        Highest power; larger bends more. With D features there are (D + degree choose degree) - 1
        functions.
    singular
        What to do when X has not enough different rows for the degree and alpha is 0: ``"warn"``,
        ``"raise"``, or ``"min_norm"``: return the weights of smallest norm without a word.
    fit_intercept
        Whether there is a constant term w_0.

    Attributes
    ----------
    coef_ : ndarray of shape (M,) or (T, M)
        Weights of the monomials: x1, x2, …, x1^2, x1 x2, …
    intercept_ : float or ndarray of shape (T,)
        Constant term.
    condition_ : float
        Condition number of the powers, columns scaled to one length.

    Shapes
    ------
    X (N, D), y (N,) or (N, T).

    Notes
    -----
    High powers are nearly collinear; the solver turns to singular values when they are, and loses
    little. Inputs far from zero (years, say) are better standardised first.

    References
    ----------
    1815, Gergonne, Application de la méthode des moindres quarrés à l'interpolation des suites.

    See Also
    --------
    castalia.BasisRegression : other functions.
    castalia.LinearRegression : degree 1.

    Examples
    --------
    >>> model = PolynomialRegression(degree=2).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 5.0])
    >>> model.predict([[3.0]]).round(6).tolist()
    [10.0]
    """

    degree: Annotated[int, Interval(1, whole=True)] = 2

    def _functions(self, X: Any) -> Any:
        return monomials(X, self.degree)


@dataclass(kw_only=True, eq=False, repr=False)
class BasisRegression(ExpansionRegressor):
    """Ridge regression on Gaussian bumps, waves or powers of the inputs.

    f(x) = b + sum_j w_j phi_j(x), fitted by minimising the squared error plus alpha |w|^2. Each
    feature has its own functions, side by side; only powers come with products. Good for one or two
    features; with many, take a kernel method or a network.

    Parameters
    ----------
    basis
        ``"gaussian"``: exp(-(x - mu_j)^2 / (2 s^2)), centres evenly over the training range;
        ``"fourier"``: cos and sin of 2 pi k x / period; ``"polynomial"``: powers and products.
    size
        Number of centres, of waves, or the highest power; larger bends more.
    bandwidth
        Width s of the bumps; None: the distance between centres. Larger is smoother.
    period
        Period of the slowest wave; None: the training range of each feature.
    alpha
        Weight of the penalty alpha |w|^2 beside the sum of squared errors; larger is smoother.
    fit_intercept
        Whether there is a constant term b.

    Attributes
    ----------
    coef_ : ndarray of shape (M,) or (T, M)
        Weights of the functions.
    intercept_ : float or ndarray of shape (T,)
        Constant term.
    low_, high_ : ndarray of shape (D,)
        Range of the training rows.
    condition_ : float
        Condition number of the penalised problem.

    Shapes
    ------
    X (N, D), y (N,) or (N, T).

    Notes
    -----
    O(N M^2) for M functions. Outside the training range bumps fall to the constant term and waves
    repeat.

    References
    ----------
    2006, Bishop, Pattern recognition and machine learning, sections 3.1 and 3.2.

    See Also
    --------
    castalia.PolynomialRegression : powers without a penalty.
    castalia.RandomFourierFeatures : random waves, for many features.

    Examples
    --------
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> model = BasisRegression(basis="fourier", size=1).fit(x, np.sin(2 * np.pi * x[:, 0]))
    >>> bool(model.score(x, np.sin(2 * np.pi * x[:, 0])) > 0.999)
    True
    """

    basis: Annotated[str, OneOf("gaussian", "fourier", "polynomial")] = "gaussian"
    size: Annotated[int, Interval(1, whole=True)] = 10
    bandwidth: Annotated[float | None, Interval(0, closed="neither", optional=True)] = None
    period: Annotated[float | None, Interval(0, closed="neither", optional=True)] = None
    alpha: Annotated[float, Interval(0)] = 1e-3

    def _learn(self, X: Any) -> None:
        self.low_, self.high_ = _ends(X)

    def _functions(self, X: Any) -> Any:
        if self.basis == "polynomial":
            return monomials(X, self.size)
        span = np.where(self.high_ > self.low_, self.high_ - self.low_, 1.0)
        if self.basis == "fourier":
            period = span if self.period is None else np.full_like(span, self.period)
            return fourier(X, self.size, _like(period, X))
        return _bells(X, self.low_, span, self.size, self.bandwidth)


def _ends(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest number of each column."""
    if issparse(X):
        found = [end.toarray().ravel() for end in (X.min(axis=0), X.max(axis=0))]
    else:
        found = [X.amin(0), X.amax(0)] if isinstance(X, Tensor) else [X.min(0), X.max(0)]
    low, high = (np.asarray(torch.as_tensor(end).cpu(), dtype=np.float64) for end in found)
    return low, high


def _bells(X: Any, low: np.ndarray, span: np.ndarray, size: int, width: float | None) -> Any:
    """Return Gaussians whose centres are spread evenly over each column."""
    centres = low[:, None] + span[:, None] * np.linspace(0, 1, size)
    gap = span / max(size - 1, 1)
    s = gap if width is None else np.full_like(gap, width)
    return gaussian(X, _like(centres, X), _like(s[:, None], X))


def _like(values: np.ndarray, X: Any) -> Any:
    """Return values in the kind, precision and place of X."""
    if isinstance(X, Tensor):
        return torch.from_numpy(values).to(X)
    return values.astype(X.dtype)
