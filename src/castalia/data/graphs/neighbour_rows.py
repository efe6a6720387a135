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
            border = found[-1][0].unique()
            reached = torch.cat([reached, border])
        nodes, place = reached.unique(return_inverse=True)
        pairs = torch.searchsorted(nodes, torch.cat(found, dim=1))
        keys = (pairs[0] * len(nodes) + pairs[1]).unique()  # an edge may be drawn at two hops
        part = Adjacency.of(
            torch.stack([keys // len(nodes), keys % len(nodes)]), len(nodes), symmetric=False
        )
        return PackedGraph(self.graph.x[nodes], part, place[: len(rows)])

    def to(self, device: Any) -> NeighbourRows:
        """Return the same rows on a device, where they are sampled then."""
        return NeighbourRows(self.graph.to(device), self.index.to(device), self.neighbours)


def sampled_edges(adjacency: Adjacency, nodes: Tensor, count: int) -> Tensor:
    """Return at most ``count`` of the edges into each of these nodes, (2, edges): source, target.

    Examples
    --------
    >>> star = Adjacency.of(torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]]), 5)
    >>> sampled_edges(star, torch.tensor([0]), 2).shape
    torch.Size([2, 2])
    """
    first = adjacency.pointer[nodes]
    degree = adjacency.pointer[nodes + 1] - first
    drawn = torch.rand(len(nodes), 1, device=nodes.device, dtype=torch.float64)
    step = (degree / count).clamp_min(1)[:, None]
    place = ((torch.arange(count, device=nodes.device) + drawn) * step).long()  # (B, k)
    few = degree[:, None] <= count  # take them all
    place = torch.where(few, torch.arange(count, device=nodes.device), place)
    real = place < degree[:, None]
    chosen = (first[:, None] + place)[real]
    target = nodes[:, None].expand_as(real)[real]
    return torch.stack([adjacency.source[chosen], target])
