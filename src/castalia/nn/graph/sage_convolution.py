"""GraphSAGE's convolution: h'_v = W_1 h_v + W_2 mean_{u in N(v)} h_u + b.

Shapes: N nodes, D inputs, O outputs.
Reference: 2017, Hamilton, Ying, Leskovec, Inductive representation learning on large graphs,
arXiv 1706.02216.
"""

from torch import Tensor, nn

from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.edge_messages import edge_map, neighbour_sum
from castalia.nn.graph.sparse_features import SparseFeatures, linear

__all__ = ["SAGEConv"]


class SAGEConv(nn.Module):
    """A node beside the mean of its neighbours, each with weights of its own.

    Parameters
    ----------
    inputs, outputs
        Widths.
    edges
        Width of the features of edges, which then make their messages (`neighbour_sum`).
    """

    def __init__(self, inputs: int, outputs: int, *, edges: int = 0) -> None:
        super().__init__()
        self.own = nn.Linear(inputs, outputs)
        self.near = nn.Linear(inputs, outputs, bias=False)
        self.edge = edge_map(edges, outputs)

    def forward(self, x: Tensor | SparseFeatures, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the mixed features."""
        mean = adjacency.averaged()
        if self.edge is not None:
            return linear(self.own, x) + neighbour_sum(mean, linear(self.near, x), self.edge)
        known = mean.mixed(x)
        if known is not None:
            return linear(self.own, x) + linear(self.near, known)
        narrow = self.near.in_features <= self.near.out_features
        if isinstance(x, Tensor) and narrow:  # the narrower side is mixed
            return linear(self.own, x) + linear(self.near, mean @ x)
        return linear(self.own, x) + mean @ linear(self.near, x)  # (N, O)
