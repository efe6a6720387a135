"""Adapters of graphs: nodes, pairs of nodes, or whole graphs as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from scipy.sparse import issparse

from castalia.data.adapter_base import Adapter
from castalia.data.batches import Samples
from castalia.data.graphs.edge_features import EdgeFeatures
from castalia.data.graphs.foreign_graphs import as_graph
from castalia.data.graphs.graph import Graph
from castalia.data.graphs.graph_rows import GraphSetRows, WholeGraphRows
from castalia.data.graphs.graph_set import Graphs
from castalia.data.graphs.graph_views import GraphNodes, GraphPairs
from castalia.data.graphs.neighbour_rows import NeighbourRows
from castalia.data.graphs.node_features import NodeFeatures
from castalia.data.row_splits import SMALLEST, holdout
from castalia.errors import InvalidData
from castalia.nn.graph import Adjacency, PackedGraph, SparseFeatures, dense_features
from castalia.protocols import Rows

__all__ = ["GraphSetAdapter", "NodeAdapter", "LinkAdapter"]


class _GraphAdapter(Adapter):
    """What adapters of graphs share: how features of nodes become numbers."""

    named = True
    directed = False

    def __init__(self, scaling: str | None = "auto") -> None:
        self.features = NodeFeatures(scaling, named=self.named)
        self.edges = EdgeFeatures(scaled=scaling is not None)
        self.fitted = False

    @property
    def inputs(self) -> int:  # type: ignore[override]
        """Width of a node's features."""
        return self.features.inputs

    @property
    def categories(self) -> tuple[int, ...]:  # type: ignore[override]
        """Sizes of the categorical columns."""
        return self.features.categories

    @property
    def extra(self) -> Mapping[str, Any]:
        """Width of the features of edges, and whether edges lead one way."""
        found = {"edges": self.edges.width, "directed": self.directed}
        return {name: value for name, value in found.items() if value}

    def _learn(self, graphs: list[Graph]) -> None:
        self.features.fit(graphs)
        self.edges.fit(graphs)
        self.directed = graphs[0].directed
        self.fitted = True

    def _checked(self, graph: Graph, owner: str) -> None:
        if self.fitted:
            self.features.check(graph, owner)
            self.edges.check(graph, owner)

    def state(self) -> dict[str, Any]:
        """Return what saving needs."""
        return {**vars(self), "features": self.features.state(), "edges": vars(self.edges)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return an adapter from its saved state."""
        made = cls()
        edges = made.edges
        vars(edges).update(state.get("edges", {}))  # models of earlier versions have none
        vars(made).update(state)
        made.features, made.edges = NodeFeatures.from_state(state["features"]), edges
        return made

    def _packed(self, graph: Graph, dtype: Any) -> PackedGraph:
        x = _tensor(self.features.encode(graph, dtype))
        return PackedGraph(x, self.edges.encode(graph, dtype))


class NodeAdapter(_GraphAdapter):
    """Nodes of one graph as rows; those without a target still pass messages.

    Parameters
    ----------
    scaling
        How features are scaled (`NodeFeatures`).
    neighbours
        Of how many neighbours a node sees in training, hop by hop; None: all, the whole graph
        goes through the network in every step.
    """

    def __init__(
        self, scaling: str | None = "auto", neighbours: Sequence[int] | None = None
    ) -> None:
        super().__init__(scaling)
        self.neighbours = None if neighbours is None else tuple(neighbours)

    def check(self, X: Any, owner: str) -> GraphNodes:
        """Return the nodes of a graph, all or those that were chosen."""
        view = X if isinstance(X, GraphNodes) else as_graph(X, owner)[:]
        self._checked(view.graph, owner)
        return GraphNodes(view.graph, view.index)

    def fit(self, X: GraphNodes, sample_weight: np.ndarray | None = None) -> Self:
        """Learn from the features of all nodes."""
        self._learn([X.graph])
        return self

    def rows(self, X: GraphNodes, dtype: Any) -> Rows:
        """Return the nodes as rows of a training."""
        graph, index = self._packed(X.graph, dtype), torch.from_numpy(X.index)
        if self.neighbours is None:
            return WholeGraphRows(graph, index)
        return NeighbourRows(graph, index, self.neighbours)

    def blocks(self, X: GraphNodes, dtype: Any) -> Iterator[PackedGraph]:
        """Yield the whole graph once, asked for all these nodes."""
        if len(X):
            yield self._packed(X.graph, dtype).asking(torch.from_numpy(X.index))


class LinkAdapter(_GraphAdapter):
    """Pairs of nodes as rows: the edges of a graph, or those that are given."""

    def check(self, X: Any, owner: str) -> GraphPairs:
        """Return pairs of nodes: those given, or all edges of a graph but loops."""
        if isinstance(X, GraphPairs):
            view = GraphPairs(X.graph, X.index)
        else:
            graph = as_graph(X, owner)
            joined = graph.edges[graph.edges[:, 0] != graph.edges[:, 1]]
            if not len(joined):
                loops = f"but {len(graph.edges):,} loops" * bool(len(graph.edges))
                raise InvalidData(
                    f"{owner}: the graph must have edges between nodes to learn from; got none"
                    f"{' ' * bool(loops)}{loops}."
                )
            view = GraphPairs(graph, joined)
        self._checked(view.graph, owner)
        return view

    def fit(self, X: GraphPairs, sample_weight: np.ndarray | None = None) -> Self:
        """Learn from the features of all nodes."""
        self._learn([X.graph])
        return self

    def rows(self, X: GraphPairs, dtype: Any) -> Rows:
        """Return the pairs as rows of a training."""
        return WholeGraphRows(self._packed(X.graph, dtype), torch.from_numpy(X.index))

    def blocks(self, X: GraphPairs, dtype: Any) -> Iterator[PackedGraph]:
        """Yield the whole graph once, asked for all these pairs."""
        if len(X):
            yield self._packed(X.graph, dtype).asking(torch.from_numpy(X.index))

    def split(
        self,
        samples: Samples,
        validation: float | Samples,
        seed: int,
        labels: np.ndarray | None = None,
    ) -> tuple[Samples, Samples]:
        """Hold pairs out, and their edges out of the graph that passes messages."""
        if isinstance(validation, Samples):
            return samples, validation
        kept, held = holdout(len(samples), validation, seed=seed, labels=labels, smallest=SMALLEST)
        if not len(held):
            return samples, samples.subset(held)
        rows: Any = samples.x
        hidden = rows.index[torch.as_tensor(held)]
        graph = PackedGraph(rows.graph.x, _without(rows.graph.adjacency, hidden))
        seen = Samples(WholeGraphRows(graph, rows.index), samples.y, samples.weight)
        return seen.subset(kept), seen.subset(held)


class GraphSetAdapter(_GraphAdapter):
    """Whole graphs as rows."""

    named = False
    nodes = 1.0  # of a graph, on average

    @property
    def extra(self) -> Mapping[str, Any]:
        """How large graphs are."""
        return {**super().extra, "nodes": self.nodes}

    def check(self, X: Any, owner: str) -> Graphs:
        """Return graphs, all described alike."""
        graphs = (
            X if isinstance(X, Graphs) else Graphs([as_graph(part, owner) for part in _many(X)])
        )
        if not len(graphs):
            raise InvalidData(f"{owner}: X must hold a graph; got none.")
        first = graphs.graphs[0]
        for number, graph in enumerate(graphs):
            self._checked(graph, owner)
            same = _described(graph) == _described(first) and graph.directed == first.directed
            if not same or graph.width != first.width:
                raise InvalidData(
                    f"{owner}: graphs must have the same features and be all directed or all not; "
                    f"graph {number} is {graph!r}, the first {first!r}."
                )
            if graph.edge_width != first.edge_width:
                raise InvalidData(
                    f"{owner}: edges of all graphs must have the same features; those of graph "
                    f"{number} have {graph.edge_width}, of the first {first.edge_width}."
                )
        return graphs

    def fit(self, X: Graphs, sample_weight: np.ndarray | None = None) -> Self:
        """Learn from the features of all nodes of all graphs."""
        self._learn(X.graphs)
        self.nodes = float(np.mean([len(graph) for graph in X]))
        return self

    def rows(self, X: Graphs, dtype: Any) -> Rows:
        """Return the graphs as rows of a training."""
        x = [dense_features(_tensor(self.features.encode(graph, dtype))) for graph in X]
        return GraphSetRows(_side_by_side(x, [self.edges.encode(graph, dtype) for graph in X]))


def _tensor(x: Any) -> torch.Tensor | SparseFeatures:
    """Return features as torch's, sparse where scipy's are."""
    if not issparse(x):
        return torch.from_numpy(x)
    pointer, columns = (torch.from_numpy(part.astype(np.int64)) for part in (x.indptr, x.indices))
    return SparseFeatures(pointer, columns, torch.from_numpy(x.data), int(x.shape[1]))


def _described(graph: Graph) -> str:
    """Say how nodes are described: not at all, by numbers, or by columns of a table."""
    if graph.x is None:
        return "not"
    return "numbers" if hasattr(graph.x, "dtype") else "table"


def _many(X: Any) -> list[Any]:
    if isinstance(X, list | tuple):
        return list(X)
    raise InvalidData(
        f"X must be `castalia.data.Graphs` or a list of graphs; got {type(X).__name__}."
    )


def _side_by_side(x: list[torch.Tensor], matrices: list[Adjacency]) -> PackedGraph:
    """Return graphs as one, whose edges join nodes of the same graph only."""
    counts = torch.tensor([len(part) for part in x])
    starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    shifted = [a.source + start for a, start in zip(matrices, starts[:-1], strict=True)]
    degree = torch.cat([a.pointer.diff() for a in matrices])
    weighted = any(a.weight is not None for a in matrices)
    weight = torch.cat([a.values(torch.float64) for a in matrices]) if weighted else None
    described = all(a.edge_x is not None for a in matrices)
    joined = Adjacency(
        torch.cat([degree.new_zeros(1), degree.cumsum(0)]),
        torch.cat(shifted),
        weight,
        symmetric=all(a.symmetric for a in matrices),
        blocks=starts,
        edge_x=torch.cat([a.edge_x for a in matrices]) if described else None,  # type: ignore[misc]
    )
    return PackedGraph(torch.cat(x), joined, starts=starts)


def _without(adjacency: Adjacency, pairs: torch.Tensor) -> Adjacency:
    """Return the matrix without the edges between these pairs, (n, 2), in either direction."""
    n = adjacency.nodes
    keys = adjacency.target * n + adjacency.source
    hidden = torch.cat([pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0]])
    kept = ~torch.isin(keys, hidden)
    edges = torch.stack([adjacency.source[kept], adjacency.target[kept]])
    parts = (adjacency.weight, adjacency.edge_x)
    weight, edge_x = (None if part is None else part[kept] for part in parts)
    return Adjacency.of(edges, n, weight, symmetric=adjacency.symmetric, edge_x=edge_x)
