"""Neural processes: a family of functions, learnt from samples of many of them.

max_w E_t E_C log p(y_t | x_t, context C of task t), contexts of random size drawn at each step.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Interval, RandomState, check_parameters
from castalia.base.direct_descent import descend
from castalia.base.input_checks import check_matrix, check_target
from castalia.models.meta.task_arrays import task_rows
from castalia.nets.meta import NeuralProcess as Network
from castalia.objectives import Objective, weighted_mean
from castalia.protocols import Batch
from castalia.train import Training
from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["AttentiveNeuralProcess", "ConditionalNeuralProcess", "ContextLikelihood"]


def log_density(mean: Tensor, scale: Tensor, y: Tensor) -> Tensor:
    """Return log N(y; mean, scale^2), summed over outputs, (B, N)."""
    return torch.distributions.Normal(mean, scale).log_prob(y).sum(dim=2)


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
class _Process(BaseEstimator):
    """Base of neural processes."""

    hidden: Annotated[int, Interval(1, whole=True)] = 64
    depth: Annotated[int, Interval(1, whole=True)] = 2
    context: Annotated[int, Interval(1, whole=True)] = 10
    epochs: Annotated[int, Interval(1, whole=True)] = 100
    tasks: Annotated[int, Interval(1, whole=True)] = 16
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-3
    training: Training | None = None
    random_state: Annotated[Any, RandomState()] = None

    def _heads(self) -> int:
        return 0

    def fit(self, X: Any, y: Any, groups: Any = None) -> Any:
        """Learn from rows whose functions ``groups`` names."""
        check_parameters(self)
        X = np.asarray(check_matrix(self, X, reset=True), dtype=np.float32)
        y = np.asarray(check_target(self, X, y), dtype=np.float32)
        self.one_target_ = y.ndim == 1
        y = y.reshape(len(y), -1)
        self.centre_ = np.stack([X.mean(axis=0), X.std(axis=0) + 1e-12])
        self.target_centre_ = np.stack([y.mean(axis=0), y.std(axis=0) + 1e-12])
        x, targets = self._scaled(X, self.centre_), self._scaled(y, self.target_centre_)
        tasks_x, tasks_y = task_rows(type(self).__name__, x, targets, groups, 2)
        with seed_scope(seed_from(self.random_state)):
            net = Network(
                x.shape[1],
                targets.shape[1],
                hidden=self.hidden,
                depth=self.depth,
                heads=self._heads(),
            )
        training = self.training if self.training is not None else Training()
        state = descend(
            self,
            net,
            ContextLikelihood(min(self.context, tasks_x.shape[1])),
            tasks_x,
            tasks_y,
            training=copy.copy(training).set_params(validation=0),
            epochs=self.epochs,
            batch_size=self.tasks,
            lr=self.lr,
        )
        self.module_, self.history_ = net.eval(), state.history
        self._take_context(X[:0], y[:0])
        return self

    @staticmethod
    def _scaled(values: np.ndarray, centre: np.ndarray) -> Tensor:
        return torch.from_numpy(((values - centre[0]) / centre[1]).astype(np.float32))

    def adapt(self, X: Any, y: Any) -> Any:
        """Return the process given these points of one function."""
        check_is_fitted(self, "module_")
        found = copy.copy(self)
        found._take_context(np.asarray(X, dtype=np.float32), np.asarray(y, dtype=np.float32))
        return found

    def _take_context(self, x: np.ndarray, y: np.ndarray) -> None:
        inputs, outputs = self.centre_.shape[1], self.target_centre_.shape[1]
        self.context_x_ = self._scaled(x.reshape(-1, inputs), self.centre_)
        self.context_y_ = self._scaled(y.reshape(-1, outputs), self.target_centre_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean at each row given the context so far, and the deviation if asked."""
        check_is_fitted(self, "module_")
        X = np.asarray(check_matrix(self, X, reset=False), dtype=np.float32)
        with torch.inference_mode():
            mean, scale = self.module_(
                self.context_x_[None], self.context_y_[None], self._scaled(X, self.centre_)[None]
            )
        centre, spread = self.target_centre_
        found = [mean[0].numpy() * spread + centre, scale[0].numpy() * spread]
        found = [part[:, 0] if self.one_target_ else part for part in found]
        return tuple(found) if return_std else found[0]

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Return the mean log-density of further points of the function."""
        mean, scale = self.predict(X, return_std=True)
        z = (np.asarray(y) - mean) / scale
        return float(np.mean(-0.5 * z**2 - np.log(scale) - 0.5 * np.log(2 * np.pi)))


@dataclass(kw_only=True, eq=False, repr=False)
class ConditionalNeuralProcess(_Process):
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
    random_state
        Seed.

    Attributes
    ----------
    module_ : torch.nn.Module
        The network.
    history_ : list of dict
        Loss of every epoch.

    References
    ----------
    2018, Garnelo et al., Conditional neural processes, arXiv 1807.01613.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X, task = random.uniform(-2, 2, (200, 1)), np.arange(200) // 20
    >>> y = np.sin(X[:, 0] + task)
    >>> model = ConditionalNeuralProcess(hidden=16, epochs=3, random_state=0)
    >>> model.fit(X, y, groups=task).adapt(X[:5], y[:5]).predict(X[:2]).shape
    (2,)
    """


@dataclass(kw_only=True, eq=False, repr=False)
class AttentiveNeuralProcess(_Process):
    """A neural process whose target points attend to the context points near them.

    Follows the points it was given more closely than the mean over all of them does.

    Parameters
    ----------
    hidden, depth, context, epochs, tasks, lr, training, random_state
        As for ``ConditionalNeuralProcess``.
    heads
        Attention heads.

    Attributes
    ----------
    module_ : torch.nn.Module
        The network.

    References
    ----------
    2019, Kim et al., Attentive neural processes, arXiv 1901.05761; without its latent path.

    Examples
    --------
    >>> AttentiveNeuralProcess(heads=2).heads
    2
    """

    heads: Annotated[int, Interval(1, whole=True)] = 4

    def _heads(self) -> int:
        return self.heads
