"""Graph isomorphism convolution: h'_v = MLP((1 + eps) h_v + sum_{u in N(v)} h_u).

Sums tell multisets of neighbours apart that means and maxima cannot; with them the network is as
strong as the Weisfeiler–Lehman test. Shapes: N nodes, D inputs, O outputs.
Reference: 2019, Xu, Hu, Leskovec, Jegelka, How powerful are graph neural networks?, arXiv
1810.00826.
"""

import torch
from torch import Tensor, nn

from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.edge_messages import neighbour_sum

__all__ = ["GINConv"]


class GINConv(nn.Module):
    """Sum of a node and its neighbours, then any network.

    Parameters
    ----------
    mlp
        What the sums go through, (N, D) to (N, O).
    edge
        From features of edges to the width of the inputs, (E, K) to (E, D); None: they have none.
    """

    def __init__(self, mlp: nn.Module, *, edge: nn.Module | None = None) -> None:
        super().__init__()
        self.mlp, self.edge = mlp, edge
        self.eps = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the mixed features."""
        found: Tensor = self.mlp((1 + self.eps) * x + neighbour_sum(adjacency, x, self.edge))
        return found  # (N, O)
