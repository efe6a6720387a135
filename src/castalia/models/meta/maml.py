"""Model-agnostic meta-learning: weights from which one gradient step learns a new task.

w'_t = w - a grad J(w; support of t),  min_w sum_t J(w'_t; query of t).  Second order
differentiates through the inner step, d w'/d w = I - a H; first order takes it for I.  Tasks are
computed side by side by ``torch.func.vmap``.  Shapes: T tasks, n rows of each, K shots.
Reference: 2017, Finn, Abbeel, Levine, Model-agnostic meta-learning for fast adaptation of deep
networks, arXiv 1703.03400.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from castalia.base import Interval, OneOf
from castalia.models.meta.starting_weights import StartingWeights, Weights, adapted
from castalia.objectives import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["MAML", "MetaLoss"]


class MetaLoss(Objective):
    """The loss of each task's query rows after steps on its support rows; a row is a task.

    Parameters
    ----------
    loss
        Compares outputs with targets row by row.
    shots
        Rows of the support; the others are the query. Which is which is drawn at every step.
    lr, steps
        Rate and number of the inner steps.
    second_order
        Whether the inner steps are differentiated.
    """

    def __init__(
        self, loss: Any, shots: int, lr: float, steps: int, *, second_order: bool = True
    ) -> None:
        self.loss, self.shots, self.lr, self.steps = loss, shots, lr, steps
        self.second_order = second_order

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over tasks."""
        weights: Weights = dict(net.named_parameters())
        order = torch.randperm(batch.x.shape[1], device=batch.x.device)
        inside, outside = order[: self.shots], order[self.shots :]

        def query_loss(x: Tensor, y: Tensor) -> Tensor:  # of one task, (n, …)
            fast = adapted(net, weights, self.loss, x[inside], y[inside], self.lr, self.steps)
            if not self.second_order:  # the same numbers, but d w'/d w = I
                fast = {k: w + (fast[k] - w).detach() for k, w in weights.items()}
            outputs = functional_call(net, fast, (x[outside],))
            return torch.as_tensor(self.loss.rows(outputs, y[outside]).mean())

        rows = vmap(query_loss, randomness="different")(batch.x, batch.y)
        return {"loss": weighted_mean(rows, batch.weight)}


@dataclass(kw_only=True, eq=False, repr=False)
class MAML(StartingWeights):
    """Starting weights for a family of tasks: a few rows and a few steps learn a new one.

    ``fit`` takes rows of many tasks, ``adapt`` a few rows of a new one and returns an estimator
    for it. Right where tasks are alike but no single function serves them all.

    Parameters
    ----------
    estimator
        Whose network is learnt: an estimator of ours with one output format for all tasks; None
        takes a regressor with two hidden layers.
    task
        Left None: what is learnt is a start.
    shots
        Rows a task is learnt from.
    inner_lr
        Rate of the steps within a task.
    inner_steps
        Their number.
    epochs
        Passes over the tasks.
    tasks
        Tasks of one step.
    lr
        Rate of the steps between tasks.
    order
        ``"second"`` differentiates through the inner steps; ``"first"`` is cheaper and nearly as
        good.

    Attributes
    ----------
    estimator_ : object
        The estimator with the starting weights; its ``history_`` has the loss of every epoch.

    Shapes
    ------
    X: (N, D) with ``groups`` (N,), or tasks side by side, (T, n, D) with y (T, n).

    Notes
    -----
    Tasks side by side cost one pass of T times the rows (``torch.func.vmap``); second order costs
    about twice as much as first.

    References
    ----------
    2017, Finn, Abbeel, Levine, Model-agnostic meta-learning, arXiv 1703.03400.

    See Also
    --------
    Reptile : no query rows, and no second derivatives.
    ConditionalNeuralProcess : a new task without any gradient step.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-2, 2, (10, 20, 1))
    >>> y = np.sin(X[:, :, 0] + np.arange(10)[:, None])
    >>> model = MAML(epochs=5, random_state=0).fit(X, y)
    >>> model.adapt(X[0, :5], y[0, :5]).predict(X[0, :2]).shape
    (2,)
    """

    order: Annotated[str, OneOf("second", "first")] = "second"
    shots: Annotated[int, Interval(1, whole=True)] = 5

    def _task_loss(self, loss: Any) -> MetaLoss:
        second = self.order == "second"
        return MetaLoss(loss, self.shots, self.inner_lr, self.inner_steps, second_order=second)
