"""Linear support vector machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from castalia.base import Interval
from castalia.base.targets import class_weights, encode_classes
from castalia.models.linear.discriminant import Discriminant
from castalia.models.linear.solvers.affine_design import Affine
from castalia.models.linear.solvers.interior_point import soft_margin
from castalia.models.linear.solvers.likelihood_minimiser import lbfgs
from castalia.models.linear.solvers.logistic_likelihood import Likelihood

__all__ = ["LinearSVM"]

FEW = 1500  # parameters, or rows, up to which the problem is solved exactly


@dataclass(kw_only=True, eq=False, repr=False)
class LinearSVM(Discriminant):
    """Linear support vector machine: the hyperplane that keeps the largest distance.

    Minimises alpha/2 |w|^2 + mean_n max(0, 1 - y_n (w x_n + b)), y = +-1. Rows beyond the margin
    have no say, so outlying rows on the right side do no harm. It gives no probabilities; several
    several classes are separated one against the rest.

    Parameters
    ----------
    alpha
        Strength of the penalty; larger values widen the margin and allow more rows inside it.
    class_weight
        None, ``"balanced"``, or a dict from class to weight; multiplies the sample weights.
    tol
        Relative duality gap at which to stop.
    fit_intercept
        Whether there is a constant term; it is not penalised.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    coef_ : ndarray of shape (1, D) or (K, D)
        Normals of the hyperplanes; one for two classes.
    intercept_ : ndarray of shape (1,) or (K,)
        Constant terms.
    n_iter_ : int
        Steps of the solver, the most over the classes.
    support_ : ndarray of int
        Rows that lie on a margin or inside it.

    Shapes
    ------
    X (N, D) dense or scipy-sparse, y (N,) labels of any kind.

    Notes
    -----
    With C = 1 / (alpha N) this is ``sklearn.svm.SVC(kernel="linear", C=C)``; ``LinearSVC`` differs
    in that it penalises the intercept. An interior-point method takes some twenty steps of
    O(N P^2), P = min(D, N). Where both exceed 1,500 the hinge is rounded over the last thousandth
    before the margin and L-BFGS minimises that: the objective is then at most 0.0005 too high.

    References
    ----------
    1995, Cortes, Vapnik, Support-vector networks, Machine Learning 20.

    See Also
    --------
    Perceptron : any hyperplane that separates.
    LogisticRegression : with probabilities.

    Examples
    --------
    >>> model = LinearSVM(alpha=0.01).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> float(model.distance([[3.0]]).round(3)[0])  # half the gap between 1 and 3
    1.0
    """

    class_weight: Any = None
    alpha: Annotated[float, Interval(0, closed="neither")] = 1e-3
    tol: Annotated[float, Interval(0, closed="neither")] = 1e-10

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        self.classes_, codes = encode_classes(self, y)
        weight = class_weights(self, codes, sample_weight, ones=True)
        counted = np.flatnonzero(weight)
        X, codes, weight = X[counted], codes[counted], weight[counted]
        wide = X.astype(np.float64) if issparse(X) else self._tensor(X).double()
        design = Affine(wide, self.fit_intercept)
        targets = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        shares = torch.as_tensor(weight / weight.sum(), device=design.device)
        found = [separate(design, codes == k, shares, self.alpha, self.tol) for k in targets]
        theta, steps, support = zip(*found, strict=True)
        self.n_iter_ = max(steps)
        self.support_ = counted[torch.stack(support).any(dim=0).cpu().numpy()]
        narrow = str(X.dtype).endswith("float32")
        self._keep(torch.stack(theta).to(torch.float32 if narrow else torch.float64))


def separate(
    design: Affine, positive: np.ndarray, shares: Tensor, alpha: float, tol: float
) -> tuple[Tensor, int, Tensor]:
    """Return the hyperplane between one class and the rest, (P,), the steps, and its support."""
    sign = torch.as_tensor(np.where(positive, 1.0, -1.0), device=design.device)
    rows, columns = design.X.shape
    if min(rows, columns) > FEW:
        problem = RoundedHinge(design, (sign > 0).long(), shares, alpha, 2)
        theta, steps, _ = lbfgs(problem, design.zeros(1), 1e-3)
        theta = theta[0]
    elif rows < columns:  # in the space the rows span: X^T = Q R, w = Q v = X^T R^-1 v
        R = design.row_triangle()
        small = Affine(R.T.contiguous(), design.intercept)
        v, _, steps, _ = soft_margin(small, sign, shares / alpha, tol=tol)
        a = torch.linalg.pinv(R, rtol=1e-15) @ v[:rows]
        theta = torch.cat([design.backward(a[:, None])[0, :columns], v[rows:]])
    else:
        theta, _, steps, _ = soft_margin(design, sign, shares / alpha, tol=tol)
    margins = sign * design.forward(theta[None])[:, 0]
    return theta, steps, margins <= 1 + 1e-6


class RoundedHinge(Likelihood):
    """max(0, 1 - m), rounded to a parabola over the last ``edge`` before the margin."""

    edge = 1e-3

    @property
    def outputs(self) -> int:
        """Number of rows of theta."""
        return 1

    def losses(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return each row's loss and its slope."""
        sign = 2.0 * self.y - 1.0
        short = 1 - sign * outputs[:, 0]
        inside = short.clamp(0, self.edge)
        rows = inside.square() / (2 * self.edge) + (short - self.edge).clamp_min(0)
        return rows, (-sign * inside / self.edge)[:, None]
