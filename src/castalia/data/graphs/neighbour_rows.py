"""Nodes with a sample of their neighbourhood, for graphs too large for a step.

Of a node with d neighbours, k < d are drawn by systematic sampling: positions u, u + d/k, u + 2 d/k
… with one random u, so each neighbour comes with probability k/d and none twice. All is done by
tensor operations where the graph is.
Shapes: N nodes, B rows, k neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from castalia.data.graphs.graph_rows import WholeGraphRows
from castalia.nn.graph import Adjacency, PackedGraph
from castalia.protocols import Rows

__all__ = ["NeighbourRows", "sampled_edges"]


class NeighbourRows(Rows):
    """Nodes of one graph, each with some of its neighbours, their neighbours, and so on.

    Parameters
    ----------
    graph
        The graph.
    index
        Nodes that are rows, (n,).
    neighbours
        How many neighbours are drawn, hop by hop.
    """

    def __init__(self, graph: PackedGraph, index: Tensor, neighbours: Sequence[int]) -> None:
        self.graph, self.index, self.neighbours = graph, index, tuple(neighbours)
        self.nbytes = WholeGraphRows(graph, index).nbytes

    def __len__(self) -> int:
        return len(self.index)

    def take(self, index: Tensor, width: int | None = None) -> PackedGraph:
        """Return a part of the graph around the nodes of these rows, drawn at random."""
        edges, rows = self.graph.adjacency, self.index.index_select(0, index)
        reached, found = rows, []
        border = rows
        for count in self.neighbours:
            found.append(sampled_edges(edges, border, count))
            border = edges.source[found[-1]].unique()
            reached = torch.cat([reached, border])
        nodes, place = reached.unique(return_inverse=True)
        chosen = torch.cat(found).unique()  # an edge may be drawn at two hops
        return PackedGraph(self.graph.x[nodes], _part(edges, nodes, chosen), place[: len(rows)])

    def to(self, device: Any) -> NeighbourRows:
        """Return the same rows on a device, where they are sampled then."""
        return NeighbourRows(self.graph.to(device), self.index.to(device), self.neighbours)


def sampled_edges(adjacency: Adjacency, nodes: Tensor, count: int) -> Tensor:
    """Return the numbers of at most ``count`` of the edges into each of these nodes.

    Examples
    --------
    >>> star = Adjacency.of(torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]]), 5)
    >>> sampled_edges(star, torch.tensor([0]), 2).shape
    torch.Size([2])
    """
    first = adjacency.pointer[nodes]
    degree = adjacency.pointer[nodes + 1] - first
    drawn = torch.rand(len(nodes), 1, device=nodes.device, dtype=torch.float64)
    step = (degree / count).clamp_min(1)[:, None]
    place = ((torch.arange(count, device=nodes.device) + drawn) * step).long()  # (B, k)
    few = degree[:, None] <= count  # take them all
    place = torch.where(few, torch.arange(count, device=nodes.device), place)
    real = place < degree[:, None]
    return (first[:, None] + place)[real]


def _part(adjacency: Adjacency, nodes: Tensor, edges: Tensor) -> Adjacency:
    """Return the matrix of some nodes and edges, both by number, ascending."""
    target = torch.searchsorted(adjacency.pointer, edges, right=True) - 1
    counts = torch.bincount(torch.searchsorted(nodes, target), minlength=len(nodes))
    return Adjacency(
        torch.cat([counts.new_zeros(1), counts.cumsum(0)]),
        torch.searchsorted(nodes, adjacency.source[edges]),
        None if adjacency.weight is None else adjacency.weight[edges],
        edge_x=None if adjacency.edge_x is None else adjacency.edge_x[edges],
    )
