"""Reptile: starting weights that lie near those of every task.

w <- w + e mean_t (w'_t - w), w'_t the weights after some steps on task t: a step down
1/2 mean_t ||w - w'_t||^2 with w'_t held.  Shapes: T tasks, n rows of each.
Reference: 2018, Nichol, Achiam, Schulman, On first-order meta-learning algorithms, arXiv
1803.02999.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.func import vmap

from castalia.base import Interval
from castalia.models.meta.starting_weights import StartingWeights, Weights, adapted, task_loss
from castalia.objectives import Objective, weighted_mean
from castalia.protocols import Batch

__all__ = ["Reptile", "TaskPull"]


class TaskPull(Objective):
    """Half the squared distance to the weights that each task leads to; a row is a task.

    Parameters
    ----------
    loss
        Compares outputs with targets row by row.
    shots
        Rows of each inner step, drawn in turn.
    lr, steps
        Rate and number of the inner steps.
    """

    def __init__(self, loss: Any, shots: int, lr: float, steps: int) -> None:
        self.loss, self.shots, self.lr, self.steps = loss, shots, lr, steps

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over tasks."""
        weights: Weights = dict(net.named_parameters())
        start = {name: w.detach() for name, w in weights.items()}
        n = batch.x.shape[1]
        order = torch.randperm(n, device=batch.x.device)
        parts = [order[(i * self.shots + torch.arange(self.shots)) % n] for i in range(self.steps)]

        def ends(x: Tensor, y: Tensor) -> Weights:  # of one task, (n, …)
            fast = start
            for rows in parts:
                loss = task_loss(net, self.loss, x[rows], y[rows])
                fast = adapted(loss, fast, self.lr, 1)
            return fast

        found = vmap(ends, randomness="different")(batch.x, batch.y)
        gaps = [(w - found[name].detach()).flatten(1) for name, w in weights.items()]
        rows = torch.stack([gap.square().sum(dim=1) for gap in gaps]).sum(dim=0) / 2  # (T,)
        return {"loss": weighted_mean(rows, batch.weight)}


@dataclass(kw_only=True, eq=False, repr=False)
class Reptile(StartingWeights):
    """Starting weights near those that each task of a family leads to.

    Simpler than ``MAML``: the start moves towards where some steps on a task end. No rows of a task
    are set apart and nothing is differentiated twice; it needs several inner steps to be more than
    the mean of the tasks.

    Parameters
    ----------
    estimator
        Whose network is learnt: an estimator of ours with one output format for all tasks; None
        takes a regressor with two hidden layers.
    task
        Left None: what is learnt is a start.
    shots
        Rows of each inner step, and rows that ``score`` adapts to.
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

    Attributes
    ----------
    estimator_ : object
        The estimator with the starting weights; its ``history_`` has the loss of every epoch.

    Shapes
    ------
    X: (N, D) with ``groups`` (N,), or tasks side by side, (T, n, D) with y (T, n).

    Notes
    -----
    With plain gradient descent between tasks, ``lr`` is the e of the paper.

    References
    ----------
    2018, Nichol, Achiam, Schulman, On first-order meta-learning algorithms, arXiv 1803.02999.

    See Also
    --------
    MAML : differentiates through the inner steps.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-2, 2, (10, 20, 1))
    >>> y = np.sin(X[:, :, 0] + np.arange(10)[:, None])
    >>> Reptile(epochs=5, random_state=0).fit(X, y).adapt(X[0], y[0]).predict(X[0, :2]).shape
    (2,)
    """

    inner_steps: Annotated[int, Interval(1, whole=True)] = 5

    def _task_loss(self, loss: Any) -> TaskPull:
        return TaskPull(loss, self.shots, self.inner_lr, self.inner_steps)
