"""Neural process with a latent code: one code is one function.

max E_{z ~ q(z | all)} sum_i log p(y_i | x_i, z) - KL(q(z | all) || q(z | context)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.distributions import kl_divergence

from castalia.base import Interval
from castalia.models.meta.process_base import Process, log_density
from castalia.nets.meta import LatentProcess
from castalia.objectives import Objective, weighted_mean
from castalia.protocols import Batch, Spec
from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["LatentLikelihood", "NeuralProcess"]


class LatentLikelihood(Objective):
    """Minus the evidence bound of all points of a task, per point; a row is a task.

    Parameters
    ----------
    most
        Largest context; its size is drawn from 0 to this at each step.
    """

    def __init__(self, most: int) -> None:
        self.most = most

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over tasks, and the divergence alone."""
        x, y = batch.x, batch.y
        order = torch.randperm(x.shape[1], device=x.device)
        inside = order[: int(torch.randint(self.most + 1, ()))]
        all_points, some = net.code(x, y), net.code(x[:, inside], y[:, inside])
        mean, scale = net(all_points.rsample(), x)
        divergence = kl_divergence(all_points, some).sum(dim=1)  # (B,)
        bound = log_density(mean, scale, y).sum(dim=1) - divergence
        return {
            "loss": weighted_mean(-bound / x.shape[1], batch.weight),
            "divergence": weighted_mean(divergence, batch.weight),
        }


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralProcess(Process):
    """A distribution over functions, learnt from samples of many, that points make narrower.

    A code stands for a whole function, so ``sample`` draws functions and not independent points.
    Where only means and deviations are wanted, ``ConditionalNeuralProcess`` is simpler and mostly
    likelier.

    Parameters
    ----------
    hidden
        Width of all layers and of the code.
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
    draws
        Codes that a prediction averages.

    Attributes
    ----------
    module_ : torch.nn.Module
        The network.
    history_ : list of dict
        Loss and divergence of every epoch.

    Shapes
    ------
    X: (N, D) with ``groups`` (N,), or functions side by side, (T, n, D) with y (T, n).

    Notes
    -----
    The same seed draws the same codes, so predictions repeat.

    References
    ----------
    2018, Garnelo et al., Neural processes, arXiv 1807.01622.

    See Also
    --------
    ConditionalNeuralProcess : no code.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(-2, 2, (10, 20, 1))
    >>> y = np.sin(X[:, :, 0] + np.arange(10)[:, None])
    >>> model = NeuralProcess(hidden=16, epochs=3, random_state=0).fit(X, y)
    >>> model.adapt(X[0, :5], y[0, :5]).sample(X[0, :4], 3).shape
    (3, 4)
    """

    draws: Annotated[int, Interval(1, whole=True)] = 32

    def _network(self, spec: Spec) -> LatentProcess:
        return LatentProcess(spec.inputs, spec.outputs, hidden=self.hidden, depth=self.depth)

    def _loss(self, most: int) -> LatentLikelihood:
        return LatentLikelihood(most)

    def _normals(self, x: Tensor, *draws: int) -> tuple[Tensor, Tensor]:
        n = draws[0] if draws else self.draws
        code = self.module_.code(self.context_x_[None], self.context_y_[None])  # type: ignore[operator]
        with seed_scope(seed_from(0 if self.random_state is None else self.random_state)):
            z = code.sample((n,))[:, 0]
        found: tuple[Tensor, Tensor] = self.module_(z, x.expand(n, -1, -1))
        return found

    def sample(self, X: Any, n: int = 1) -> np.ndarray:
        """Return n functions, drawn given the context, at rows X, (n, N)."""
        check_is_fitted(self, "module_")
        drawn, _ = self._members(X, n)
        return drawn[..., 0] if self.one_target_ else drawn
