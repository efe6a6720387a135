"""One step of a recurrent graph network whose repetition comes to rest.

h'_v = sum_{u in N(v)} a^_vu tanh(W h_u + U x_v + V x_u + E e_uv + b), A^ = D^-1/2 A D^-1/2.
As |A^| <= 1 and tanh is no steeper than 1, distances shrink at least by |W|: with |W| <= q < 1 the
step is a contraction, so it has one fixed point, reached from any start (Banach).
Shapes: N nodes, E edges, D features, F states.
Reference: 2009, Scarselli, Gori, Tsoi, Hagenbuchner, Monfardini, The graph neural network model,
IEEE TNN 20.
"""

import torch
from torch import Tensor, nn

from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.edge_messages import edge_map, edge_terms
from castalia.nn.graph.sparse_products import edge_sources, edge_targets, target_sum

__all__ = ["GraphRecurrence"]


class GraphRecurrence(nn.Module):
    """Message step over nodes' states.

    Parameters
    ----------
    inputs
        Width of the features.
    dim
        Width of the states.
    contraction
        Largest allowed norm q of W where it is enforced; None: W is used as it is.
    edges
        Width of the features of edges.
    """

    def __init__(
        self, inputs: int, dim: int, *, contraction: float | None = 0.9, edges: int = 0
    ) -> None:
        super().__init__()
        self.contraction = contraction
        self.state = nn.Parameter(torch.empty(dim, dim))  # W
        self.target = nn.Linear(inputs, dim)  # U, b
        self.source = nn.Linear(inputs, dim, bias=False)  # V
        self.edge = edge_map(edges, dim)  # E
        nn.init.orthogonal_(self.state, gain=0.5)

    def matrix(self) -> Tensor:
        """Return W, shrunk where its norm exceeds the allowed one, (F, F)."""
        if self.contraction is None:
            return self.state
        norm = torch.linalg.matrix_norm(self.state, 2)
        return self.state * (self.contraction / norm.clamp_min(self.contraction))

    def forward(self, h: Tensor, x: Tensor, adjacency: Adjacency) -> Tensor:  # (N, F), (N, D)
        """Return the next states."""
        edge = edge_terms(self.edge, adjacency)
        return self.step(h, self.matrix(), self.target(x), self.source(x), adjacency, edge)

    @staticmethod
    def step(
        h: Tensor,
        w: Tensor,
        own: Tensor,
        near: Tensor,
        adjacency: Adjacency,
        edge: Tensor | None = None,
    ) -> Tensor:
        """Return the next states, (N, F), from U x + b and V x, (N, F), and E e, (E, F)."""
        edges = adjacency.normalised(loops=False)
        sent = edge_sources(edges, h @ w.T + near) + edge_targets(edges, own)  # (E, F)
        sent = sent if edge is None else sent + edge
        return target_sum(edges, edges.factors(h.dtype)[:, None] * torch.tanh(sent))
