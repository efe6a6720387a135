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

import numpy as np
import torch
from sklearn.base import is_classifier
from torch import Tensor, nn
from torch.func import functional_call, vmap

from castalia.base import Interval, OneOf
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.meta.convolution_products import faster_convolutions
from castalia.models.meta.starting_weights import StartingWeights, Weights, adapted, task_loss
from castalia.models.meta.task_arrays import class_rows
from castalia.nn.network_modes import compiled, uncompiled
from castalia.objectives import Objective, weighted_mean
from castalia.protocols import Batch, StepPlan

__all__ = ["MAML", "EpisodeLoss", "MetaLoss", "StartAndRates"]


class StartAndRates(nn.Module):
    """A network, and a learnt rate for each of its weights in each inner step.

    Parameters
    ----------
    net
        The network.
    rate
        What every rate begins at.
    steps
        Inner steps.
    """

    def __init__(self, net: nn.Module, rate: float, steps: int) -> None:
        super().__init__()
        self.net, self.names = net, [name for name, _ in net.named_parameters()]
        self.values = nn.ParameterList(
            w.new_full((steps, *w.shape), rate) for w in net.parameters()
        )

    def rates(self) -> Weights:
        """Return the rates of each weight, (steps, …), by the weight's name."""
        return dict(zip(self.names, self.values, strict=True))


class MetaLoss(Objective):
    """The loss of each task's query rows after steps on its support rows; a row is a task.

    Parameters
    ----------
    loss
        Compares outputs with targets row by row.
    shots
        Rows of the support; the others are the query. Which is which is drawn at every step.
    lr, steps
        Rate and number of the inner steps; a ``StartAndRates`` has rates of its own.
    second_order
        Whether the inner steps are differentiated.
    """

    def __init__(
        self, loss: Any, shots: int, lr: float, steps: int, *, second_order: bool = True
    ) -> None:
        self.loss, self.shots, self.lr, self.steps = loss, shots, lr, steps
        self.second_order, self.plan = second_order, StepPlan()

    def prepare(self, plan: StepPlan) -> None:
        """Keep how steps are taken: a network that is compiled is so with the inner steps."""
        self.plan = plan

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over tasks."""
        order = torch.randperm(batch.x.shape[1], device=batch.x.device)
        parts = order[: self.shots], order[self.shots :]
        rows = self.losses(net, *(a[:, part] for part in parts for a in (batch.x, batch.y)))
        return {"loss": weighted_mean(rows, batch.weight)}

    def losses(self, net: nn.Module, *rows: Tensor) -> Tensor:
        """Return ``task_losses``, compiled as a whole where the network is to be compiled."""
        if net._compiled_call_impl is None:
            return self.task_losses(net, *rows)
        with uncompiled(net):
            found: Tensor = compiled(_task_losses, self.plan.compile)(self, net, *rows)
        return found

    def task_losses(self, net: nn.Module, *rows: Tensor) -> Tensor:
        """Return the loss of every task, (T,), from x and y of its support and of its query."""
        lr: float | Weights = self.lr
        if isinstance(net, StartAndRates):
            lr, net = net.rates(), net.net
        weights: Weights = dict(net.named_parameters())

        def query_loss(x: Tensor, y: Tensor, query: Tensor, truth: Tensor) -> Tensor:
            fast = adapted(task_loss(net, self.loss, x, y), weights, lr, self.steps)
            if not self.second_order:  # the same numbers, but d w'/d w = I
                fast = {k: w + (fast[k] - w).detach() for k, w in weights.items()}
            outputs = functional_call(net, fast, (query,))
            return torch.as_tensor(self.loss.rows(outputs, truth).mean())

        with faster_convolutions(rows[0]):
            found: Tensor = vmap(query_loss, randomness="different")(*rows)
        return found


class EpisodeLoss(MetaLoss):
    """The same over episodes: a row of the batch is a class, and every W classes are a task.

    Parameters
    ----------
    loss, shots, lr, steps, second_order
        As for ``MetaLoss``; shots are rows of each class.
    ways, queries
        W, and the rows of each class that are asked for; rows are drawn at every step.
    """

    def __init__(self, *args: Any, ways: int, queries: int, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.ways, self.queries = ways, queries

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over tasks; a last batch of fewer classes is one task."""
        x = batch.x  # (classes, n, …)
        ways = min(self.ways, len(x))
        x = x[: len(x) // ways * ways]
        drawn = torch.rand(x.shape[:2], device=x.device).argsort(dim=1)
        x = x[torch.arange(len(x), device=x.device)[:, None], drawn[:, : self.shots + self.queries]]
        x = x.unflatten(0, (-1, ways))  # (T, W, S + Q, …)
        rows: list[Tensor] = []
        for part in x.split([self.shots, x.shape[2] - self.shots], dim=2):
            truth = torch.arange(ways, device=x.device).repeat_interleave(part.shape[2])
            rows += [part.flatten(1, 2), truth.expand(len(x), -1)]
        return {"loss": self.losses(net, *rows).mean()}


def _task_losses(objective: MetaLoss, net: nn.Module, *rows: Tensor) -> Tensor:
    return objective.task_losses(net, *rows)


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
    rates
        ``"given"``, or ``"learnt"``: every weight has a rate of its own in each inner step, which
        begins at ``inner_lr`` (second order only).
    ways
        Classes of a task: tasks are then drawn from the classes of y, so that labelled rows without
        ``groups`` are enough, and ``shots`` are rows of each class. None: tasks are the groups.
    queries
        Rows of each class that a drawn task asks for.

    Attributes
    ----------
    estimator_ : object
        The estimator with the starting weights; its ``history_`` has the loss of every epoch.
    rates_ : dict of Tensor
        Of ``rates="learnt"``: the rates of every weight in the inner steps, (steps, …), by the name
        of its parameter.

    Shapes
    ------
    X: (N, D) with ``groups`` (N,), or tasks side by side, (T, n, D) with y (T, n); with ``ways`` as
    the wrapped classifier takes it, and y its labels.

    Notes
    -----
    Tasks side by side cost one pass of T times the rows (``torch.func.vmap``); second order costs
    about twice as much as first. An estimator's ``augment`` changes the rows of every step. Batch
    norm must be by the rows at hand (``batch_norm="own"`` of a ``ConvNetClassifier``), as in the
    paper: an adapted network then knows those rows better that are asked for together.
    ``Training(compile=True)`` of the estimator compiles tasks with their inner steps.

    References
    ----------
    2017, Finn, Abbeel, Levine, Model-agnostic meta-learning, arXiv 1703.03400. 2017, Li, Zhou,
    Chen, Li, Meta-SGD: learning to learn quickly for few-shot learning, arXiv 1707.09835 (rates).
    2019, Antoniou, Edwards, Storkey, How to train your MAML, arXiv 1810.09502 (rates of each step).

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
    rates: Annotated[str, OneOf("given", "learnt")] = "given"
    shots: Annotated[int, Interval(1, whole=True)] = 5
    ways: Annotated[int | None, Interval(2, whole=True, optional=True)] = None
    queries: Annotated[int, Interval(1, whole=True)] = 5

    def _task_loss(self, loss: Any) -> MetaLoss:
        settings = (loss, self.shots, self.inner_lr, self.inner_steps)
        second = self.order == "second"
        if self.ways is None:
            return MetaLoss(*settings, second_order=second)
        return EpisodeLoss(*settings, second_order=second, ways=self.ways, queries=self.queries)

    def _started(self, net: nn.Module) -> nn.Module:
        if self.rates == "given":
            return net
        if self.order == "first":
            raise InvalidParameter("MAML: `order` must be 'second' where rates are learnt.")
        return StartAndRates(net, self.inner_lr, self.inner_steps)

    def _keep(self, trained: nn.Module) -> None:
        if isinstance(trained, StartAndRates):
            self.rates_ = {name: rate.detach() for name, rate in trained.rates().items()}

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        if self.ways is not None and not is_classifier(self._base()):
            raise InvalidParameter(
                "MAML: `estimator` must be a classifier where `ways` is set; got "
                f"{type(self._base()).__name__}."
            )
        super()._solve(X, y, sample_weight)

    def _rate(self) -> float | Weights:
        return self.inner_lr if self.rates == "given" else self.rates_

    def _step_rows(self) -> int:
        return self.tasks * (self.ways or 1)

    def _first_targets(self, y: np.ndarray) -> np.ndarray:
        return y if self.ways is None else np.arange(len(y)) % self.ways

    def _task_rows(self, member: Any, X: Any, y: Any) -> tuple[Tensor, Tensor]:
        if self.ways is None:
            x, targets = super()._task_rows(member, X, y)
            if is_classifier(member) and bool((targets == targets[:, :1]).all(dim=1).any()):
                raise InvalidData(
                    "MAML: every task must have two classes or more; got one whose first "
                    f"{targets.shape[1]} rows are all of one."
                )
            return x, targets
        x = torch.cat(list(member.adapter_.blocks(X, np.float32)))
        found = class_rows("MAML", x, y, self.ways, self.shots + 1)
        return found, torch.zeros(len(found))

    def _named(self, found: Any, X: Any, y: Any) -> Any:
        y = super()._named(found, X, y)
        if self.ways is None:
            return y
        found.classes_ = np.unique(y)
        if len(found.classes_) != self.ways:
            raise InvalidData(
                f"MAML: a new task must have as many classes as `ways`, {self.ways}; got "
                f"{len(found.classes_)}."
            )
        return y

    def _split(self, rows: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.ways is None:
            return super()._split(rows, y)
        parts = [rows[y[rows] == label] for label in np.unique(y[rows])]
        known, other = ([part[place] for part in parts] for place in
                        (slice(self.shots), slice(self.shots, None)))  # fmt: skip
        return np.concatenate(known), np.concatenate(other)
