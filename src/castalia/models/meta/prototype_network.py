"""Prototypical networks: the class of a row is that of the nearest mean.

c_k = mean of f(x) over the few rows of class k,  p(k | x) = softmax_k(-||f(x) - c_k||^2).  f is
learnt from episodes: some classes are drawn, some rows of each make the means, others are to be
recognised. A new class needs no training, only its mean.  Shapes: W classes of an episode, S
shots, Q queries, E numbers of a code, K classes.
Reference: 2017, Snell, Swersky, Zemel, Prototypical networks for few-shot learning, arXiv
1703.05175.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.base import Interval, OneOf
from castalia.base.direct_descent import descend
from castalia.base.input_checks import same_rows
from castalia.errors import InvalidData
from castalia.models.meta.task_arrays import viewed
from castalia.models.strategies.self_supervised import Outputs
from castalia.models.strategies.strategy_base import Strategy
from castalia.models.strategies.training_changes import changed
from castalia.models.strategies.untrained import untrained
from castalia.objectives import Objective
from castalia.protocols import Batch
from castalia.train import Training
from castalia.utils.devices import resolve_device

__all__ = ["ProtoNet", "PrototypeLoss", "prototype_scores"]


def prototype_scores(codes: Tensor, prototypes: Tensor) -> Tensor:  # (n, E), (K, E)
    """Return -||f(x) - c_k||^2, (n, K).

    >>> prototype_scores(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[-25.,  -1.]])
    """
    lengths = codes.square().sum(dim=1)[:, None] + prototypes.square().sum(dim=1)
    return 2 * codes @ prototypes.T - lengths


class PrototypeLoss(Objective):
    """Cross-entropy of query rows by the means of support rows; a row of the batch is a class.

    Parameters
    ----------
    shots, queries
        S and Q: rows of each class that make its mean, and that are to be recognised. They are
        drawn at every step.
    """

    def __init__(self, shots: int, queries: int) -> None:
        self.shots, self.queries = shots, queries

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over the queries of an episode."""
        x, ways = batch.x, len(batch.x)
        drawn = torch.rand(x.shape[:2], device=x.device).argsort(dim=1)
        drawn = drawn[:, : self.shots + self.queries]  # other rows of every class
        rows = x[torch.arange(ways, device=x.device)[:, None], drawn]
        codes = net(rows.flatten(0, 1)).unflatten(0, (ways, -1))  # (W, S + Q, E)
        support, query = codes.split([self.shots, codes.shape[1] - self.shots], dim=1)
        scores = prototype_scores(query.flatten(0, 1), support.mean(dim=1))
        truth = torch.arange(ways, device=x.device).repeat_interleave(query.shape[1])
        right = (scores.argmax(dim=1) == truth).to(scores.dtype).mean()
        return {"loss": F.cross_entropy(scores, truth), "accuracy": right}


@dataclass(kw_only=True, eq=False, repr=False)
class ProtoNet(Strategy):
    """A classifier that knows a new class by the mean of a few of its rows.

    The network of any estimator gives codes in which rows of a class lie together. ``fit`` learns
    it from many classes; ``adapt`` takes a few rows of others and returns a classifier for those,
    without training.

    Parameters
    ----------
    task
        ``"classification"``: the only one there is.
    dim
        E, numbers of a code.
    ways
        W: classes of an episode. More than will be asked for is good.
    shots
        S: rows of each class that make its mean; as many as will be known of a new class.
    queries
        Q: rows of each class that are to be recognised.
    epochs
        Passes over the classes.
    lr
        Learning rate.

    Attributes
    ----------
    estimator_ : object
        The estimator whose network gives the codes.
    prototypes_ : ndarray (K, E)
        The mean of each class.
    classes_ : ndarray (K,)
        The classes.

    Shapes
    ------
    X: as the wrapped classifier takes it.  ``encode``: (n, E).

    Notes
    -----
    ``epochs`` and ``lr`` are those of the episodes; the estimator's own do not count, its
    ``augment`` does. A class with fewer than S + Q rows is drawn from with repetition.

    References
    ----------
    2017, Snell, Swersky, Zemel, Prototypical networks for few-shot learning, arXiv 1703.05175.

    See Also
    --------
    MAML : also for regressions; a gradient step for each new task.

    Examples
    --------
    >>> from castalia.testing.toys import blobs
    >>> X, y = blobs(150)
    >>> model = ProtoNet(epochs=20, random_state=0).fit(X[y < 2], y[y < 2])
    >>> model.adapt(X[:20], y[:20]).score(X, y) > 0.9  # the third class is new
    True
    """

    _classes_only: ClassVar[bool] = True

    task: Annotated[str | None, OneOf(None, "classification")] = None
    dim: Annotated[int, Interval(1, whole=True)] = 32
    ways: Annotated[int, Interval(2, whole=True)] = 20
    shots: Annotated[int, Interval(1, whole=True)] = 5
    queries: Annotated[int, Interval(1, whole=True)] = 5
    epochs: Annotated[int, Interval(1, whole=True)] = 100
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-3

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        with changed(member, codec=Outputs(self.dim)):
            untrained(member, X, y)
        x = torch.cat(list(member.adapter_.blocks(X, np.float32)))
        labels = np.searchsorted(self.classes_, y)
        parts = [np.flatnonzero(labels == k) for k in range(len(self.classes_))]
        n = max(self.shots + self.queries, *map(len, parts))
        training = member.training if member.training is not None else Training()
        state = descend(
            member,
            member.module_,
            viewed(member, PrototypeLoss(self.shots, self.queries)),
            x[torch.from_numpy(np.stack([np.resize(part, n) for part in parts]))],  # (K, n, …)
            torch.zeros(len(parts)),
            training=replace(training, validation=0),
            epochs=self.epochs,
            batch_size=self.ways,
            lr=self.lr,
        )
        member.history_ = state.history
        member.module_.eval().to(resolve_device(training.device))  # many rows, where it is quick
        self.prototypes_ = self._means(member, X, labels, weight)
        member.module_.to("cpu")
        return member

    def _means(
        self, member: Any, X: Any, labels: np.ndarray, weight: np.ndarray | None
    ) -> np.ndarray:
        codes, each = member._outputs(X).double(), torch.from_numpy(labels)
        w = torch.ones(len(each)).double() if weight is None else torch.as_tensor(weight).double()
        sums = codes.new_zeros(int(each.max()) + 1, codes.shape[1]).index_add_(
            0, each, codes * w[:, None]
        )
        return np.asarray(sums / torch.bincount(each, w)[:, None])

    def adapt(self, X: Any, y: Any) -> ProtoNet:
        """Return a classifier for the classes of these rows."""
        X = self._checked(X)
        same_rows("ProtoNet", X, y)
        found = copy.copy(self)
        found.classes_, labels = np.unique(np.asarray(y), return_inverse=True)
        if len(found.classes_) < 2:
            raise InvalidData(
                "ProtoNet: a new task must have two classes or more; got "
                f"{len(found.classes_)}. Give rows of the others too."
            )
        found.prototypes_ = self._means(self.estimator_, X, labels, None)
        return found

    def encode(self, X: Any) -> np.ndarray:
        """Return the code of each row, (n, E)."""
        X = self._checked(X)
        return self.estimator_._outputs(X).double().numpy()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each row."""
        codes, means = (torch.from_numpy(a) for a in (self.encode(X), self.prototypes_))
        return torch.softmax(prototype_scores(codes, means), dim=1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of the nearest mean of each row."""
        found = self.predict_proba(X).argmax(axis=1)
        return self.classes_[found]
