"""Starting weights for a family of tasks: what MAML and Reptile share."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.func import functional_call, grad
from torch.nn.modules.batchnorm import _BatchNorm

from castalia.base import Interval, OneOf
from castalia.base.direct_descent import descend
from castalia.base.input_checks import same_rows, take_rows
from castalia.errors import InvalidParameter
from castalia.models.ensemble.averaged import default_member
from castalia.models.ensemble.ensemble import Ensemble
from castalia.models.meta.task_arrays import as_rows, flat_tasks, own_loss, task_rows, viewed
from castalia.models.strategies.strategy_base import Grouped, Neural
from castalia.models.strategies.untrained import untrained
from castalia.objectives import Objective
from castalia.train import Training
from castalia.utils.seeds import seed_from

__all__ = ["StartingWeights", "Weights", "adapted", "descended", "rates_of_step", "task_loss"]

Weights = dict[str, Tensor]
TaskLoss = Callable[[Weights], Tensor]
HALVES = 20  # of a step that is too long, at most


def task_loss(net: nn.Module, loss: Any, x: Tensor, y: Tensor) -> TaskLoss:
    """Return the mean loss of a task's rows as a function of the network's weights."""

    def at(weights: Weights) -> Tensor:
        outputs = functional_call(net, weights, (x,))
        return torch.as_tensor(loss.rows(outputs, y).mean())

    return at


def adapted(loss: TaskLoss, weights: Weights, lr: float | Weights, steps: int) -> Weights:
    """Return weights after some gradient steps on a task; differentiable by those before.

    ``lr`` is one rate, or one for each step and weight, (steps, …) by the weight's name.

    Examples
    --------
    >>> adapted(lambda w: (w["a"] - 1) ** 2 / 2, {"a": torch.tensor(0.0)}, lr=0.5, steps=1)
    {'a': tensor(0.5000)}
    """
    for step in range(steps):
        weights = _stepped(weights, grad(loss)(weights), rates_of_step(lr, step))
    return weights


def rates_of_step(lr: float | Weights, step: int) -> float | Weights:
    """Return the one rate, or those that weights have in a step."""
    return {name: rate[step] for name, rate in lr.items()} if isinstance(lr, dict) else lr


def descended(loss: TaskLoss, weights: Weights, lr: float | Weights, steps: int) -> Weights:
    """Return weights after gradient steps none of which raises the loss: one that would is halved.

    ``lr`` is one rate, or one for each weight.

    Examples
    --------
    A step of 8 would end at 8, then at -48.

    >>> descended(lambda w: (w["a"] - 1) ** 2 / 2, {"a": torch.tensor(0.0)}, lr=8.0, steps=2)
    {'a': tensor(1.)}
    """
    now, share = loss(weights), 1.0
    for _ in range(steps):
        slopes = grad(loss)(weights)
        for _ in range(HALVES):
            after = _stepped(weights, slopes, lr, share)
            if (found := loss(after)) < now:
                weights, now = after, found
                break
            share /= 2
    return weights


def _stepped(weights: Weights, slopes: Weights, lr: float | Weights, share: float = 1) -> Weights:
    rates = lr if isinstance(lr, dict) else dict.fromkeys(weights, lr)
    return {name: w - share * rates[name] * slopes[name] for name, w in weights.items()}


@dataclass(kw_only=True, eq=False, repr=False)
class StartingWeights(Grouped, Neural, Ensemble):
    """Base of those that learn where trainings on a few rows should begin.

    A subclass gives ``_task_loss``, what is minimised where a row is a task.
    """

    task: Annotated[str | None, OneOf(None)] = None
    shots: Annotated[int, Interval(1, whole=True)] = 5
    inner_lr: Annotated[float, Interval(0, closed="neither")] = 0.1
    inner_steps: Annotated[int, Interval(1, whole=True)] = 1
    epochs: Annotated[int, Interval(1, whole=True)] = 100
    tasks: Annotated[int, Interval(1, whole=True)] = 16
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-3

    def _default(self) -> Any:
        return default_member("regression").set_params(hidden=(40, 40))

    def _task_loss(self, loss: Any) -> Objective:
        """Say what is minimised, by a loss that compares outputs with targets row by row."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Any:  # type: ignore[override]
        """Learn starting weights from rows of many tasks.

        Parameters
        ----------
        X, y
            Rows and targets, (N, D) and (N,); or tasks side by side, (T, n, D) and (T, n).
        groups
            The task of each row, (N,), where tasks are not side by side.

        Returns
        -------
        self
        """
        X, y, groups = flat_tasks(type(self).__name__, X, y, groups)
        return super().fit(X, y, groups=groups)

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        name, member = type(self).__name__, self._neural(seed_from(self.random_state))
        untrained(member, X, self._first_targets(y))
        layers = member.module_.modules()
        if any(isinstance(layer, _BatchNorm) and layer.track_running_stats for layer in layers):
            raise InvalidParameter(
                f"{name}: `estimator` must not keep statistics of all batches, since every task "
                f"has weights of its own; got {type(member).__name__}. Set its `batch_norm` to "
                "'own', where it has that, or to False."
            )
        loss = viewed(member, self._task_loss(own_loss(name, member)))
        tasks_x, tasks_y = self._task_rows(member, X, y)
        training = member.training if member.training is not None else Training()
        trained = self._started(member.module_)
        state = descend(
            member,
            trained,
            loss,
            tasks_x,
            tasks_y,
            training=replace(training, validation=0),
            epochs=self.epochs,
            batch_size=self._step_rows(),
            lr=self.lr,
        )
        member.module_.eval()
        member.codec.conclude(member, None, None)
        member.history_, self.estimator_ = state.history, member
        self._keep(trained)

    def _first_targets(self, y: np.ndarray) -> np.ndarray:
        """Return targets that the estimator learns its classes and scales from."""
        return y

    def _started(self, net: nn.Module) -> nn.Module:
        """Return what is trained: the estimator's network, or something that holds it."""
        return net

    def _keep(self, trained: nn.Module) -> None:
        """Keep what was learnt beside the estimator's weights."""

    def _step_rows(self) -> int:
        """Return the rows of a step: a row is a task."""
        return self.tasks

    def _task_rows(self, member: Any, X: Any, y: Any) -> tuple[Tensor, Tensor]:
        """Return the rows of every task side by side, (T, n, …)."""
        x, targets = self._as_tensors(member, X, y)
        return task_rows(type(self).__name__, x, targets, self._groups, self.shots + 1)

    def _rate(self) -> float | Weights:
        """Return the rate of the steps within a task."""
        return self.inner_lr

    def _as_tensors(self, member: Any, X: Any, y: Any) -> tuple[Tensor, Tensor]:
        """Return inputs and targets as the network takes them."""
        x = torch.cat(list(member.adapter_.blocks(X, np.float32)))
        targets = member.codec.encode(member, np.asarray(y)).y
        return x, targets.float() if targets.is_floating_point() else targets

    def adapt(self, X: Any, y: Any, steps: int | None = None) -> Any:
        """Return an estimator for the task that these rows are from.

        Parameters
        ----------
        X, y
            Its few rows and targets.
        steps
            Gradient steps; None takes those of the training. Of further ones, none raises the loss:
            the training knows no more than ``inner_steps`` at its rate.
        """
        check_is_fitted(self, "estimator_")
        found = copy.copy(self.estimator_)
        found.module_ = copy.deepcopy(self.estimator_.module_)
        x, targets = self._as_tensors(found, found._checked(X), self._named(found, X, y))
        loss = own_loss(type(self).__name__, found)
        weights = {k: w.detach() for k, w in found.module_.named_parameters()}
        count = self.inner_steps if steps is None else steps
        here, known = task_loss(found.module_, loss, x, targets), min(count, self.inner_steps)
        fast = adapted(here, weights, self._rate(), known)
        fast = descended(here, fast, rates_of_step(self._rate(), -1), count - known)
        found.module_.load_state_dict({**found.module_.state_dict(), **fast})
        return found

    def _named(self, found: Any, X: Any, y: Any) -> Any:
        """Return the targets of a new task, whose classes may have other names."""
        same_rows(type(self).__name__, X, y)
        return y

    def predict(self, X: Any) -> np.ndarray:
        """Return what the starting weights predict, before any task is known."""
        rows, shape = as_rows(X)
        return np.asarray(self.estimator_.predict(self._checked(rows))).reshape(shape)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> float:
        """Return the mean score over tasks, each adapted to ``shots`` rows, on its others."""
        X, y, groups = flat_tasks(type(self).__name__, X, y, groups)
        X, y = self._checked(X), np.asarray(y)
        groups = np.zeros(len(y)) if groups is None else np.asarray(groups)
        found = []
        for name in np.unique(groups):
            rows = np.flatnonzero(groups == name)
            known, other = self._split(rows, y)
            learnt = self.adapt(take_rows(X, known), y[known])
            found.append(learnt.score(take_rows(X, other), y[other]))
        return float(np.mean(found))

    def _split(self, rows: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of a task that are known, and the others."""
        return rows[: self.shots], rows[self.shots :]
