"""Graph convolution of first order: h' = A^ h W + b with A^ = D^-1/2 (A + I) D^-1/2.

Shapes: N nodes, D inputs, O outputs.
Reference: 2017, Kipf, Welling, Semi-supervised classification with graph convolutional networks,
arXiv 1609.02907.
"""

import torch
from torch import Tensor, nn

from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.edge_messages import edge_map, neighbour_sum
from castalia.nn.graph.sparse_features import SparseFeatures

__all__ = ["GCNConv"]


class GCNConv(nn.Module):
    """Mean-like mix of each node with its neighbours, then a linear map.

    Parameters
    ----------
    inputs, outputs
        Widths.
    bias
        Whether b is learnt.
    edges
        Width of the features of edges, which then make their messages (`neighbour_sum`).

    Examples
    --------
    >>> edges = Adjacency.of(torch.tensor([[0, 1], [1, 0]]), 2)
    >>> GCNConv(3, 4)(torch.ones(2, 3), edges).shape
    torch.Size([2, 4])
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True, edges: int = 0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        self.edge = edge_map(edges, outputs)
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Tensor | SparseFeatures, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the mixed features."""
        mixed = adjacency.normalised()
        known = mixed.mixed(x) if self.edge is None else None
        if self.edge is not None:
            h = neighbour_sum(mixed, x @ self.weight, self.edge)
        elif known is not None:
            h = known @ self.weight
        elif isinstance(x, Tensor) and x.shape[1] <= self.weight.shape[1]:
            h = (mixed @ x) @ self.weight  # the narrower side is mixed
        else:
            h = mixed @ (x @ self.weight)
        return h if self.bias is None else h + self.bias  # (N, O)
