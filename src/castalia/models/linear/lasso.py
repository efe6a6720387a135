"""Lasso: least squares with an absolute penalty."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch

from castalia.base import Interval, OneOf, check_parameters
from castalia.base.input_checks import check_target, check_weight
from castalia.errors import TrainingWarning
from castalia.models.linear.linear_model import LinearRegressor
from castalia.models.linear.solvers.coordinate_descent import Quadratic, lasso
from castalia.models.linear.solvers.design_matrix import Design
from castalia.utils.text import number, plural

__all__ = ["Lasso", "quadratics"]

WHOLE = 256  # up to this many columns A^T A is formed as a whole


@dataclass(kw_only=True, eq=False, repr=False)
class Lasso(LinearRegressor):
    """Least squares that pays for every weight by its absolute value.

    Minimises (1/2N) sum_n (y_n - w.x_n - b)^2 + alpha sum_j |w_j|. Weights of features that help
    too little are exactly zero. Of several correlated features it picks one; ``Ridge`` shares the
    weight among them.

    Parameters
    ----------
    alpha
        Weight of the penalty, above 0; larger gives more zeros, and max_j |x_j.y| / N or more gives
        nothing else.
    tol
        Stop when the duality gap is below this share of the mean squared y (centred); smaller is
        more exact.
    sweeps
        Most passes over the coordinates.
    warm_start
        Whether to begin at the weights of the last fit.
    fit_intercept
        Whether there is a constant term; it is not penalised.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (T, D)
        Weights.
    intercept_ : float or ndarray of shape (T,)
        Constant term.
    dual_gap_ : float or ndarray of shape (T,)
        How far above its minimum the objective can lie at most.
    n_iter_ : int or list of int
        Passes over the coordinates.

    Shapes
    ------
    X (N, D): an array, a frame, a tensor on any device, a scipy sparse matrix; y (N,) or (N, T).

    Notes
    -----
    One pass over the data forms X^T X, O(N D^2), and coordinate descent works on that; with more
    than 256 columns only those of a growing working set are formed, O(N K^2) for K of them. Sample
    weights count as repetitions: the mean is weighted. Several targets are fitted one by one.

    References
    ----------
    1996, Tibshirani, Regression shrinkage and selection via the lasso, JRSS B 58.
    2010, Friedman, Hastie, Tibshirani, Regularization paths for generalized linear models via
    coordinate descent, Journal of Statistical Software 33.

    See Also
    --------
    castalia.Ridge : shrinks without zeros.
    castalia.Bridge : any power of the weights.

    Examples
    --------
    >>> X = [[1.0, 0.1], [-1.0, 0.1], [1.0, -0.1], [-1.0, -0.1]]
    >>> Lasso(alpha=0.5).fit(X, [2.0, -2.0, 2.0, -2.0]).coef_.round(6).tolist()
    [1.5, 0.0]
    """

    alpha: Annotated[float, Interval(0, closed="neither")] = 1.0
    tol: Annotated[float, Interval(0)] = 1e-7
    sweeps: Annotated[int, Interval(1, whole=True)] = 1000
    warm_start: Annotated[bool, OneOf(True, False)] = False

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        design = self._design(X, y, sample_weight)
        start = self._start((design.Y.shape[1], design.shape[1]))
        penalty = self.alpha * design.total
        found = [
            lasso(problem, penalty, w, tol=self.tol, sweeps=self.sweeps)
            for problem, w in zip(quadratics(design), start, strict=True)
        ]
        weights, gaps, taken = zip(*found, strict=True)
        self._judge(design, np.array(gaps))
        self.dual_gap_ = gaps[0] / design.total if y.ndim == 1 else np.array(gaps) / design.total
        self.n_iter_ = taken[0] if y.ndim == 1 else list(taken)
        coef = torch.from_numpy(np.stack(weights))
        self._keep(coef, design, y, str(X.dtype).removeprefix("torch."))

    def _start(self, shape: tuple[int, int]) -> np.ndarray:
        if self.warm_start and hasattr(self, "coef_") and self.coef_.size == np.prod(shape):
            return self.coef_.reshape(shape).astype(np.float64)
        return np.zeros(shape)

    def _judge(self, design: Design, gaps: np.ndarray) -> None:
        square = (torch.as_tensor(design.targets()) ** 2).sum(0).cpu().numpy()
        late = gaps > self.tol * square
        if late.any():
            share = float((gaps[late] / square[late]).max())
            warnings.warn(
                f"Lasso: the duality gap must fall to {number(self.tol)} of |y|^2; got "
                f"{number(share)} after {plural(self.sweeps, 'sweep')}. Raise `sweeps`, `alpha` or "
                "`tol`.",
                TrainingWarning,
                stacklevel=4,
            )

    def path(
        self,
        X: Any,
        y: Any,
        *,
        alphas: Sequence[float] | np.ndarray | None = None,
        n_alphas: int = 100,
        shortest: float = 1e-3,
        sample_weight: Any = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the weights for a falling sequence of penalties, each started from the last.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``, one target.
        alphas
            Penalties; None: ``n_alphas`` from the smallest that gives only zeros down to
            ``shortest`` of it, evenly on a logarithmic scale.
        n_alphas, shortest
            How many, and where the sequence ends.

        Returns
        -------
        alphas : ndarray of shape (A,)
            Penalties, falling.
        coefs : ndarray of shape (D, A)
            Weights.
        dual_gaps : ndarray of shape (A,)
            How far above its minimum the objective can lie at most.
        """
        check_parameters(self)
        X = self._matrix(X, reset=not hasattr(self, "n_features_in_"))
        y, weight = check_target(self, X, y), check_weight(self, X, sample_weight)
        design = self._design(X, y.ravel(), weight)
        (problem,) = quadratics(design)
        if alphas is None:
            largest = np.abs(problem.cross).max() / design.total
            alphas = largest * np.logspace(0, np.log10(shortest), n_alphas)
        falling = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
        w, weights, gaps = np.zeros(design.shape[1]), [], []
        for alpha in falling:
            w, gap, _ = lasso(problem, alpha * design.total, w, tol=self.tol, sweeps=self.sweeps)
            weights.append(w)
            gaps.append(gap / design.total)
        return falling, np.stack(weights, axis=1), np.array(gaps)


def quadratics(design: Design) -> list[Quadratic]:
    """Return the squared error of each target, on A^T A where it is small."""
    targets = range(design.Y.shape[1])
    if design.shape[1] <= WHOLE:
        gram, cross, square = (part.cpu().numpy() for part in design.moments())
        return [_on_gram(gram, cross[:, t], float(square[t])) for t in targets]
    zero = torch.zeros(design.shape[1], 1, dtype=torch.float64, device=design.device)
    start = design.correlation(zero).cpu().numpy()  # A^T B
    squares = (torch.as_tensor(design.targets()) ** 2).sum(0).tolist()
    return [_on_columns(design, t, start[:, t], squares[t]) for t in targets]


def _on_gram(gram: np.ndarray, cross: np.ndarray, square: float) -> Quadratic:
    """Return the squared error of one target, all of A^T A at hand."""

    def slopes(w: np.ndarray) -> np.ndarray:
        return cross - gram @ w

    def block(work: np.ndarray) -> np.ndarray:
        return gram[np.ix_(work, work)]

    return Quadratic(cross, square, slopes, block)


def _on_columns(design: Design, target: int, cross: np.ndarray, square: float) -> Quadratic:
    """Return the squared error of one target, from passes over the data."""

    def slopes(w: np.ndarray) -> np.ndarray:
        weights = torch.from_numpy(w[:, None]).to(design.device)  # (D, 1), for every target
        return design.correlation(weights)[:, target].cpu().numpy().copy()

    def block(work: np.ndarray) -> np.ndarray:
        return design.columns(work).cpu().numpy()

    return Quadratic(cross, square, slopes, block)
