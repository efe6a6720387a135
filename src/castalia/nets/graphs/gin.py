"""Graph isomorphism network: sums over neighbours through small dense networks.

h(l)_v = MLP((1 + eps) h_v + sum_u h_u); all layers' states side by side are what is read out.
Shapes: N nodes, D inputs, F states, L layers, K outputs.
Reference: 2019, Xu, Hu, Leskovec, Jegelka, How powerful are graph neural networks?, arXiv
1810.00826.
"""

import torch
from torch import Tensor, nn

from castalia.nn.graph import Adjacency, GINConv, edge_map

__all__ = ["GIN"]


class GIN(nn.Module):
    """Stack of sums and dense networks.

    Parameters
    ----------
    inputs
        Width of a node's features.
    outputs
        Scores of a node; None: the states of all layers and the features, side by side.
    hidden
        Width of the states.
    depth
        Layers, and so hops that a node sees.
    dropout
        Of the states that scores are made of.
    edges
        Width of the features of edges.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int | None = None,
        *,
        hidden: int = 64,
        depth: int = 2,
        dropout: float = 0.0,
        edges: int = 0,
    ) -> None:
        super().__init__()
        sizes = [inputs, *[hidden] * depth]
        self.layers = nn.ModuleList(
            GINConv(_mlp(a, b), edge=edge_map(edges, a))
            for a, b in zip(sizes, sizes[1:], strict=False)
        )
        states = inputs + hidden * depth
        self.width = states if outputs is None else outputs
        self.head = (
            None
            if outputs is None
            else nn.Sequential(nn.Dropout(dropout), nn.Linear(states, outputs))
        )

    def encode(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the features and all layers' states, side by side."""
        found = [x]
        for layer in self.layers:
            found.append(layer(found[-1], adjacency))
        return torch.cat(found, dim=1)  # (N, D + L F)

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the scores of all nodes, or their states."""
        h = self.encode(x, adjacency)
        return h if self.head is None else self.head(h)  # (N, K)


def _mlp(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(inputs, outputs, bias=False),  # the norm after it has one
        nn.BatchNorm1d(outputs),
        nn.ReLU(),
        nn.Linear(outputs, outputs, bias=False),
        nn.BatchNorm1d(outputs),
        nn.ReLU(),
    )
