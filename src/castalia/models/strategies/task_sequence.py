"""Continual learning: tasks one after the other, and what is left of the first ones.

replay: some rows of every past task are trained on again.  EWC: J + l/2 sum_i F_i (w_i - w*_i)^2
after each task, F_i = E (d log p(y | x) / dw_i)^2 the Fisher information at the task's end w*.
Backward transfer: mean over tasks t < T of R_Tt - R_tt, with R_st the score on task t after s.
References: 2017, Kirkpatrick et al., Overcoming catastrophic forgetting, arXiv 1612.00796. 2017,
Lopez-Paz, Ranzato, Gradient episodic memory, arXiv 1706.08840 (the table). 1990, Ratcliff (replay).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn

from castalia.base import Interval, OneOf
from castalia.base.input_checks import take_rows
from castalia.models.strategies.strategy_base import Grouped, Strategy
from castalia.models.strategies.training_changes import changed, require_rows
from castalia.models.strategies.untrained import untrained
from castalia.nn import evaluating
from castalia.objectives import Objective, Penalty
from castalia.protocols import Batch

__all__ = ["ContinualLearning", "ElasticWeights", "fisher_information"]

Weights = dict[str, Tensor]


class ElasticWeights(Penalty):
    """l/2 sum_i F_i (w_i - w*_i)^2, summed over past tasks.

    Parameters
    ----------
    past
        Of each task the Fisher information and the weights it ended with.
    factor
        l; larger values hold the past more firmly.

    Examples
    --------
    >>> net = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.constant_(net.weight, 3.0)
    >>> one = {"weight": torch.ones(1, 1)}
    >>> ElasticWeights([(one, one)], 2.0).value(net).item()
    4.0
    """

    name = "elastic"

    def __init__(self, past: list[tuple[Weights, Weights]], factor: float) -> None:
        self.past, self.factor = past, factor

    def value(self, net: nn.Module) -> Tensor:
        """Return the penalty of a network."""
        total: Any = 0.0
        for fisher, kept in self.past:
            for name, w in net.named_parameters():
                total = total + (fisher[name].to(w) * (w - kept[name].to(w)).square()).sum()
        return torch.as_tensor(self.factor / 2 * total)


def fisher_information(net: nn.Module, objective: Any, batches: list[Batch]) -> Weights:
    """Return the mean squared gradient of each row's loss, by every weight.

    Examples
    --------
    >>> from castalia.objectives import SquaredError
    >>> net = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.zeros_(net.weight)
    >>> rows = Batch(torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [1.0]]))
    >>> fisher_information(net, SquaredError(scale="half"), [rows])["weight"].item()
    2.5
    """
    found = {name: torch.zeros_like(w) for name, w in net.named_parameters()}
    rows = 0
    with evaluating(net):
        for batch in batches:
            losses = objective.rows(net(batch.x), batch.y)
            for loss in losses:
                net.zero_grad()
                loss.backward(retain_graph=True)
                for name, w in net.named_parameters():
                    found[name] += 0 if w.grad is None else w.grad.square()
            rows += len(losses)
    net.zero_grad()
    return {name: value / rows for name, value in found.items()}


@dataclass(kw_only=True, eq=False, repr=False)
class ContinualLearning(Grouped, Strategy):
    """A network that learns tasks one after the other and keeps what it learnt first.

    ``groups`` says which task each row belongs to; tasks are met in the order of their first row,
    and rows of past tasks are not seen again, except those kept for replay.

    Parameters
    ----------
    method
        ``"replay"``: past rows are mixed in; ``"ewc"``: weights that mattered are held;
        ``"naive"``: neither, the baseline.
    memory
        Rows of each past task kept for replay.
    factor
        Strength l of the hold.

    Attributes
    ----------
    estimator_ : object
        The network after the last task.
    table_ : ndarray (T, T)
        R_st: score on the rows of task t after task s.
    backward_transfer_ : float
        What past tasks lost (below 0) or gained since they were learnt; 0 for one task.
    tasks_ : ndarray (T,)
        The tasks in the order in which they were learnt.

    Shapes
    ------
    As those of the wrapped estimator; ``groups``: (n,).

    Notes
    -----
    Classes, columns and scales are learnt from all rows beforehand. Each task trains for the
    estimator's ``epochs`` at a constant rate. The Fisher information takes a pass backwards for
    each of at most 200 rows.

    References
    ----------
    2017, Kirkpatrick et al., Overcoming catastrophic forgetting in neural networks, arXiv
    1612.00796. 2017, Lopez-Paz, Ranzato, Gradient episodic memory, arXiv 1706.08840.

    See Also
    --------
    MultiTask : all tasks at once.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = ContinualLearning(random_state=0).fit(X, y, groups=X[:, 0] > 0.5)
    >>> model.table_.shape
    (2, 2)
    """

    method: Annotated[str, OneOf("replay", "ewc", "naive")] = "replay"
    memory: Annotated[int, Interval(1, whole=True)] = 50
    factor: Annotated[float, Interval(0)] = 100.0

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        groups = np.zeros(len(y), dtype=int) if self._groups is None else self._groups
        tasks, first = np.unique(groups, return_index=True)
        self.tasks_ = tasks[np.argsort(first)]
        parts = [np.flatnonzero(groups == task) for task in self.tasks_]
        random = np.random.default_rng(member.random_state)
        past: list[tuple[Weights, Weights]] = []
        kept = np.zeros(0, dtype=int)
        table = np.zeros((len(parts), len(parts)))
        untrained(member, X, y, weight)
        for s, rows in enumerate(parts):
            self._learn_task(member, X, y, weight, np.concatenate([rows, kept]), past)
            if self.method == "replay":
                some = random.permutation(rows)[: self.memory]
                kept = np.concatenate([kept, some])
            elif self.method == "ewc":
                past.append(self._remembered(member, X, y, random.permutation(rows)[:200]))
            table[s] = [member.score(take_rows(X, part), y[part]) for part in parts]
        last = table[-1, :-1] - table.diagonal()[:-1]
        self.table_, self.backward_transfer_ = table, float(last.mean()) if len(last) else 0.0
        return member

    def _learn_task(
        self, member: Any, X: Any, y: Any, weight: Any, rows: np.ndarray, past: Any
    ) -> None:
        own = take_rows(X, rows), y[rows]
        w = None if weight is None else weight[rows]

        def held(objective: Objective) -> Objective:
            return objective + ElasticWeights(past, self.factor) if past else objective

        with changed(member, objective=held):
            vars(member).pop("_optimizers", None)  # another task, another momentum
            for _ in range(member.epochs):
                member.partial_fit(*own, sample_weight=w)

    def _remembered(
        self, member: Any, X: Any, y: np.ndarray, rows: np.ndarray
    ) -> tuple[Weights, Weights]:
        """Return the Fisher information of a task and the weights it ended with."""
        objective = require_rows("ContinualLearning", member._objective(member.spec_))
        net = member.module_
        kind = next(net.parameters()).dtype
        target = member.codec.encode(member, y[rows])
        samples = member._samples(take_rows(X, rows), target, kind)
        batch = samples.batch(torch.arange(len(rows))).to(next(net.parameters()).device)
        with torch.enable_grad():
            fisher = fisher_information(net, objective, [batch])
        return fisher, {name: w.detach().clone() for name, w in net.named_parameters()}
