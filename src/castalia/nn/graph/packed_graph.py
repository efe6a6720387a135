"""What a graph network is given: nodes, edges, and which of them are asked for.

Shapes: N nodes, D features, B rows of the batch (nodes, pairs or graphs).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from castalia.nn.graph.adjacency import Adjacency
from castalia.nn.graph.sparse_features import SparseFeatures

__all__ = ["PackedGraph"]


@dataclass(frozen=True, eq=False)
class PackedGraph:
    """One graph, or several side by side as one block-diagonal graph.

    Attributes
    ----------
    x
        Features of the nodes, (N, D), dense or sparse.
    adjacency
        The edges.
    rows
        Nodes that are asked for, (B,), or pairs of them, (B, 2); None: whole graphs.
    starts
        Where the nodes of each graph begin, (B + 1,); None: one graph.
    """

    x: Tensor | SparseFeatures
    adjacency: Adjacency
    rows: Tensor | None = None
    starts: Tensor | None = None

    def __len__(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        return len(self.x) if self.starts is None else len(self.starts) - 1

    def to(self, device: Any) -> PackedGraph:
        """Return the same graph on a device."""
        if self.x.device == device:
            return self
        rows, starts = (
            None if part is None else part.to(device) for part in (self.rows, self.starts)
        )
        return PackedGraph(self.x.to(device), self.adjacency.to(device), rows, starts)

    def asking(self, rows: Tensor) -> PackedGraph:
        """Return the same graph, with other nodes or pairs asked for."""
        return replace(self, rows=rows)
