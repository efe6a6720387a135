"""Least squares by the one loop: gradient descent on all rows, or on a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if
from torch import Tensor, nn

from castalia.base import Interval, OneOf, check_parameters
from castalia.base.direct_descent import descend, loop_settings
from castalia.base.input_checks import check_target, check_weight, split_target
from castalia.base.targets import numeric_target
from castalia.errors import ShapeMismatch
from castalia.models.linear.linear_model import LinearRegressor
from castalia.objectives import Objective
from castalia.train import Training

__all__ = ["DescentRegressor", "layer"]


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

    def _objective(self, rows: float, targets: int) -> Objective:
        """Return what the loop minimises: the mean squared error, and a penalty beside it.

        Parameters
        ----------
        rows
            Weight of all rows so far, where a penalty stands beside their sum.
        targets
            Columns of y.
        """
        raise NotImplementedError

    def _descend(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Set the coefficients by gradient steps from zero, and ``history_``."""
        self.seen_ = float(len(y) if weight is None else weight.sum())
        training = loop_settings(self.training, self.device)
        self.history_ = self._walk(X, y, weight, training, self.epochs, None)

    @available_if(lambda self: self.solver == "sgd")
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DescentRegressor:
        """Go on from where the coefficients are with one pass over further rows (``"sgd"`` only).

        The rows of the part come in random order, a batch at a time, as in an epoch of ``fit``; on
        the first call the result is that epoch's. Every call starts the optimizer and the schedule
        of ``training`` again and keeps no run.

        Parameters
        ----------
        X, y
            Rows and their targets.
        sample_weight
            How often each row counts, compared with the others of its batch.

        Returns
        -------
        self
        """
        check_parameters(self)
        first = not hasattr(self, "coef_")
        X, y = split_target(X, y)
        X = self._matrix(X, reset=first)
        y, weight = check_target(self, X, y), check_weight(self, X, sample_weight)
        if not first:
            self._check_targets(y)
        before = 0.0 if first else getattr(self, "seen_", 0.0)
        self.seen_ = before + float(len(y) if weight is None else weight.sum())
        training = replace(loop_settings(self.training, self.device), run=None)
        start = None if first else self.module_
        line = self._walk(X, y, weight, training, 1, start)
        self.history_ = [*([] if first else getattr(self, "history_", [])), *line]
        return self

    def _check_targets(self, y: np.ndarray) -> None:
        """Hold the targets of a further part against those of the first."""
        known = self.coef_.shape[:-1]
        if y.shape[1:] != known:
            expected = f"(N, {known[0]})" if known else "(N,)"
            raise ShapeMismatch(
                f"{type(self).__name__}: y must have the shape it had on the first call to "
                f"partial_fit, {expected}; got {y.shape}."
            )

    def _walk(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray | None,
        training: Training,
        epochs: int,
        start: nn.Linear | None,
    ) -> list[dict[str, Any]]:
        """Run the loop from zero or from a layer, keep the coefficients and return the history."""
        target = torch.from_numpy(numeric_target(self, y).reshape(len(y), -1))
        net = layer(X.shape[1], target.shape[1], bias=self.fit_intercept, start=start)
        state = descend(
            self,
            net,
            self._objective(self.seen_, target.shape[1]),
            X,
            target,
            weight,
            training=training,
            epochs=epochs,
            batch_size=X.shape[0] if self.solver == "gd" else self.batch_size,
            lr=self.lr,
        )
        coef, bias = net.weight.detach().numpy(), _bias(net)
        self.coef_ = coef[0] if y.ndim == 1 else coef
        self.intercept_ = bias[0] if y.ndim == 1 else bias
        return state.history


def layer(inputs: int, outputs: int, *, bias: bool, start: nn.Linear | None = None) -> nn.Linear:
    """Return a linear layer at zero, or at the weights of another, without drawing numbers."""
    net = nn.Linear(inputs, outputs, bias=bias, device="meta", dtype=torch.float64)
    net = net.to_empty(device="cpu")
    for name, parameter in net.named_parameters():
        nn.init.zeros_(parameter)
        if start is not None:
            parameter.data.copy_(start.get_parameter(name))
    return net


def _bias(net: nn.Linear) -> np.ndarray:
    bias: Tensor | None = net.bias
    return np.zeros(net.out_features) if bias is None else bias.detach().numpy()
