"""Neural processes without a latent code: every target point has a normal of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from castalia.base import Interval
from castalia.models.meta.process_base import Process, log_density
from castalia.nets.meta import NeuralProcess as Network
from castalia.objectives import Objective, weighted_mean
from castalia.protocols import Batch, Spec

__all__ = ["AttentiveNeuralProcess", "ConditionalNeuralProcess", "ContextLikelihood"]


class ContextLikelihood(Objective):
    """- log p of all points of a task given some of them; a row is a task.

    Parameters
    ----------
    most
        Largest context; its size is drawn from 0 to this at each step.
    """

    def __init__(self, most: int) -> None:
        self.most = most

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over tasks and points."""
        x, y = batch.x, batch.y
        order = torch.randperm(x.shape[1], device=x.device)
        inside = order[: int(torch.randint(self.most + 1, ()))]
        mean, scale = net(x[:, inside], y[:, inside], x)
        return {"loss": weighted_mean(-log_density(mean, scale, y).mean(dim=1), batch.weight)}


@dataclass(kw_only=True, eq=False, repr=False)
class _Deterministic(Process):
    """Base of processes whose summary of the context is a vector."""

    def _heads(self) -> int:
        return 0

    def _network(self, spec: Spec) -> Network:
        return Network(
            spec.inputs, spec.outputs, hidden=self.hidden, depth=self.depth, heads=self._heads()
        )

    def _loss(self, most: int) -> ContextLikelihood:
        return ContextLikelihood(most)

    def _normals(self, x: Tensor, *draws: int) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self.module_(
            self.context_x_[None], self.context_y_[None], x[None]
        )
        return found


@dataclass(kw_only=True, eq=False, repr=False)
class ConditionalNeuralProcess(_Deterministic):
    """A regressor that is given a new function by some of its points, without training.

    Learnt from samples of many functions, it says a mean and a deviation at every point; both
    depend on the context and not on its order. Cheaper than a Gaussian process at n points, O(n)
    against O(n^3), and its prior is learnt; it underfits points it was given.

    Parameters
    ----------
    hidden
        Width of all layers and of the summary.
    depth
        Hidden layers of encoder and decoder.
    context
        Largest context seen in training.
    epochs
        Passes over the functions.
    tasks
        Functions of one step.
    lr
        Learning rate.
    training
        How the loop runs.

    Attributes
    ----------
    module_ : torch.nn.Module
        The network.
    history_ : list of dict
        Loss of every epoch.

    Shapes
    ------
    X: (N, D) with ``groups`` (N,), or functions side by side, (T, n, D) with y (T, n).

    Notes
    -----
    ``predict`` with ``return_std`` also says the deviation; before ``adapt`` there is no context.

    References
    ----------
    2018, Garnelo et al., Conditional neural processes, arXiv 1807.01613.

    See Also
    --------
    NeuralProcess : draws whole functions.
    MAML : a network for each task, by a gradient step.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X, task = random.uniform(-2, 2, (200, 1)), np.arange(200) // 20
    >>> y = np.sin(X[:, 0] + task)
    >>> model = ConditionalNeuralProcess(hidden=16, epochs=3, random_state=0)
    >>> model.fit(X, y, groups=task).adapt(X[:5], y[:5]).predict(X[:2]).shape
    (2,)
    """


@dataclass(kw_only=True, eq=False, repr=False)
class AttentiveNeuralProcess(_Deterministic):
    """A neural process whose target points attend to the context points near them.

    Follows the points it was given more closely than the mean over all of them does.

    Parameters
    ----------
    hidden
        Width of all layers and of the summary.
    depth
        Hidden layers of encoder and decoder.
    context
        Largest context seen in training.
    epochs
        Passes over the functions.
    tasks
        Functions of one step.
    lr
        Learning rate.
    training
        How the loop runs.
    heads
        Attention heads.

    Attributes
    ----------
    module_ : torch.nn.Module
        The network.

    Shapes
    ------
    X: (N, D) with ``groups`` (N,), or functions side by side, (T, n, D) with y (T, n).

    Notes
    -----
    ``predict`` with ``return_std`` also says the deviation; before ``adapt`` there is no context.

    References
    ----------
    2019, Kim et al., Attentive neural processes, arXiv 1901.05761; without its latent path.

    See Also
    --------
    ConditionalNeuralProcess : the mean over all points instead.

    Examples
    --------
    >>> AttentiveNeuralProcess(heads=2).heads
    2
    """

    heads: Annotated[int, Interval(1, whole=True)] = 4

    def _heads(self) -> int:
        return self.heads
