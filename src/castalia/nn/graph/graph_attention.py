"""Graph attention: neighbours are mixed by weights that depend on both ends of an edge.

e_vu = LeakyReLU(a_1 . W h_v + a_2 . W h_u),  alpha_v = softmax over u in N(v) and v itself,
h'_v = sum_u alpha_vu W h_u, in several heads side by side.
Shapes: N nodes, E edges, D inputs, H heads, O outputs of a head.
Reference: 2018, Veličković et al., Graph attention networks, arXiv 1710.10903.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.edge_messages import edge_map, edge_terms
from castalia.nn.graph.sparse_features import SparseFeatures
from castalia.nn.graph.sparse_products import (
    edge_sources,
    edge_targets,
    target_sum,
    weighted_product,
)

__all__ = ["GATConv", "edge_softmax"]


def edge_softmax(adjacency: Adjacency, scores: Tensor) -> Tensor:  # (E, H)
    """Return the softmax over the edges that end in the same node, (E, H).

    >>> edges = Adjacency.of(torch.tensor([[0, 1, 0], [1, 1, 0]]), 2)
    >>> edge_softmax(edges, torch.zeros(3, 1)).flatten()
    tensor([1.0000, 0.5000, 0.5000])
    """
    most = torch.segment_reduce(scores.detach().contiguous(), "max", offsets=adjacency.offsets)
    shifted = (scores - most[adjacency.target]).exp()
    return shifted / edge_targets(adjacency, target_sum(adjacency, shifted))


class GATConv(nn.Module):
    """Attention over each node's neighbours and itself.

    Parameters
    ----------
    inputs, outputs
        Width of the inputs, and of a head's outputs.
    heads
        Attention heads side by side.
    join
        ``"concat"`` puts the heads side by side, ``"mean"`` averages them.
    dropout
        Probability that a weight of attention is set to zero in training.
    message_dropout
        Probability that a number which is passed on is set to zero in training.
    slope
        Of the negative part of LeakyReLU.
    edges
        Width of the features of edges, which then have a part in the scores.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        heads: int = 1,
        join: str = "concat",
        dropout: float = 0.0,
        message_dropout: float = 0.0,
        slope: float = 0.2,
        edges: int = 0,
    ) -> None:
        super().__init__()
        self.message_dropout = message_dropout
        self.heads, self.join, self.dropout, self.slope = heads, join, dropout, slope
        self.weight = nn.Parameter(torch.empty(inputs, heads * outputs))
        self.target_score = nn.Parameter(torch.empty(heads, outputs))  # a_1
        self.source_score = nn.Parameter(torch.empty(heads, outputs))  # a_2
        self.bias = nn.Parameter(torch.zeros(heads * outputs if join == "concat" else outputs))
        self.edge = edge_map(edges, heads * outputs)
        if self.edge is not None:
            self.edge_score = nn.Parameter(torch.empty(heads, outputs))  # a_3
            nn.init.xavier_uniform_(self.edge_score)
        for parameter in (self.weight, self.target_score, self.source_score):
            nn.init.xavier_uniform_(parameter)

    def attention(self, h: Tensor, adjacency: Adjacency) -> Tensor:  # (N, H, O)
        """Return the weights of the edges, (E, H); those into a node sum to one."""
        source = edge_sources(adjacency, (h * self.source_score).sum(dim=2))
        target = edge_targets(adjacency, (h * self.target_score).sum(dim=2))
        scores = source + target
        terms = edge_terms(self.edge, adjacency)
        if terms is not None:
            scores = scores + (terms.unflatten(1, (self.heads, -1)) * self.edge_score).sum(dim=2)
        return edge_softmax(adjacency, F.leaky_relu(scores, self.slope))

    def forward(self, x: Tensor | SparseFeatures, adjacency: Adjacency) -> Tensor:  # (N, D)
        """Return the mixed features of all heads."""
        edges = adjacency.with_loops()
        h = (x @ self.weight).unflatten(1, (self.heads, -1))  # (N, H, O)
        alpha = F.dropout(self.attention(h, edges), self.dropout, self.training)
        if edges.mask is not None:
            alpha = alpha * edges.mask[:, None].to(alpha.dtype)
        h = F.dropout(h, self.message_dropout, self.training)
        found = torch.stack(
            [
                weighted_product(edges, a, part)
                for a, part in zip(alpha.T, h.unbind(1), strict=True)
            ],
            dim=1,
        )  # (N, H, O)
        joined = found.flatten(1) if self.join == "concat" else found.mean(dim=1)
        return joined + self.bias  # (N, H O), or (N, O)
