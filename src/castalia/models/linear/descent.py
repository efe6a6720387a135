"""Least squares by the one loop: gradient descent on all rows, or on a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.base import Interval, OneOf
from castalia.base.descent import descend, loop_settings
from castalia.base.tasks import numeric_target
from castalia.models.linear.linear import LinearRegressor
from castalia.objectives import Objective
from castalia.train import Training

__all__ = ["DescentRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class DescentRegressor(LinearRegressor):
    """Base of linear models that the loop can fit too.

    Parameters
    ----------
    solver
        ``"auto"``: directly; ``"gd"``: gradient descent, all rows in every step; ``"sgd"``: the
        loop, a batch in every step.
    epochs, batch_size, lr, training
        For ``"gd"`` and ``"sgd"`` only; ``training`` is plain gradient steps when None.
    """

    solver: Annotated[str, OneOf("auto", "gd", "sgd")] = "auto"
    epochs: Annotated[int, Interval(1, whole=True)] = 100
    batch_size: Annotated[int, Interval(1, whole=True)] = 64
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-2
    training: Training | None = None

    def _descend(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, objective: Objective
    ) -> None:
        """Set the coefficients by gradient steps from zero, and ``history_``."""
        target = torch.from_numpy(numeric_target(self, y).reshape(len(y), -1))
        net = nn.Linear(X.shape[1], target.shape[1], bias=self.fit_intercept, device="meta")
        net = net.to_empty(device="cpu")  # no random numbers are drawn
        for parameter in net.parameters():
            nn.init.zeros_(parameter)
        state = descend(
            self,
            net,
            objective,
            X,
            target,
            weight,
            training=loop_settings(self.training, self.device),
            epochs=self.epochs,
            batch_size=X.shape[0] if self.solver == "gd" else self.batch_size,
            lr=self.lr,
        )
        self.history_ = state.history
        coef, bias = net.weight.detach().numpy(), _bias(net)
        self.coef_ = coef[0] if y.ndim == 1 else coef
        self.intercept_ = bias[0] if y.ndim == 1 else bias


def _bias(net: nn.Linear) -> np.ndarray:
    bias: Tensor | None = net.bias
    return np.zeros(net.out_features) if bias is None else bias.detach().numpy()
