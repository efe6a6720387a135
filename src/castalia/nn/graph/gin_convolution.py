"""Graph isomorphism convolution: h'_v = MLP((1 + eps) h_v + sum_{u in N(v)} h_u).

Sums tell multisets of neighbours apart that means and maxima cannot; with them the network is as
strong as the Weisfeiler–Lehman test. Shapes: N nodes, D inputs, O outputs.
Reference: 2019, Xu, Hu, Leskovec, Jegelka, How powerful are graph neural networks?, arXiv
1810.00826.
"""

import torch
from torch import Tensor, nn

from castalia.nn.graph.adjacency import Adjacency

__all__ = ["GINConv"]


class GINConv(nn.Module):
    """Sum of a node and its neighbours, then any network.

    Parameters
    ----------
    mlp
        What the sums go through, (N, D) to (N, O).
    """

    def __init__(self, mlp: nn.Module) -> None:
        super().__init__()
        self.mlp = mlp
        self.eps = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the mixed features."""
        found: Tensor = self.mlp((1 + self.eps) * x + adjacency @ x)
        return found  # (N, O)
