"""Log-potentials of factors over discrete variables, as parameters.

P(x) = exp(-F(x)) / Z with -F(x) = sum_f t_f[x of its scope]; given all others, a variable's states
have the sums of the tables around it as log-odds. Shapes: B rows of state numbers, n variables, K
states of one.
Reference: 2009, Koller, Friedman, Probabilistic graphical models, chapter 20.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from castalia.nets.probabilistic.discrete_states import DiscreteStates

__all__ = ["PotentialNetwork"]


class PotentialNetwork(DiscreteStates):
    """Energy, conditionals and Gibbs steps of an undirected model whose tables are learnt.

    Parameters
    ----------
    sizes
        Number of states of each variable.
    scopes
        Variables of each factor, by number.

    Examples
    --------
    >>> net = PotentialNetwork([2, 3], [(0, 1)])
    >>> net(torch.tensor([[0, 2], [1, 1]])).tolist()  # tables begin at 0
    [0.0, 0.0]
    """

    def __init__(self, sizes: Sequence[int], scopes: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.scopes = [tuple(scope) for scope in scopes]
        shapes = [[sizes[i] for i in scope] for scope in self.scopes]
        self.tables = nn.ParameterList([nn.Parameter(torch.zeros(shape)) for shape in shapes])
        self.near = [
            [(f, scope.index(i)) for f, scope in enumerate(self.scopes) if i in scope]
            for i in range(len(sizes))
        ]

    def forward(self, x: Tensor) -> Tensor:  # (B, n)
        """Return the sum of log-potentials, (B,)."""
        states = x.long().unbind(dim=1)
        found = [
            table[tuple(states[i] for i in scope)]
            for table, scope in zip(self.tables, self.scopes, strict=True)
        ]
        return torch.stack(found).sum(dim=0)

    def log_odds(self, x: Tensor, i: int) -> Tensor:
        """Return the log-probabilities of a variable's states given the others, up to a constant.

        (B, n) to (B, K).
        """
        states = x.long().unbind(dim=1)
        parts = []
        for f, axis in self.near[i]:
            others = tuple(states[j] for j in self.scopes[f] if j != i)
            table = self.tables[f].movedim(axis, -1)
            parts.append(table[others] if others else table.expand(len(x), -1))
        return torch.stack(parts).sum(dim=0)
