"""Policy gradients: actions that went better than expected become likelier.

grad J = E A grad log pi(a | s).  A_t = sum_k (g l)^k d_{t+k},  d_t = r_t + g V(s_{t+1}) - V(s_t)
(generalised advantage); l = 1 is REINFORCE with V as its baseline.  PPO goes over the same steps
several times and minimises -E min(w A, clip(w, 1 - e, 1 + e) A), w = pi(a | s) / pi_old(a | s),
whose gradient at w = 1 is the one above.  Shapes: T steps, C copies, B batch.
References: 1992, Williams, Simple statistical gradient-following algorithms, Machine Learning 8.
2016, Mnih et al., Asynchronous methods for deep reinforcement learning, arXiv 1602.01783. 2016,
Schulman et al., High-dimensional continuous control using generalized advantage estimation, arXiv
1506.02438. 2017, Schulman et al., Proximal policy optimization algorithms, arXiv 1707.06347.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Categorical

from castalia.base import Interval, OneOf
from castalia.models.control.agent_base import Agent, Collector
from castalia.models.control.experience import Crew, Experience, as_numbers
from castalia.nets.control import ActorCritic
from castalia.objectives import Objective
from castalia.protocols import Batch, Spec

__all__ = ["PolicyGradient", "PolicyLoss", "Rollouts", "advantages"]


def advantages(
    differences: np.ndarray, goes_on: np.ndarray, discount: float, trace: float
) -> np.ndarray:
    """Return A of each step, from d, (T, C), and whether the episode goes on after it.

    Examples
    --------
    >>> advantages(np.array([[1.0], [2.0]]), np.array([[1.0], [0.0]]), 1.0, 0.5)[:, 0]
    array([2., 2.])
    """
    found = np.zeros_like(differences)
    ahead = np.zeros(differences.shape[1])
    for t in reversed(range(len(differences))):
        ahead = differences[t] + discount * trace * goes_on[t] * ahead
        found[t] = ahead
    return found


class PolicyLoss(Objective):
    """The clipped loss of the policy, the squared error of the values, and minus the entropy.

    Parameters
    ----------
    clip
        e: how far the chance of an action may move from what it was.
    value_factor, entropy
        Weights of the other two.
    """

    def __init__(self, clip: float = 0.2, value_factor: float = 0.5, entropy: float = 0.0) -> None:
        self.clip, self.value_factor, self.entropy = clip, value_factor, entropy

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the three parts and their sum."""
        step = batch.x
        logits, value = net(step["state"])
        law = Categorical(logits=logits)
        w = (law.log_prob(step["action"]) - step["log_prob"]).exp()
        gain = step["advantage"]
        near = w.clamp(1 - self.clip, 1 + self.clip)
        policy = -torch.minimum(w * gain, near * gain).mean()
        error = (value - step["wanted"]).square().mean()
        spread = law.entropy().mean()
        loss = policy + self.value_factor * error - self.entropy * spread
        return {"loss": loss, "policy": policy, "value": error, "entropy": spread}


class Rollouts(Collector):
    """Steps of the policy of the moment, with their advantages.

    Parameters
    ----------
    crew, rows, random_state, passes
        As for ``Collector``.
    steps
        T.
    discount, trace
        g and l.
    """

    def __init__(
        self,
        crew: Crew,
        rows: Experience,
        random_state: int,
        passes: int,
        *,
        steps: int,
        discount: float,
        trace: float,
    ) -> None:
        super().__init__(crew, rows, random_state, passes)
        self.steps, self.discount, self.trace = steps, discount, trace

    def collect(self, net: Any, random: np.random.Generator, progress: float) -> None:
        """Act, and say how much better each step went than expected."""
        lines = [self._step(net, random) for _ in range(self.steps)]
        found = {name: torch.stack([line[name] for line in lines]) for name in lines[0]}
        weight = next(net.parameters())
        ahead = net(found["after"].flatten(0, 1).to(weight.device))[1].cpu().view(self.steps, -1)
        value, goes_on = found.pop("value"), 1 - found.pop("ended")
        differences = found.pop("reward") + self.discount * goes_on * ahead - value
        gain = torch.from_numpy(
            advantages(
                differences.double().numpy(),
                1 - found.pop("over").numpy(),
                self.discount,
                self.trace,
            )
        ).float()
        del found["after"]
        found |= {"wanted": gain + value, "advantage": (gain - gain.mean()) / (gain.std() + 1e-8)}
        self.rows.parts = {name: part.flatten(0, 1) for name, part in found.items()}

    def _step(self, net: Any, random: np.random.Generator) -> dict[str, Tensor]:
        width, copies = self.rows.shape[0], len(self.crew.worlds)
        states = as_numbers(self.crew.states, width)
        logits, value = net(states.to(next(net.parameters()).device))
        law = torch.log_softmax(logits.double(), dim=1).cpu()
        below = law.exp().cumsum(dim=1).numpy() < random.random((copies, 1))
        actions = torch.from_numpy(np.minimum(below.sum(axis=1), law.shape[1] - 1))
        after, rewards, ended, cut = self.crew.step(actions)
        flags = {"reward": rewards, "ended": ended, "over": ended | cut}
        return {
            "state": states,
            "after": as_numbers(after, width),
            "action": actions,
            "log_prob": law.gather(1, actions[:, None])[:, 0].float(),
            "value": value.cpu(),
            **{name: torch.from_numpy(v.astype(np.float32)) for name, v in flags.items()},
        }


@dataclass(kw_only=True, eq=False, repr=False)
class PolicyGradient(Agent):
    """An agent that learns what to do, by doing more of what went better than expected.

    Parameters
    ----------
    method
        ``"ppo"``: several passes over the steps of a round, each kept near the old policy;
        ``"a2c"``: one training step a round; ``"reinforce"``: the same with advantages to the end
        of the episode, whatever ``trace``.
    hidden
        Widths of the hidden layers of actor and critic.
    trace
        l: how far ahead an advantage looks before it trusts the critic.
    repeat
        Passes over the steps of a round, of PPO.
    clip
        e: how far the chance of an action may move in a round, of PPO.
    entropy
        Weight of the entropy: larger values keep trying more.
    batch_size
        Rows of a training step, of PPO; the others take all steps of a round.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.control.ActorCritic``.
    history_ : list of dict
        Losses, entropy and mean return of every pass.
    returns_ : ndarray (E,)
        Sum of rewards of each episode of the training.
    steps_ : ndarray (E,)
        Steps of the world at the end of each.

    Shapes
    ------
    ``fit`` takes a world.  ``predict``: states (n, D), or (n,) numbers of states.

    Notes
    -----
    ``predict`` takes the likeliest action. A resumed training has its network and optimizer back;
    its worlds begin again.

    References
    ----------
    1992, Williams, Simple statistical gradient-following algorithms, Machine Learning 8. 2017,
    Schulman et al., Proximal policy optimization algorithms, arXiv 1707.06347.

    See Also
    --------
    DQN : learns from remembered steps, and needs fewer of the world.

    Examples
    --------
    >>> from castalia.models.control import GridWorld, PolicyGradient
    >>> agent = PolicyGradient(epochs=20, steps=16, hidden=(16,), lr=1e-2, random_state=0)
    >>> agent.fit(GridWorld(["S.", "HG"])).predict([0, 1]).tolist()  # right, then down
    [1, 2]
    """

    method: Annotated[str, OneOf("ppo", "a2c", "reinforce")] = "ppo"
    trace: Annotated[float, Interval(0, 1)] = 0.95
    repeat: Annotated[int, Interval(1, whole=True)] = 10
    clip: Annotated[float, Interval(0, closed="neither")] = 0.2
    entropy: Annotated[float, Interval(0)] = 0.0

    def _network(self, spec: Spec) -> ActorCritic:
        return ActorCritic(spec.inputs, spec.outputs, hidden=self.hidden)

    def _loss(self) -> PolicyLoss:
        return PolicyLoss(self.clip, entropy=self.entropy)

    def _step_rows(self) -> int:
        return self.batch_size if self.method == "ppo" else self._rows()

    def _passes(self) -> int:
        return self.repeat if self.method == "ppo" else 1

    def _collector(self, crew: Crew, rows: Experience, seed: int, loss: Any) -> Rollouts:
        return Rollouts(
            crew,
            rows,
            seed,
            self._passes(),
            steps=self.steps,
            discount=self.discount,
            trace=1.0 if self.method == "reinforce" else self.trace,
        )

    def _scores(self, x: Tensor) -> Tensor:
        return self.module_(x)[0]
