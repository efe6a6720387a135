"""NN4G: each layer sees the features, and its neighbours' states in all layers before.

h_1 = s(Wbar_1 x),  h_i = s(Wbar_i x + sum_{j < i} W_ij sum_{u in N(v)} h_j(u)).
Every layer has readout weights of its own; a graph's output is sum_i w_i X_i with X_i the sum, or
the mean, of layer i's states.
Shapes: N nodes, D inputs, F states, L layers, K outputs.
Reference: 2009, Micheli, Neural network for graphs: a contextual constructive approach, IEEE
TNN 20.
"""

import torch
from torch import Tensor, nn

from castalia.nn import activation as activation_layer
from castalia.nn.graph import Adjacency, NN4GConv

__all__ = ["NN4G"]


class NN4G(nn.Module):
    """Layers with connections from all layers before.

    Parameters
    ----------
    inputs
        Width of a node's features.
    outputs
        Scores of a node; None: the states of all layers side by side.
    hidden
        Width of a layer's states.
    depth
        Layers; a node sees one hop less.
    skip
        Whether a layer sees the states of all layers before it; otherwise of the last only.
    activation
        Of the states.
    edges
        Width of the features of edges.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int | None = None,
        *,
        hidden: int = 32,
        depth: int = 3,
        skip: bool = True,
        activation: str = "tanh",
        edges: int = 0,
    ) -> None:
        super().__init__()
        self.skip, self.activation = skip, activation_layer(activation)
        self.grown = depth  # layers there are by now, where they are added one by one
        seen = [i if skip else min(i, 1) for i in range(depth)]
        self.layers = nn.ModuleList(
            NN4GConv(inputs, [hidden] * count, hidden, edges=edges) for count in seen
        )
        self.width = hidden * depth if outputs is None else outputs
        self.head = None if outputs is None else nn.Linear(hidden * depth, outputs)

    def encode(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the states of all layers side by side."""
        states: list[Tensor] = []
        for layer in self.layers[: self.grown]:
            before = states if self.skip else states[-1:]
            states.append(self.activation(layer(x, before, adjacency)))
        missing = [torch.zeros_like(states[0])] * (len(self.layers) - len(states))
        return torch.cat([*states, *missing], dim=1)  # (N, L F)

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the scores of all nodes, or their states."""
        h = self.encode(x, adjacency)
        return h if self.head is None else self.head(h)  # (N, K)
