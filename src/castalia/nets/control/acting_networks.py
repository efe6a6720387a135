"""Networks of agents, each of two perceptrons.

Actor and critic: logits of pi(a | s), and V(s).  Online and target: Q(s, a), and an older copy of
it that says what the next state is worth.  Shapes: B batch, D numbers of a state, A actions.
References: 2015, Mnih et al., Human-level control through deep reinforcement learning, Nature 518.
2016, Mnih et al., Asynchronous methods for deep reinforcement learning, arXiv 1602.01783.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.nets.dense import MLP

__all__ = ["ActorCritic", "OnlineAndTarget"]


class ActorCritic(nn.Module):
    """A policy and the value of states under it.

    Parameters
    ----------
    inputs, outputs
        D and A.
    hidden
        Widths of the hidden layers of either.

    Examples
    --------
    >>> logits, value = ActorCritic(4, 2)(torch.zeros(3, 4))
    >>> logits.shape, value.shape
    (torch.Size([3, 2]), torch.Size([3]))
    """

    def __init__(self, inputs: int, outputs: int, *, hidden: Sequence[int] = (64, 64)) -> None:
        super().__init__()
        self.actor = MLP(inputs, outputs, hidden=hidden, activation="tanh")
        self.critic = MLP(inputs, 1, hidden=hidden, activation="tanh")
        last = [m for m in self.actor.modules() if isinstance(m, nn.Linear)][-1]
        last.weight.data.mul_(0.01)  # all actions are tried alike at first

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # (B, D)
        """Return logits (B, A) and values (B,)."""
        return self.actor(x), self.critic(x)[:, 0]


class OnlineAndTarget(nn.Module):
    """What actions are worth, and what they were worth when ``renew`` was last called.

    Parameters
    ----------
    inputs, outputs
        D and A.
    hidden
        Widths of the hidden layers.

    Examples
    --------
    >>> net = OnlineAndTarget(4, 2)
    >>> torch.equal(net(torch.ones(1, 4)), net.target(torch.ones(1, 4)))
    True
    """

    def __init__(self, inputs: int, outputs: int, *, hidden: Sequence[int] = (64, 64)) -> None:
        super().__init__()
        self.online = MLP(inputs, outputs, hidden=hidden)
        self.target = copy.deepcopy(self.online).requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:  # (B, D)
        """Return Q(s, a), (B, A)."""
        return self.online(x)

    @torch.no_grad()
    def renew(self, blend: float = 1.0) -> None:
        """Let the target be what is online now, or a blend of what it was and that."""
        for old, new in zip(self.target.parameters(), self.online.parameters(), strict=True):
            old.lerp_(new, blend)
