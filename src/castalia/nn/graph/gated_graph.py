"""Gated graph network: a GRU at every node, fed by its neighbours' states.

a_v = sum_{u in N(v)} W h_u,  h'_v = GRU(a_v, h_v), a fixed number of times.
Shapes: N nodes, F states.
Reference: 2016, Li, Tarlow, Brockschmidt, Zemel, Gated graph sequence neural networks, arXiv
1511.05493.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.edge_messages import edge_map, neighbour_sum

__all__ = ["GatedGraphConv"]


class GatedGraphConv(nn.Module):
    """Steps of a GRU over a graph; all steps share their weights.

    Parameters
    ----------
    dim
        Width of the states; narrower inputs are filled up with zeros.
    steps
        How often states are passed on: how many hops a node sees.
    edges
        Width of the features of edges, which then make their messages (`neighbour_sum`).
    """

    def __init__(self, dim: int, *, steps: int = 4, edges: int = 0) -> None:
        super().__init__()
        self.dim, self.steps = dim, steps
        self.message = nn.Linear(dim, dim, bias=False)
        self.edge = edge_map(edges, dim)
        self.cell = nn.GRUCell(dim, dim)

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, at most F)
        """Return the last states."""
        h = F.pad(x, (0, self.dim - x.shape[1]))
        for _ in range(self.steps):
            h = self.cell(neighbour_sum(adjacency, self.message(h), self.edge), h)
        return h  # (N, F)
