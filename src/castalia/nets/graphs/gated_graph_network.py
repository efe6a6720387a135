"""Gated graph network: features as first states of a GRU that listens to its neighbours.

Shapes: N nodes, D inputs, F states, K outputs.
Reference: 2016, Li, Tarlow, Brockschmidt, Zemel, Gated graph sequence neural networks, arXiv
1511.05493.
"""

import torch
from torch import Tensor, nn

from castalia.nn.graph import Adjacency, GatedGraphConv

__all__ = ["GatedGraphNetwork"]


class GatedGraphNetwork(nn.Module):
    """Steps of a GRU over a graph, then a dense layer on states and features.

    Parameters
    ----------
    inputs
        Width of a node's features.
    outputs
        Scores of a node; None: its states.
    hidden
        Width of the states; wider features are first mapped to it.
    depth
        Steps, and so hops that a node sees; all share their weights.
    edges
        Width of the features of edges.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int | None = None,
        *,
        hidden: int = 64,
        depth: int = 4,
        edges: int = 0,
    ) -> None:
        super().__init__()
        self.lift = nn.Linear(inputs, hidden) if inputs > hidden else nn.Identity()
        self.recurrence = GatedGraphConv(hidden, steps=depth, edges=edges)
        self.width = hidden if outputs is None else outputs
        self.head = None if outputs is None else nn.Linear(hidden + inputs, outputs)

    def encode(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the last states, (N, F)."""
        found: Tensor = self.recurrence(self.lift(x), adjacency)
        return found

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the scores of all nodes, or their states."""
        h = self.encode(x, adjacency)
        return h if self.head is None else self.head(torch.cat([h, x], dim=1))  # (N, K)
