"""Messages that know their edge: sum over u in N(v) of a_uv relu(h_u + W_e e_uv).

Without features of edges a message is h_u and all of them one sparse product; with them each edge
has a message of its own.
Shapes: N nodes, E edges, F states, K features of an edge.
Reference: 2020, Hu et al., Strategies for pre-training graph neural networks, arXiv 1905.12265.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidData
from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.sparse_products import edge_sources, target_sum

__all__ = ["edge_map", "edge_terms", "neighbour_sum"]


def edge_map(edges: int, outputs: int) -> nn.Linear | None:
    """Return the map W_e of features of edges, or None where they have none."""
    return nn.Linear(edges, outputs, bias=False) if edges else None


def edge_terms(edge: nn.Module | None, adjacency: Adjacency) -> Tensor | None:
    """Return what the features of each edge add to its message, (E, F)."""
    if edge is None:
        return None
    if adjacency.edge_x is None:
        raise InvalidData(
            "Adjacency: a layer made for features of edges needs them; got a graph without. Give "
            "`edge_x`."
        )
    found: Tensor = edge(adjacency.edge_x)
    return found


def neighbour_sum(
    adjacency: Adjacency, h: Tensor, edge: nn.Module | None = None
) -> Tensor:  # (N, F)
    """Return the weighted sum of the messages of each node's neighbours, (N, F)."""
    terms = edge_terms(edge, adjacency)
    if terms is None:
        return adjacency @ h
    sent = F.relu(edge_sources(adjacency, h) + terms)  # (E, F)
    return target_sum(adjacency, adjacency.factors(h.dtype)[:, None] * sent)
