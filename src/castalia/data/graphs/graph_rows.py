"""Rows of graphs for the training loop: nodes of one graph, pairs of them, or whole graphs.

Shapes: N nodes, E edges, G graphs, B rows of a batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from castalia.nn.graph import Adjacency, PackedGraph
from castalia.protocols import Rows

__all__ = ["GraphSetRows", "WholeGraphRows", "ranges"]


class WholeGraphRows(Rows):
    """Nodes or pairs of one graph, which goes through the network as a whole.

    Parameters
    ----------
    graph
        The graph.
    index
        Nodes, (n,), or pairs of them, (n, 2).
    """

    fixed = True  # every batch has the same graph: a CUDA step can be recorded

    def __init__(self, graph: PackedGraph, index: Tensor) -> None:
        beside = graph.adjacency.beside(graph.x)  # products of what never changes are kept
        self.graph, self.index = replace(graph, adjacency=beside), index
        self.nbytes = _bytes(graph)

    def __len__(self) -> int:
        return len(self.index)

    def take(self, index: Tensor, width: int | None = None) -> PackedGraph:
        """Return the graph, asked for the nodes of these rows."""
        return self.graph.asking(self.index.index_select(0, index))

    def to(self, device: Any) -> WholeGraphRows:
        """Return the same rows on a device."""
        return WholeGraphRows(self.graph.to(device), self.index.to(device))


class GraphSetRows(Rows):
    """Graphs of any size; those of a batch are packed into one block-diagonal graph.

    Parameters
    ----------
    graphs
        All of them, packed: ``starts`` says where each begins.
    """

    def __init__(self, graphs: PackedGraph) -> None:
        self.graphs = graphs
        self.nbytes = _bytes(graphs)

    def __len__(self) -> int:
        return len(self.graphs)

    def take(self, index: Tensor, width: int | None = None) -> PackedGraph:
        """Pack the graphs of these rows."""
        edges, starts = self.graphs.adjacency, self._starts
        first, counts = starts[index], starts[index + 1] - starts[index]
        nodes = ranges(first, counts)
        begin, degree = edges.pointer[nodes], edges.pointer[nodes + 1] - edges.pointer[nodes]
        chosen = ranges(begin, degree)  # edges
        new = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        shift = (new[:-1] - first).repeat_interleave(counts, output_size=len(nodes))
        moved = shift.repeat_interleave(degree, output_size=len(chosen))
        weight = None if edges.weight is None else edges.weight[chosen]
        packed = Adjacency(
            torch.cat([degree.new_zeros(1), degree.cumsum(0)]),
            edges.source[chosen] + moved,
            weight,
            symmetric=edges.symmetric,
            blocks=new,
            edge_x=None if edges.edge_x is None else edges.edge_x[chosen],
        )
        return PackedGraph(self.graphs.x[nodes], packed, starts=new)

    @property
    def _starts(self) -> Tensor:
        starts = self.graphs.starts
        if starts is None:
            return torch.tensor([0, len(self.graphs.x)], device=self.graphs.x.device)
        return starts

    def to(self, device: Any) -> GraphSetRows:
        """Return the same graphs on a device."""
        return GraphSetRows(self.graphs.to(device))


def ranges(first: Tensor, counts: Tensor) -> Tensor:
    """Return the numbers of several ranges one after the other.

    >>> ranges(torch.tensor([5, 0]), torch.tensor([2, 3]))
    tensor([5, 6, 0, 1, 2])
    """
    ends = counts.cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    start = (first - ends + counts).repeat_interleave(counts, output_size=total)
    return start + torch.arange(total, device=first.device)


def _bytes(graph: PackedGraph) -> int:
    edges = graph.adjacency
    return graph.x.nbytes + 2 * (edges.source.nbytes + edges.pointer.nbytes) + 8 * edges.edges
