"""What neural processes share: a family of functions, learnt from samples of many of them.

max_w E_t E_C log p(y_t | x_t, context C of task t), contexts of random size drawn at each step.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, check_parameters
from castalia.base.direct_descent import descend
from castalia.base.input_checks import check_matrix, check_target, same_rows
from castalia.models.meta.task_arrays import as_rows, flat_tasks, task_rows
from castalia.objectives import Objective
from castalia.protocols import Spec
from castalia.train import Training
from castalia.utils.plain_torch import plain_torch
from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["Process", "log_density"]


def log_density(mean: Tensor, scale: Tensor, y: Tensor) -> Tensor:
    """Return log N(y; mean, scale^2), summed over outputs, (B, N)."""
    return torch.distributions.Normal(mean, scale).log_prob(y).sum(dim=2)


@dataclass(kw_only=True, eq=False, repr=False)
class Process(DirectEstimator):
    """Base of neural processes.

    A subclass gives ``_network``, ``_loss`` and ``_normals``.
    """

    hidden: Annotated[int, Interval(1, whole=True)] = 64
    depth: Annotated[int, Interval(1, whole=True)] = 2
    context: Annotated[int, Interval(1, whole=True)] = 10
    epochs: Annotated[int, Interval(1, whole=True)] = 100
    tasks: Annotated[int, Interval(1, whole=True)] = 16
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-3
    training: Training | None = None

    def _loss(self, most: int) -> Objective:
        """Say what is minimised, by the size of the largest context."""
        raise NotImplementedError

    def _normals(self, x: Tensor, *draws: int) -> tuple[Tensor, Tensor]:
        """Return means and deviations at scaled points given the context, (M, N, T) each."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Any:  # type: ignore[override]
        """Learn from points of many functions.

        Parameters
        ----------
        X, y
            Points and values, (N, D) and (N,); or functions side by side, (T, n, D) and (T, n).
        groups
            The function of each point, (N,), where they are not side by side.

        Returns
        -------
        self
        """
        check_parameters(self)
        name = type(self).__name__
        X, y, groups = flat_tasks(name, X, y, groups)
        X = np.asarray(check_matrix(self, X, reset=True), dtype=np.float32)
        y = np.asarray(check_target(self, X, y), dtype=np.float32)
        self.one_target_ = y.ndim == 1
        y = y.reshape(len(y), -1)
        self.centre_ = np.stack([X.mean(axis=0), X.std(axis=0) + 1e-12])
        self.target_centre_ = np.stack([y.mean(axis=0), y.std(axis=0) + 1e-12])
        x, targets = self._scaled(X, self.centre_), self._scaled(y, self.target_centre_)
        self._train(*task_rows(name, x, targets, groups, 2))
        self._take_context(X[:0], y[:0])
        return self

    def _train(self, x: Tensor, y: Tensor) -> None:  # (T, n, D), (T, n, outputs)
        self.spec_ = Spec(x.shape[2], y.shape[2])
        training = self.training if self.training is not None else Training()
        with plain_torch():
            with seed_scope(seed_from(self.random_state)):
                net = self._network(self.spec_)
            state = descend(
                self,
                net,
                self._loss(min(self.context, x.shape[1])),
                x,
                y,
                training=replace(training, validation=0, step="plain"),  # draws on the host
                epochs=self.epochs,
                batch_size=self.tasks,
                lr=self.lr,
            )
        self.module_, self.history_ = net.eval(), state.history

    @staticmethod
    def _scaled(values: np.ndarray, centre: np.ndarray) -> Tensor:
        return torch.from_numpy(((values - centre[0]) / centre[1]).astype(np.float32))

    def adapt(self, X: Any, y: Any) -> Any:
        """Return the process given these points of one function."""
        check_is_fitted(self, "module_")
        same_rows(type(self).__name__, X, y)
        if len(y):  # none is a context too
            X, y = check_matrix(self, X, reset=False), check_target(self, X, y)
        found = copy.copy(self)
        found._take_context(np.asarray(X, dtype=np.float32), np.asarray(y, dtype=np.float32))
        return found

    def _take_context(self, x: np.ndarray, y: np.ndarray) -> None:
        inputs, outputs = self.spec_.inputs, self.spec_.outputs
        self.context_x_ = self._scaled(x.reshape(-1, inputs), self.centre_)
        self.context_y_ = self._scaled(y.reshape(-1, outputs), self.target_centre_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean at each row given the context so far, and the deviation if asked."""
        check_is_fitted(self, "module_")
        rows, shape = as_rows(X)
        mean, scale = self._members(rows)
        spread = (scale**2).mean(axis=0) + mean.var(axis=0)
        found = [part.reshape(*shape, -1) for part in (mean.mean(axis=0), np.sqrt(spread))]
        found = [part[..., 0] if self.one_target_ else part for part in found]
        return tuple(found) if return_std else found[0]

    def _members(self, X: Any, *draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Return means and deviations in the units of the target, (M, N, T) each."""
        X = np.asarray(check_matrix(self, X, reset=False), dtype=np.float32)
        with torch.inference_mode():
            mean, scale = self._normals(self._scaled(X, self.centre_), *draws)
        centre, spread = self.target_centre_
        return mean.double().numpy() * spread + centre, scale.double().numpy() * spread

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Return the mean log-density of further points of the function."""
        check_is_fitted(self, "module_")
        mean, scale = (torch.from_numpy(part) for part in self._members(X))
        wanted = torch.as_tensor(np.asarray(y, dtype=np.float64)).reshape(1, *mean.shape[1:])
        each = log_density(mean, scale, wanted)  # (M, N)
        return float((torch.logsumexp(each, dim=0) - np.log(len(each))).mean())

    def score(self, X: Any, y: Any, groups: Any = None) -> float:
        """Return the mean R2 over functions, each given by half a context, at its other points."""
        X, y, groups = flat_tasks(type(self).__name__, X, y, groups)
        X, y = np.asarray(X), np.asarray(y)
        groups = np.zeros(len(y)) if groups is None else np.asarray(groups)
        known, found = max(1, self.context // 2), []
        for name in np.unique(groups):
            rows = np.flatnonzero(groups == name)
            truth = y[rows[known:]]
            gap = truth - self.adapt(X[rows[:known]], y[rows[:known]]).predict(X[rows[known:]])
            found.append(1 - (gap**2).sum() / max(((truth - truth.mean(axis=0)) ** 2).sum(), 1e-12))
        return float(np.mean(found))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
