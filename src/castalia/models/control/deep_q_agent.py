"""Deep Q-learning: what each action is worth, by a network that learns from remembered steps.

J = mean huber(Q(s, a) - (r + g Q'(s', argmax_a' Q(s', a')))), Q' an older copy of the network;
which action is best is said by the new one (double Q-learning).
References: 2015, Mnih et al., Human-level control through deep reinforcement learning, Nature 518.
2016, van Hasselt, Guez, Silver, Deep reinforcement learning with double Q-learning, arXiv
1509.06461.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.base import Interval, OneOf
from castalia.models.control.agent_base import Agent, Collector
from castalia.models.control.experience import Crew, Experience, as_numbers
from castalia.nets.control import OnlineAndTarget
from castalia.objectives import Objective
from castalia.protocols import Batch, Spec
from castalia.train import TrainState
from castalia.utils.seeds import derive

__all__ = ["DQN", "Memory", "QLoss"]

TRIED = 5  # rounds from a trial to the next
LONGEST = 10_000  # steps of a trial
BEST = "best."  # what the names of the best trial's weights begin with in a state


class QLoss(Objective):
    """Huber loss of Bellman's equation.

    Parameters
    ----------
    discount
        g.
    double
        Whether the new network chooses the action that the old one values.
    renew, blend
        Steps after which the old network becomes the new one, or takes this share of it.

    Attributes
    ----------
    record, best
        Return of the best trial and the weights that it was played with; kept here, since what an
        objective carries from step to step is resumed with a training.
    """

    def __init__(
        self, discount: float, *, double: bool = True, renew: int = 100, blend: float = 1.0
    ) -> None:
        self.discount, self.double, self.every, self.blend = discount, double, renew, blend
        self.done, self.record = 0, -np.inf
        self.best: dict[str, Tensor] = {}

    def ahead(self, net: Any, after: Tensor) -> Tensor:
        """Return what the next state is worth, (B,)."""
        old = net.target(after)
        best = (net(after) if self.double else old).argmax(dim=1, keepdim=True)
        return old.gather(1, best)[:, 0]

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over remembered steps."""
        step = batch.x
        with torch.no_grad():
            wanted = step["reward"] + self.discount * step["goes_on"] * self.ahead(
                net, step["after"]
            )
        said = net(step["state"]).gather(1, step["action"][:, None])[:, 0]
        return {"loss": F.smooth_l1_loss(said, wanted), "value": said.mean()}

    def after_step(self, net: Any) -> None:
        """Renew the old network now and then."""
        self.done += 1
        if self.done % self.every == 0:
            net.renew(self.blend)

    def state_dict(self) -> dict[str, Tensor]:
        """Return how many steps were done, and the best trial."""
        found = {"done": torch.tensor(self.done), "record": torch.tensor(self.record)}
        return {**found, **{f"{BEST}{name}": w for name, w in self.best.items()}}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on counting, and remember the best trial."""
        self.done = int(state["done"]) if "done" in state else 0
        self.record = float(state["record"]) if "record" in state else -np.inf
        names = [name for name in state if name.startswith(BEST)]
        self.best = {name.removeprefix(BEST): state[name] for name in names}


class Memory(Collector):
    """The last steps of the crew, of which each round trains on some.

    Parameters
    ----------
    crew, rows, random_state
        As for ``Collector``.
    steps
        Steps of every copy in a round.
    size
        Steps that are remembered.
    explore, ramp
        Chance of a random action in the end, and the share of the training in which it falls to
        that from 1.
    trials
        Episodes of a trial; every fifth round of the second half is tried, and the weights of the
        best trial are kept. 0: the last weights are.
    ahead
        Steps whose rewards are summed.
    loss
        What keeps the best trial.
    """

    def __init__(
        self,
        crew: Crew,
        rows: Experience,
        random_state: int,
        *,
        steps: int,
        size: int,
        explore: float,
        ramp: float,
        trials: int,
        ahead: int,
        loss: QLoss,
    ) -> None:
        super().__init__(crew, rows, random_state)
        self.trials, self.loss, self.ahead = trials, loss, ahead
        self.waiting: list[deque[Any]] = [deque() for _ in crew.worlds]  # for what they will pay
        self.steps, self.size, self.explore, self.ramp = steps, size, explore, ramp
        width = rows.shape[0]
        self.kept: dict[str, np.ndarray] = {
            "state": np.zeros((size, width), np.float32),
            "after": np.zeros((size, width), np.float32),
            "action": np.zeros(size, np.int64),
            "reward": np.zeros(size, np.float32),
            "goes_on": np.zeros(size, np.float32),
        }
        self.done = 0

    def collect(self, net: Any, random: np.random.Generator, progress: float) -> None:
        """Act, remember, and draw the rows of the round from all that is remembered."""
        chance = max(self.explore, 1 - (1 - self.explore) * progress / max(self.ramp, 1e-9))
        for _ in range(self.steps):
            self._step(net, random, chance)
        while not self.done:  # all of them wait for what they will pay
            self._step(net, random, chance)
        drawn = random.integers(min(self.done, self.size), size=len(self.rows))
        self.rows.parts = {name: torch.from_numpy(v[drawn]) for name, v in self.kept.items()}

    def on_epoch_end(self, state: TrainState) -> None:
        """Write the mean return; try the network, and keep it if it is the best so far."""
        super().on_epoch_end(state)
        done = len(state.history)
        if self.trials and 2 * done >= state.epochs and (state.epochs - done) % TRIED == 0:
            found = self._tried(state.net)
            state.history[-1]["trial"] = found
            if found >= self.loss.record:  # of equals the last, whose rate was lowest
                self.loss.record = found
                self.loss.best = {k: v.clone() for k, v in state.net.state_dict().items()}

    def on_fit_end(self, state: TrainState) -> None:
        """Go back to the best weights."""
        if self.loss.best:
            state.net.load_state_dict(self.loss.best)

    @torch.no_grad()
    def _tried(self, net: Any) -> float:
        """Return the mean return of episodes played greedily side by side."""
        world, width = self.crew.worlds[0], self.rows.shape[0]
        crew = Crew(world, self.trials, derive(self.random_state, 1), self.crew.owner)
        totals, going = np.zeros(self.trials), np.ones(self.trials, dtype=bool)
        device = next(net.parameters()).device
        for _ in range(LONGEST):
            scores = net(as_numbers(crew.states, width).to(device))
            _, rewards, ended, cut = crew.step(scores.argmax(dim=1).cpu().numpy())
            totals += going * rewards  # of first episodes; some copies are in a second one
            going &= ~(ended | cut)
            if not going.any():
                break
        return float(totals.mean())

    def _step(self, net: Any, random: np.random.Generator, chance: float) -> None:
        width, copies = self.rows.shape[0], len(self.crew.worlds)
        states = as_numbers(self.crew.states, width)
        weight = next(net.parameters())
        actions = net(states.to(weight.device)).argmax(dim=1).cpu().numpy()
        drawn = random.integers(int(self.crew.worlds[0].action_space.n), size=copies)
        actions = np.where(random.random(copies) < chance, drawn, actions)
        after, rewards, ended, cut = self.crew.step(actions)
        numbers = states.numpy(), as_numbers(after, width).numpy()
        for i, waiting in enumerate(self.waiting):
            waiting.append((numbers[0][i], actions[i], rewards[i]))
            over = ended[i] or cut[i]
            while waiting and (over or len(waiting) == self.ahead):
                self._remember(waiting, numbers[1][i], ends=bool(ended[i]))
                waiting.popleft()

    def _remember(self, waiting: Sequence[Any], after: np.ndarray, *, ends: bool) -> None:
        """Write the first step that waits, with what the others paid since and where they led."""
        (state, action, _), n, g = waiting[0], len(waiting), self.loss.discount
        paid = sum(g**k * reward for k, (_, _, reward) in enumerate(waiting))
        new = {"state": state, "after": after, "action": action, "reward": paid}
        for name, value in {**new, "goes_on": 0 if ends else g ** (n - 1)}.items():
            self.kept[name][self.done % self.size] = value
        self.done += 1


@dataclass(kw_only=True, eq=False, repr=False)
class DQN(Agent):
    """A network of what each action is worth in each state, learnt by acting.

    As ``QLearning``, for states that are vectors. Steps are remembered and learnt from many times,
    and an older copy of the network says what comes next is worth, without which the values run
    away. Needs fewer steps of the world than ``PolicyGradient``, and more care.

    Parameters
    ----------
    updates
        Training steps of a round.
    memory
        Steps of the world that are remembered.
    renew
        Training steps after which the older copy is renewed.
    blend
        Share of the new weights in a renewed copy; 1 replaces it, little of it with ``renew=1``
        lets it follow slowly.
    explore
        Chance of a random action in the end.
    ramp
        Share of the rounds in which that chance falls from 1.
    double
        Whether the new network chooses the action that the old one values.
    ahead
        Steps whose rewards are summed before the older copy says what the rest is worth. Several
        tell an action sooner what it leads to; they are those of the agent of that time.
    trials
        Greedy episodes after every fifth round of the second half; the weights of the best of these
        trials are kept. 0 keeps the last weights: where training ends is a matter of luck then.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.control.OnlineAndTarget``.
    history_ : list of dict
        Loss and mean return of every round.
    returns_ : ndarray (E,)
        Sum of rewards of each episode of the training.
    steps_ : ndarray (E,)
        Steps of the world at the end of each.

    Shapes
    ------
    ``fit`` takes a world.  ``predict``: states (n, D), or (n,) numbers of states.

    Notes
    -----
    A resumed training has its network, its optimizer and its best trial back, and an empty memory.

    References
    ----------
    2015, Mnih et al., Human-level control through deep reinforcement learning, Nature 518. 2016,
    van Hasselt, Guez, Silver, Deep reinforcement learning with double Q-learning, arXiv 1509.06461.

    See Also
    --------
    QLearning : a table, where states can be counted.
    PolicyGradient : learns what to do, not what it is worth.

    Examples
    --------
    >>> from castalia.models.control import DQN, GridWorld
    >>> agent = DQN(epochs=15, steps=16, copies=4, updates=30, hidden=(16,), batch_size=32,
    ...             lr=1e-2, random_state=0)
    >>> agent.fit(GridWorld(["S.", "HG"])).predict([0, 1]).tolist()  # right, then down
    [1, 2]
    """

    batch_size: Annotated[int, Interval(1, whole=True)] = 64
    copies: Annotated[int, Interval(1, whole=True)] = 1
    steps: Annotated[int, Interval(1, whole=True)] = 256
    updates: Annotated[int, Interval(1, whole=True)] = 128
    memory: Annotated[int, Interval(1, whole=True)] = 50_000
    renew: Annotated[int, Interval(1, whole=True)] = 100
    blend: Annotated[float, Interval(0, 1, closed="right")] = 1.0
    explore: Annotated[float, Interval(0, 1)] = 0.04
    ramp: Annotated[float, Interval(0, 1)] = 0.16
    double: Annotated[bool, OneOf(True, False)] = True
    ahead: Annotated[int, Interval(1, whole=True)] = 1
    trials: Annotated[int, Interval(0, whole=True)] = 0

    def _network(self, spec: Spec) -> OnlineAndTarget:
        return OnlineAndTarget(spec.inputs, spec.outputs, hidden=self.hidden)

    def _loss(self) -> QLoss:
        return QLoss(self.discount, double=self.double, renew=self.renew, blend=self.blend)

    def _rows(self) -> int:
        return self.updates * self.batch_size

    def _collector(self, crew: Crew, rows: Experience, seed: int, loss: Any) -> Memory:
        return Memory(
            crew,
            rows,
            seed,
            steps=self.steps,
            size=self.memory,
            explore=self.explore,
            ramp=self.ramp,
            trials=self.trials,
            ahead=self.ahead,
            loss=loss,
        )

    def _scores(self, x: Tensor) -> Tensor:
        return self.module_(x)
