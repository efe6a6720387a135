"""Ordinary least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import nn

from castalia.base import Interval, OneOf
from castalia.base.descent import descend
from castalia.base.tasks import numeric_target
from castalia.models.linear.linear import LinearRegressor
from castalia.objectives import SquaredError
from castalia.train import Training

__all__ = ["LinearRegression"]


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(LinearRegressor):
    """Least squares: the hyperplane with the smallest squared error.

    Parameters
    ----------
    solver
        ``"auto"``: a direct solution; ``"sgd"``: the training loop, batch by batch; ``"gd"``: the
        loop with all rows in every step.
    fit_intercept
        Whether there is a constant term.
    epochs, batch_size, lr, training
        For ``"sgd"`` and ``"gd"`` only, as in every trained estimator.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (T, D)
        Weights.
    intercept_ : float or ndarray of shape (T,)
        Constant term.

    Shapes
    ------
    X (N, D), y (N,) or (N, T).

    Notes
    -----
    Minimises sum_n |y_n - W x_n - b|^2.

    References
    ----------
    1805, Legendre, Nouvelles méthodes pour la détermination des orbites des comètes.

    See Also
    --------
    castalia.MLPRegressor : when a hyperplane is not enough.

    Examples
    --------
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> round(float(model.coef_[0]), 6), round(float(model.intercept_), 6)
    (2.0, 1.0)
    """

    solver: Annotated[str, OneOf("auto", "gd", "sgd")] = "auto"
    epochs: Annotated[int, Interval(1, whole=True)] = 100
    batch_size: Annotated[int, Interval(1, whole=True)] = 64
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-2
    training: Training | None = None

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        target = numeric_target(self, y).astype(X.dtype)
        if self.solver == "auto":
            A = np.column_stack([X, np.ones(len(X), X.dtype)]) if self.fit_intercept else X
            W = torch.linalg.lstsq(self._tensor(A), self._tensor(target.reshape(len(y), -1)))
            solution = W.solution.T.cpu().numpy()
            coef = solution[:, : X.shape[1]]
            intercept = solution[:, -1] if self.fit_intercept else np.zeros(len(coef))
        else:
            net = nn.Linear(X.shape[1], target.reshape(len(y), -1).shape[1])
            nn.init.zeros_(net.weight), nn.init.zeros_(net.bias)
            training = self.training or Training(optimizer="sgd", validation=0)
            descend(
                self,
                net,
                SquaredError(),
                X,
                torch.from_numpy(target.reshape(len(y), -1)),
                sample_weight,
                training=training,
                epochs=self.epochs,
                batch_size=X.shape[0] if self.solver == "gd" else self.batch_size,
                lr=self.lr,
            )
            coef, intercept = net.weight.detach().numpy(), net.bias.detach().numpy()
        self.coef_ = coef[0] if y.ndim == 1 else coef
        self.intercept_ = intercept[0] if y.ndim == 1 else intercept
