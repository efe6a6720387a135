"""Cells that make the state of a node of what stands there and of its children's states.

plain       h = tanh(U x + sum_k W_k h_k + b)
Tree-LSTM   i, o = sigmoid(U x + sum_k W_k h_k + b)   u = tanh(U x + sum_k W_k h_k + b)
            f_k = sigmoid(U x + sum_l W_kl h_l + b)   c = i u + sum_k f_k c_k   h = o tanh(c)

Where the order of children does not count, all W_k are one, and f_k sees child k only.
Shapes: m nodes, A children, I inputs, H hidden.
References: 1996, Goller, Küchler, Learning task-dependent distributed representations by
backpropagation through structure; 2015, Tai, Socher, Manning, Improved semantic representations
from tree-structured long short-term memory networks, arXiv 1503.00075.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["TreeCell", "TreeLSTMCell"]

States = tuple[Tensor, ...]


class TreeCell(nn.Module):
    """Plain composition.

    Parameters
    ----------
    inputs, hidden
        Widths of what stands at a node, and of its state.
    arity
        Children of a node at most, where their order counts; None: it does not.

    Examples
    --------
    >>> cell = TreeCell(3, 4, arity=2)
    >>> cell(cell.lift(torch.ones(5, 3)), (torch.zeros(5, 2, 4),))[0].shape
    torch.Size([5, 4])
    """

    gates = 1  # parts of width H that the input and all children together give
    parts = 1  # of a state

    def __init__(self, inputs: int, hidden: int, arity: int | None = None) -> None:
        super().__init__()
        self.hidden, self.arity = hidden, arity
        self.lift = nn.Linear(inputs, self._lifted() * hidden)
        wide = hidden * (arity or 1)
        self.merge = nn.Linear(wide, self._merged() * hidden, bias=False)

    def _lifted(self) -> int:
        return self.gates

    def _merged(self) -> int:
        return self.gates

    def merged(self, h: Tensor) -> Tensor:
        """Return what the children give together, from (m, A, H)."""
        return self.merge(h.flatten(1) if self.arity else h.sum(dim=1))

    def forward(self, lifted: Tensor, below: States | None = None) -> States:
        """Return the states of nodes, parts of (m, H).

        Parameters
        ----------
        lifted
            ``lift`` of what stands at each.
        below
            States of their children, parts of (m, A, H), zero for none; None: they are leaves.
        """
        return (torch.tanh(lifted if below is None else lifted + self.merged(below[0])),)


class TreeLSTMCell(TreeCell):
    """Tree-LSTM: each child has a forget gate of its own.

    Examples
    --------
    >>> cell = TreeLSTMCell(3, 4)
    >>> [part.shape for part in cell(cell.lift(torch.ones(5, 3)))]
    [torch.Size([5, 4]), torch.Size([5, 4])]
    """

    gates = 3
    parts = 2

    def __init__(self, inputs: int, hidden: int, arity: int | None = None) -> None:
        super().__init__(inputs, hidden, arity)
        self.forget = None if arity else nn.Linear(hidden, hidden, bias=False)
        nn.init.ones_(self.lift.bias.data[3 * hidden :])  # remember first

    def _lifted(self) -> int:
        return self.gates + 1

    def _merged(self) -> int:
        return self.gates + (self.arity or 0)

    def forward(self, lifted: Tensor, below: States | None = None) -> States:
        """Return h and c of nodes."""
        gates, keep = lifted.split([3 * self.hidden, self.hidden], dim=1)
        carried: Tensor | float = 0.0
        if below is not None:
            h, c = below
            merged = self.merged(h)
            gates = gates + merged[:, : 3 * self.hidden]
            seen = (
                merged[:, 3 * self.hidden :].unflatten(1, (-1, self.hidden))
                if self.forget is None
                else self.forget(h)
            )  # (m, A, H)
            carried = (torch.sigmoid(keep[:, None] + seen) * c).sum(dim=1)
        i, o, u = gates.chunk(3, dim=1)
        c = torch.sigmoid(i) * torch.tanh(u) + carried
        return torch.sigmoid(o) * torch.tanh(c), c
