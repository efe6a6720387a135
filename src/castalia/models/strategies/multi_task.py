"""Several tasks on one trunk: what one of them teaches the hidden layers, all of them use.

J = sum_t exp(-s_t) J_t + s_t / 2, with s_t = log sigma_t^2 learnt beside the weights, so that noisy
tasks count less; with equal weights s_t = 0.  Shapes: B batch, T tasks, K outputs of all tasks.
References: 1997, Caruana, Multitask learning, Machine Learning 28. 2018, Kendall, Gal, Cipolla,
Multi-task learning using uncertainty to weigh losses, arXiv 1705.07115.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import accuracy_score, r2_score
from torch import Tensor, nn

from castalia.base import OneOf, Target, TargetCodec
from castalia.base.targets import encode_classes, numeric_target
from castalia.errors import InvalidParameter
from castalia.models.ensemble.ensemble import Ensemble
from castalia.models.ensemble.likely_task import TASKS, likely_task
from castalia.models.strategies.hidden_features import WithPart
from castalia.models.strategies.strategy_base import Neural
from castalia.models.strategies.training_changes import changed
from castalia.objectives import Objective, weighted_mean
from castalia.protocols import Batch
from castalia.utils.seeds import seed_from

__all__ = ["MultiTask", "MultiTaskLoss"]


class LogVariances(nn.Module):
    """One number s_t a task."""

    def __init__(self, tasks: int) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(tasks))


class MultiTaskLoss(Objective):
    """Cross-entropy of tasks with classes, half the squared error of those with numbers.

    Parameters
    ----------
    sizes
        Outputs of each task: its classes, or 0 for a number.
    weigh
        Whether the network's ``part`` holds log-variances that weigh the tasks.
    """

    def __init__(self, sizes: Sequence[int], *, weigh: bool) -> None:
        self.sizes, self.weigh = sizes, weigh

    def each(self, outputs: Tensor, targets: Sequence[Tensor]) -> Tensor:
        """Return the loss of each row in each task, (B, T)."""
        parts = outputs.split([max(size, 1) for size in self.sizes], dim=1)
        losses = [
            F.cross_entropy(z, y, reduction="none") if size else (z[:, 0] - y).square() / 2
            for z, y, size in zip(parts, targets, self.sizes, strict=True)
        ]
        return torch.stack(losses, dim=1)

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the sum, and the loss of each task."""
        losses = self.each(net(batch.x), batch.y)
        if self.weigh:
            s = net.part.value
            rows = (torch.exp(-s) * losses + s / 2).sum(dim=1)
        else:
            rows = losses.sum(dim=1)
        each = {f"task{t}": weighted_mean(loss, batch.weight) for t, loss in enumerate(losses.T)}
        return {"loss": weighted_mean(rows, batch.weight), **each}


class TaskCodec(TargetCodec):
    """Targets of every task side by side; the owner knows their classes and scales."""

    def __init__(self, owner: MultiTask) -> None:
        self.owner = owner

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Return a tuple of class numbers and scaled numbers."""
        owner = self.owner
        columns = y.reshape(len(y), -1).T
        coded = tuple(
            torch.from_numpy(owner._encode_task(t, column)) for t, column in enumerate(columns)
        )
        return Target(coded, sum(max(size, 1) for size in owner.sizes_))


@dataclass(kw_only=True, eq=False, repr=False)
class MultiTask(Neural, Ensemble):
    """One network for several targets of the same rows, classes and numbers mixed.

    All layers but the last are shared; each task has its own outputs. Related tasks teach each
    other's features, which helps where each has few rows; unrelated ones compete for them.

    Parameters
    ----------
    estimator
        Whose network is shared: an estimator of ours that is trained by gradients. None takes a
        small perceptron.
    task
        One word for all columns of y, or None: each by its values.
    weights
        ``"uncertainty"`` learns how much each task counts; ``"equal"`` sums the losses.

    Attributes
    ----------
    estimator_ : object
        The trained estimator; its network has the outputs of all tasks.
    sizes_ : list of int
        Classes of each task, 0 for a number.
    task_classes_ : list
        Their classes, or None.
    log_variances_ : ndarray (T,)
        s_t of each task; 0 with equal weights.

    Shapes
    ------
    X: as the wrapped estimator takes it.  y: (n,) or (n, T).

    Notes
    -----
    ``score`` is the mean over tasks of accuracy or R2.

    References
    ----------
    1997, Caruana, Multitask learning, Machine Learning 28. 2018, Kendall, Gal, Cipolla, Multi-task
    learning using uncertainty to weigh losses for scene geometry and semantics, arXiv 1705.07115.

    See Also
    --------
    MLPRegressor : several numbers at once, equally weighted.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> both = np.stack([y, X.sum(axis=1)], axis=1)
    >>> model = MultiTask(random_state=0).fit(X, both)
    >>> model.sizes_, model.predict(X).shape
    ([2, 0], (200, 2))
    """

    task: Annotated[str | None, OneOf(None, *TASKS)] = None
    weights: Annotated[str, OneOf("uncertainty", "equal")] = "uncertainty"

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        member = self._neural(seed_from(self.random_state))
        self._learn_tasks(y)
        weigh, many = self.weights == "uncertainty", len(self.sizes_)
        with changed(
            member,
            objective=MultiTaskLoss(self.sizes_, weigh=weigh),
            network=lambda net: WithPart(net, LogVariances(many)),
            codec=TaskCodec(self),
        ):
            self._fit_member(member, X, y, sample_weight)
        trained = member.module_
        self.log_variances_ = trained.part.value.detach().double().cpu().numpy()
        member.module_ = trained.net
        self.estimator_ = member

    def _learn_tasks(self, y: np.ndarray) -> None:
        """Learn the classes of each column, or its mean and deviation."""
        if y.ndim > 2:
            raise InvalidParameter(f"MultiTask: y must be (n,) or (n, T); got shape {y.shape}.")
        self.one_target_ = y.ndim == 1
        self.sizes_: list[int] = []
        self.task_classes_: list[np.ndarray | None] = []
        self.scales_: list[list[float]] = []
        for column in y.reshape(len(y), -1).T:
            column = np.array(column.tolist())  # of the type of its own values
            if (self.task or likely_task(column)) == "classification":
                classes, _ = encode_classes(self, column)
                self.task_classes_.append(classes)
                self.sizes_.append(len(classes))
                self.scales_.append([0.0, 1.0])
            else:
                values = numeric_target(self, column)
                self.task_classes_.append(None)
                self.sizes_.append(0)
                self.scales_.append([float(values.mean()), float(values.std()) or 1.0])

    def _encode_task(self, t: int, column: np.ndarray) -> np.ndarray:
        classes = self.task_classes_[t]
        column = np.array(column.tolist())
        if classes is not None:
            return np.searchsorted(classes, column)
        mean, scale = self.scales_[t]
        return (numeric_target(self, column) - mean) / scale

    def _outputs(self, X: Any) -> list[Tensor]:
        X = self._checked(X)
        outputs = self.estimator_._outputs(X).double()
        return list(outputs.split([max(size, 1) for size in self.sizes_], dim=1))

    def predict(self, X: Any) -> np.ndarray:
        """Return each task's class or number, (n, T); (n,) where y had one dimension."""
        found = []
        for t, z in enumerate(self._outputs(X)):
            classes, (mean, scale) = self.task_classes_[t], self.scales_[t]
            if classes is not None:
                found.append(classes[z.argmax(dim=1).numpy()])
            else:
                found.append(z[:, 0].numpy() * scale + mean)
        return found[0] if self.one_target_ else np.stack(found, axis=1)

    def task_probabilities(self, X: Any) -> list[np.ndarray | None]:
        """Return the probabilities of every task with classes, None of those with numbers."""
        pairs = zip(self._outputs(X), self.sizes_, strict=True)
        return [torch.softmax(z, dim=1).numpy() if size else None for z, size in pairs]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean over tasks of the accuracy of classes and the R2 of numbers."""
        truth, found = np.asarray(y), self.predict(X)
        columns = zip(truth.reshape(len(truth), -1).T, found.reshape(len(truth), -1).T, strict=True)
        scores = []
        for (t, p), size in zip(columns, self.sizes_, strict=True):
            measure = accuracy_score if size else r2_score
            kind = p.dtype if size else np.float64
            scores.append(measure(t.astype(kind), p, sample_weight=sample_weight))
        return float(np.mean(scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = tags.classifier_tags = tags.regressor_tags = None
        tags.target_tags.multi_output = tags.target_tags.single_output = True
        return tags
