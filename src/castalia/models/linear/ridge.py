"""Ridge regression: least squares with a squared penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from castalia.base import Constraint, Interval, OneOf, check_parameters
from castalia.base.input_checks import check_target, check_weight
from castalia.errors import InvalidParameter
from castalia.models.linear.descent_regressor import DescentRegressor
from castalia.models.linear.solvers.design_matrix import Design
from castalia.models.linear.solvers.least_squares_solver import solve, spectrum
from castalia.models.linear.solvers.singular_systems import report_singular
from castalia.objectives import L2, Objective, SquaredError

__all__ = ["Ridge"]

ALONE = 1e-10  # 1 - leverage below which a row counts as fitted by itself


class PerTarget(Constraint):
    """A number of at least 0, or one such number for each target."""

    def rule(self) -> str:
        """Say so."""
        return "a number of at least 0, or a sequence with one for each target"

    def holds(self, value: Any) -> bool:
        """Whether every entry is a number of at least 0."""
        one = Interval(0)
        if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
            return np.ndim(value) == 1 and len(value) > 0 and all(one.holds(v) for v in value)
        return one.holds(value)


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(DescentRegressor):
    """Least squares that pays for large weights.

    Minimises sum_n w_n |y_n - W x_n - b|^2 + alpha |W|^2; the constant term is free. The solution
    is unique and moves little when the data move little, collinear columns or not.

    Parameters
    ----------
    alpha
        Weight of the penalty, or one for each target; larger shrinks more, 0 is least squares.
    loss
        ``"sum"`` of squared errors, as scikit-learn: (X^T X + alpha I) W = X^T y; or their
        ``"mean"``: (X^T X + N alpha I) W = X^T y, so that alpha means the same for any N.
    solver
        ``"auto"``: directly; ``"gd"``: gradient descent, all rows in every step; ``"sgd"``: the
        training loop, a batch in every step. Both start from zero.
    fit_intercept
        Whether there is a constant term.
    epochs, batch_size, lr, training
        For ``"gd"`` and ``"sgd"`` only; ``training`` is plain gradient steps when None. Their
        loss is the mean over rows and targets, alpha scaled to match.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (T, D)
        Weights W.
    intercept_ : float or ndarray of shape (T,)
        Constant term b.
    condition_ : float
        Condition number of the penalised problem, columns scaled to one length.
    history_ : list of dict
        One line an epoch, after ``"gd"`` and ``"sgd"``.
    seen_ : float
        After ``"gd"`` and ``"sgd"``: rows, or weight of rows, of the fit and of every part since.

    Shapes
    ------
    X (N, D): an array, a frame, a tensor on any device, a scipy sparse matrix; y (N,) or (N, T).

    Notes
    -----
    O(N D^2), or O(N^2 D) by the dual form W = X^T (X X^T + alpha I)^-1 y when D > N. Where alpha is
    too small to make the system well conditioned, the singular values of X answer. In
    ``partial_fit`` the sum of ``loss="sum"`` is that of all rows so far, each as often as it came;
    for several passes over a stream ``loss="mean"`` is the plainer choice.

    References
    ----------
    1970, Hoerl, Kennard, Ridge regression: biased estimation for nonorthogonal problems,
    Technometrics 12.

    See Also
    --------
    castalia.LinearRegression : without a penalty.
    castalia.Lasso : sets weights to zero.
    castalia.MAPRegression : the same as a posterior, with error bars.

    Examples
    --------
    >>> model = Ridge(alpha=2.0, fit_intercept=False).fit([[1.0], [1.0]], [2.0, 2.0])
    >>> float(model.coef_[0])
    1.0
    """

    alpha: Annotated[Any, PerTarget()] = 1.0
    loss: Annotated[str, OneOf("sum", "mean")] = "sum"

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        if self.solver != "auto":
            self._descend(X, y, sample_weight)
            return
        design = self._design(X, y, sample_weight)
        found = solve(design, self._alphas(design))
        report_singular(self, found, design.shape, "warn")  # possible when alpha is 0
        self.condition_ = found.condition
        self._keep(found.coef, design, y, str(X.dtype).removeprefix("torch."))

    def _alphas(self, design: Design) -> Tensor:
        """Return the penalty of each target beside the sum of squares, (T,)."""
        targets = design.Y.shape[1]
        given = np.atleast_1d(np.asarray(self.alpha, dtype=np.float64))
        if len(given) not in (1, targets):
            raise InvalidParameter(
                f"Ridge: `alpha` must be one number or one for each of {targets} targets; got "
                f"{len(given)}."
            )
        factor = design.total if self.loss == "mean" else 1.0
        return torch.from_numpy(np.broadcast_to(given, targets) * factor)

    def _objective(self, rows: float, targets: int) -> Objective:
        if np.ndim(self.alpha):
            raise InvalidParameter(
                f"Ridge: `alpha` must be one number with solver='{self.solver}'; got "
                f"{len(self.alpha)}. Use solver='auto'."
            )
        factor = 1 / rows if self.loss == "sum" else 1.0
        return SquaredError() + L2(float(self.alpha) * factor / targets, half=False)

    def loo_residuals(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Return y_n minus what a fit without row n predicts there, for every n at the cost of one.

        e_n / (1 - h_n), where e are the residuals and h the diagonal of the hat matrix
        H = A (A^T A + alpha I)^-1 A^T, plus the share of the constant term. The estimator need not
        be fitted. With ``loss="mean"`` the penalty stays N alpha when a row is left out.

        Returns
        -------
        ndarray of shape (N,) or (N, T)
            NaN where a row alone determines its own prediction: its leverage h is 1.
        """
        check_parameters(self)
        X = self._matrix(X, reset=not hasattr(self, "n_features_in_"))
        y, weight = check_target(self, X, y), check_weight(self, X, sample_weight)
        design = self._design(X, y, weight)
        alpha = self._alphas(design)
        residual, kept = _residuals_and_leverages(design, alpha, self.fit_intercept)
        free = 1 - kept
        found = torch.where(free > ALONE, residual / free, torch.nan).numpy()
        return found[:, 0] if y.ndim == 1 else found


def _residuals_and_leverages(
    design: Design, alpha: Tensor, intercept: bool
) -> tuple[Tensor, Tensor]:
    """Return y - prediction and the diagonal of the hat matrix, both (N, T)."""
    found = spectrum(design)
    coef = found.coef(alpha)
    inverse = 1 / (found.s.square()[:, None] + alpha.to(coef.device))  # (K, T)
    residual, hat = [], []
    for A, B in design.chunks():
        rows, targets = torch.as_tensor(A), torch.as_tensor(B)
        residual.append(targets - rows @ coef)
        hat.append((rows @ found.V.T).square() @ inverse)
    root = torch.ones(1, 1) if design.root is None else torch.as_tensor(design.root).cpu()
    leverage = torch.cat(hat).cpu() + intercept * root.square() / design.total
    return torch.cat(residual).cpu() / root, leverage
