"""What agents with a network share: they act, train on what happened, and act again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, Sizes, check_parameters
from castalia.base.direct_descent import descend
from castalia.models.control.experience import (
    Crew,
    Experience,
    as_numbers,
    begun,
    opened,
    state_width,
    stepped,
)
from castalia.objectives import Objective
from castalia.protocols import Spec
from castalia.train import Callback, Training, TrainState
from castalia.utils.plain_torch import plain_torch
from castalia.utils.seeds import derive, seed_from, seed_scope

__all__ = ["Agent", "Collector", "mean_return"]


def mean_return(world: Any, choose: Any, episodes: int, seed: int = 0) -> float:
    """Return the mean sum of rewards of some episodes, by a function from state to action."""
    totals = []
    for episode in range(episodes):
        state = begun("score", world, derive(seed, episode) % 2**31)
        total, over = 0.0, False
        for _ in range(10_000):
            state, reward, ended, cut, _ = stepped("score", world, choose(state))
            total, over = total + reward, ended or cut
            if over:
                break
        totals.append(total)
    return float(np.mean(totals))


class Collector(Callback):
    """Writes what the network of the moment lives through into the rows of an epoch.

    Parameters
    ----------
    crew
        Copies of the world.
    rows
        The rows.
    random_state
        Seed of the actions.
    passes
        Epochs for which rows are kept.
    """

    def __init__(self, crew: Crew, rows: Experience, random_state: int, passes: int = 1) -> None:
        self.crew, self.rows, self.random_state, self.passes = crew, rows, random_state, passes

    def collect(self, net: Any, random: np.random.Generator, progress: float) -> None:
        """Act, and replace the rows; ``progress`` goes from 0 to 1."""
        raise NotImplementedError

    def on_epoch_start(self, state: TrainState) -> None:
        """Act with the network as it is now."""
        if state.epoch % self.passes == 0 or not self.rows.parts:
            random = np.random.default_rng([self.random_state, state.epoch])
            with torch.no_grad():
                self.collect(state.net, random, state.epoch / state.epochs)

    def on_epoch_end(self, state: TrainState) -> None:
        """Write the mean return of the last episodes beside the losses."""
        if self.crew.returns:
            state.history[-1]["return"] = float(np.mean(self.crew.returns[-20:]))


@dataclass(kw_only=True, eq=False, repr=False)
class Agent(DirectEstimator):
    """Base of agents that are trained by gradients.

    A subclass gives ``_network``, ``_loss`` and ``_collector``.

    Parameters
    ----------
    epochs
        Rounds of acting and training.
    steps
        Steps of every copy of the world in a round.
    copies
        Copies of the world that are played side by side.
    hidden
        Widths of the hidden layers.
    discount
        How much the next reward counts against this one.
    batch_size
        Rows of a training step.
    lr
        Learning rate.
    training
        How the loop runs; None takes Adam.
    """

    epochs: Annotated[int, Interval(1, whole=True)] = 100
    steps: Annotated[int, Interval(1, whole=True)] = 64
    copies: Annotated[int, Interval(1, whole=True)] = 8
    hidden: Annotated[tuple[int, ...], Sizes()] = (64, 64)
    discount: Annotated[float, Interval(0, 1)] = 0.99
    batch_size: Annotated[int, Interval(1, whole=True)] = 256
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-3
    training: Training | None = None

    def _loss(self) -> Objective:
        """Say what is minimised."""
        raise NotImplementedError

    def _rows(self) -> int:
        """Return how many rows a round trains on."""
        return self.steps * self.copies

    def _step_rows(self) -> int:
        """Return how many rows a training step has."""
        return self.batch_size

    def _passes(self) -> int:
        """Return how often a round goes over its rows."""
        return 1

    def _collector(self, crew: Crew, rows: Experience, seed: int, loss: Any) -> Collector:
        """Return what makes rows of the world."""
        raise NotImplementedError

    def _scores(self, x: Tensor) -> Tensor:
        """Return how good each action is, (B, A)."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]
        """Act in a world and learn.

        Parameters
        ----------
        X
            An object with the API of Gymnasium's environments and numbered actions, or the name of
            one of Gymnasium's.
        y
            Ignored.

        Returns
        -------
        self
        """
        check_parameters(self)
        world, seed = opened(type(self).__name__, X), seed_from(self.random_state)
        self.spec_ = Spec(state_width(world), int(world.action_space.n))
        training = self.training if self.training is not None else Training()
        crew = Crew(world, self.copies, seed, type(self).__name__)
        rows = Experience(self._rows(), self.spec_.inputs, world)
        with plain_torch():
            with seed_scope(seed):
                net = self._network(self.spec_)
            loss = self._loss()
            state = descend(
                self,
                net,
                loss,
                rows,
                torch.zeros(len(rows)),
                training=replace(training, validation=0),
                epochs=self.epochs * self._passes(),
                batch_size=self._step_rows(),
                lr=self.lr,
                callbacks=[self._collector(crew, rows, seed, loss)],
            )
        self.module_, self.history_ = net.eval(), state.history
        self.returns_, self.steps_ = np.array(crew.returns), np.array(crew.counts)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the best known action in each state, (n,)."""
        check_is_fitted(self, "module_")
        with torch.inference_mode():
            found = self._scores(as_numbers(X, self.spec_.inputs))
        return found.argmax(dim=1).numpy()

    def score(self, X: Any, y: Any = None, episodes: int = 20) -> float:
        """Return the mean sum of rewards in a world, X, over some episodes."""
        check_is_fitted(self, "module_")
        world = opened(type(self).__name__, X)
        return mean_return(world, lambda state: int(self.predict([state])[0]), episodes)
