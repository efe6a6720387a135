"""Ordinary least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch

from castalia.base import Interval, OneOf
from castalia.models.linear.descent_regressor import DescentRegressor
from castalia.models.linear.solvers.least_squares_solver import solve
from castalia.models.linear.solvers.singular_systems import report_singular
from castalia.objectives import Objective, SquaredError

__all__ = ["LinearRegression"]


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(DescentRegressor):
    """Least squares: the hyperplane with the smallest squared error.

    Minimises sum_n w_n |y_n - W x_n - b|^2. Where the features determine W only in part (fewer rows
    than features, collinear or constant columns) it says so, and returns the solution of smallest
    norm.

    Parameters
    ----------
    singular
        What to do when X has not full rank: ``"warn"``, ``"raise"``, or ``"min_norm"``: return the
        solution of smallest norm without a word. ``"warn"`` returns the same.
    tol
        Singular values below this share of the largest count as zero; larger cuts more. None: what
        rounding of the data could have made.
    solver
        ``"auto"``: directly; ``"gd"``: gradient descent, all rows in every step; ``"sgd"``: the
        training loop, a batch in every step. Both start from zero.
    fit_intercept
        Whether there is a constant term.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (T, D)
        Weights W.
    intercept_ : float or ndarray of shape (T,)
        Constant term b.
    rank_ : int or None
        Rank of the centred X; None where it was not found out (very wide sparse X).
    condition_ : float
        Condition number of the centred X with columns scaled to one length: how many times an error
        in the data may be magnified. Estimated, perhaps somewhat low, when it is small.
    history_ : list of dict
        One line an epoch, after ``"gd"`` and ``"sgd"``; ``rank_`` and ``condition_`` are not set.
    seen_ : float
        After ``"gd"`` and ``"sgd"``: rows, or weight of rows, of the fit and of every part since.

    Shapes
    ------
    X (N, D): an array, a frame, a tensor on any device, a scipy sparse matrix; y (N,) or (N, T).

    Notes
    -----
    O(N D^2) in time and a few megabytes beside the data: rows are centred, weighted and summed into
    X^T X in float64 a chunk at a time, on the device. A poor condition number sends the fit to a QR
    decomposition of the data, also by chunks, and from there to singular values. Very wide sparse
    problems use LSQR. Rank is judged with columns scaled to one length, so a column in small units
    does not disappear; scikit-learn judges it in the units given, with ``tol=1e-6``.

    References
    ----------
    1805, Legendre, Nouvelles méthodes pour la détermination des orbites des comètes.
    1996, Björck, Numerical methods for least squares problems.

    See Also
    --------
    castalia.Ridge : stable where this one is singular.
    castalia.MLPRegressor : when a hyperplane is not enough.

    Examples
    --------
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> round(float(model.coef_[0]), 6), round(float(model.intercept_), 6)
    (2.0, 1.0)
    """

    singular: Annotated[str, OneOf("warn", "raise", "min_norm")] = "warn"
    tol: Annotated[float | None, Interval(0, 1, closed="neither", optional=True)] = None

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        if self.solver != "auto":
            self._descend(X, y, sample_weight)
            return
        design = self._design(X, y, sample_weight)
        found = solve(design, torch.zeros(design.Y.shape[1], dtype=torch.float64), self.tol)
        report_singular(self, found, design.shape, self.singular)
        self.rank_, self.condition_ = found.rank, found.condition
        self._keep(found.coef, design, y, str(X.dtype).removeprefix("torch."))

    def _objective(self, rows: float, targets: int) -> Objective:
        return SquaredError()
