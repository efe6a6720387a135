"""NN4G's convolution: a node's own features, and the states of its neighbours in all layers before.

H_i = s(Wbar_i X + sum_{j < i} W_ij H_j A), nodes as columns; here nodes are rows, so A H_j W_ij.
Shapes: N nodes, D features, F states.
Reference: 2009, Micheli, Neural network for graphs: a contextual constructive approach, IEEE
TNN 20.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.edge_messages import edge_map, neighbour_sum

__all__ = ["NN4GConv"]


class NN4GConv(nn.Module):
    """One layer of NN4G, before its activation.

    Parameters
    ----------
    inputs
        Width of the features.
    before
        Widths of the states of the layers before it; none: the first layer.
    outputs
        Width of its own states.
    edges
        Width of the features of edges, which then make their messages (`neighbour_sum`).
    """

    def __init__(self, inputs: int, before: Sequence[int], outputs: int, *, edges: int = 0) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, outputs)  # Wbar
        self.near = nn.ModuleList(nn.Linear(width, outputs, bias=False) for width in before)
        self.edge = edge_map(edges, outputs) if before else None

    def forward(self, x: Tensor, states: Sequence[Tensor], adjacency: Adjacency) -> Tensor:
        """Return the states before their activation."""
        found: Tensor = self.own(x)  # (N, F)
        if not self.near:
            return found
        weights: list[Any] = [near.weight for near in self.near]
        weight = torch.cat(weights, dim=1)  # (F, all states)
        sent = torch.cat(list(states), dim=1) @ weight.T
        return found + neighbour_sum(adjacency, sent, self.edge)
