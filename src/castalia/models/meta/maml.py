"""Model-agnostic meta-learning: weights from which one gradient step learns a new task.

w'_t = w - a grad J(w; support of t),  min_w sum_t J(w'_t; query of t).  Second order
differentiates through the inner step, d w'/d w = I - a H; first order takes it for I.  Tasks are
computed side by side by ``torch.func.vmap``.  Shapes: T tasks, n rows of each, K shots.
Reference: 2017, Finn, Abbeel, Levine, Model-agnostic meta-learning for fast adaptation of deep
networks, arXiv 1703.03400.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from castalia.base import Estimator, Interval, OneOf, RandomState, check_parameters
from castalia.base.direct_descent import descend
from castalia.errors import InvalidParameter
from castalia.models.ensemble.averaged import default_member
from castalia.models.meta.task_arrays import task_rows
from castalia.models.strategies.training_changes import require_rows
from castalia.models.strategies.untrained import untrained
from castalia.objectives import Objective, weighted_mean
from castalia.protocols import Batch
from castalia.train import Training
from castalia.utils.seeds import seed_from

__all__ = ["MAML", "MetaLoss", "adapted"]

Weights = dict[str, Tensor]


def adapted(
    net: nn.Module, weights: Weights, loss: Any, x: Tensor, y: Tensor, lr: float, steps: int
) -> Weights:
    """Return weights after some gradient steps on a task; differentiable by those before.

    Examples
    --------
    >>> from castalia.objectives import SquaredError
    >>> net = nn.Linear(1, 1, bias=False)
    >>> w, one = {"weight": torch.zeros(1, 1)}, torch.ones(1, 1)
    >>> adapted(net, w, SquaredError(scale="half"), one, one, lr=0.5, steps=1)["weight"]
    tensor([[0.5000]])
    """

    def task_loss(now: Weights) -> Tensor:
        outputs = functional_call(net, now, (x,))
        return torch.as_tensor(loss.rows(outputs, y).mean())

    for _ in range(steps):
        slopes = grad(task_loss)(weights)
        weights = {name: w - lr * slopes[name] for name, w in weights.items()}
    return weights


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
class MAML(BaseEstimator):
    """Starting weights for a family of tasks: a few rows and a few steps learn a new one.

    ``fit`` takes rows of many tasks, ``adapt`` a few rows of a new one and returns an estimator
    for it. Right where tasks are alike but no single function serves them all.

    Parameters
    ----------
    estimator
        Whose network is learnt: an estimator of ours with one output format for all tasks; None
        takes a regressor with two hidden layers.
    shots
        Rows a task is learnt from.
    inner_lr
        Rate of the steps within a task.
    inner_steps
        Their number.
    order
        ``"second"`` differentiates through the inner steps; ``"first"`` is cheaper and nearly as
        good.
    epochs
        Passes over the tasks.
    tasks
        Tasks of one step.
    lr
        Rate of the steps between tasks.
    random_state
        Seed.

    Attributes
    ----------
    estimator_ : object
        The estimator with the starting weights.
    history_ : list of dict
        Loss of every epoch.

    References
    ----------
    2017, Finn, Abbeel, Levine, Model-agnostic meta-learning, arXiv 1703.03400.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-2, 2, (200, 1))
    >>> task = np.arange(200) // 20
    >>> y = np.sin(X[:, 0] + task)
    >>> model = MAML(epochs=5, random_state=0).fit(X, y, groups=task)
    >>> model.adapt(X[:5], y[:5]).predict(X[:2]).shape
    (2,)
    """

    estimator: Any = field(default=None, kw_only=False)
    shots: Annotated[int, Interval(1, whole=True)] = 5
    inner_lr: Annotated[float, Interval(0, closed="neither")] = 0.1
    inner_steps: Annotated[int, Interval(1, whole=True)] = 1
    order: Annotated[str, OneOf("second", "first")] = "second"
    epochs: Annotated[int, Interval(1, whole=True)] = 100
    tasks: Annotated[int, Interval(1, whole=True)] = 16
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-3
    random_state: Annotated[Any, RandomState()] = None

    def fit(self, X: Any, y: Any, groups: Any = None) -> MAML:
        """Learn starting weights from rows whose tasks ``groups`` names."""
        check_parameters(self)
        member = self._member()
        untrained(member, X, np.asarray(y))
        loss = require_rows("MAML", member._objective(member.spec_))
        x, targets = self._encoded(member, X, y)
        tasks_x, tasks_y = task_rows("MAML", x, targets, groups, self.shots + 1)
        training = member.training if member.training is not None else Training()
        training = copy.copy(training).set_params(validation=0)
        state = descend(
            self,
            member.module_,
            MetaLoss(
                loss,
                self.shots,
                self.inner_lr,
                self.inner_steps,
                second_order=self.order == "second",
            ),
            tasks_x,
            tasks_y,
            training=training,
            epochs=self.epochs,
            batch_size=self.tasks,
            lr=self.lr,
        )
        self.history_ = state.history
        member.module_.eval()
        member.codec.conclude(member, None, None)
        self.estimator_ = member
        return self

    def _member(self) -> Any:
        base = self.estimator
        if base is None:
            base = default_member("regression").set_params(hidden=(40, 40))
        if not isinstance(base, Estimator):
            raise InvalidParameter(
                "MAML: `estimator` must be one of ours that is trained by gradients; got "
                f"{type(base).__name__}."
            )
        return copy.deepcopy(base).set_params(random_state=seed_from(self.random_state))

    def _encoded(self, member: Any, X: Any, y: Any) -> tuple[Tensor, Tensor]:
        """Return inputs and targets as the network takes them."""
        x = torch.cat(list(member.adapter_.blocks(member._checked(X), np.float32)))
        targets = member.codec.encode(member, np.asarray(y)).y
        return x, targets.float() if targets.is_floating_point() else targets

    def adapt(self, X: Any, y: Any, steps: int | None = None) -> Any:
        """Return an estimator for the task that these rows are from.

        Parameters
        ----------
        X, y
            Its few rows and targets.
        steps
            Gradient steps; None takes those of the training.
        """
        check_is_fitted(self, "estimator_")
        found = copy.copy(self.estimator_)
        found.module_ = copy.deepcopy(self.estimator_.module_)
        x, targets = self._encoded(found, X, y)
        loss = require_rows("MAML", found._objective(found.spec_))
        weights = {k: w.detach() for k, w in found.module_.named_parameters()}
        count = self.inner_steps if steps is None else steps
        fast = adapted(found.module_, weights, loss, x, targets, self.inner_lr, count)
        found.module_.load_state_dict({**found.module_.state_dict(), **fast})
        return found

    def predict(self, X: Any) -> np.ndarray:
        """Return what the starting weights predict, before any task is known."""
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))
