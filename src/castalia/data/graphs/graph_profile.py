"""What a graph is like, before anything is learnt from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from castalia.data.graphs.graph import Graph

__all__ = ["GraphProfile", "graph_profile"]


@dataclass(frozen=True)
class GraphProfile:
    """Counts of a graph.

    Attributes
    ----------
    nodes, edges, components, isolated, loops
        How many there are; nodes without an edge are isolated.
    degree_median, degree_largest
        Of edges of a node.
    repeated
        Edges that were given more than once.
    homophily
        Share of edges between nodes of the same class, where both are known; None: no classes.
    expected
        That share if classes did not matter.
    twins
        Nodes with the same features and neighbours as another: answers leak between them.
    """

    nodes: int
    edges: int
    components: int
    isolated: int
    loops: int
    degree_median: float
    degree_largest: int
    repeated: int
    homophily: float | None
    expected: float | None
    twins: int


def graph_profile(graph: Graph) -> GraphProfile:
    """Count what matters about a graph.

    Examples
    --------
    >>> profile = graph_profile(Graph([(0, 1), (1, 2), (3, 4)], y=["a", "a", "b", "b", "b"]))
    >>> profile.components, profile.isolated, round(profile.homophily, 2)
    (2, 0, 0.67)
    """
    degrees = graph.degrees
    same, expected = _homophily(graph)
    return GraphProfile(
        len(graph),
        len(graph.edges),
        int(connected_components(graph.scipy(), directed=False)[0]),
        int((degrees == 0).sum()),
        int((graph.edges[:, 0] == graph.edges[:, 1]).sum()),
        float(np.median(degrees)),
        int(degrees.max()),
        graph.repeated,
        same,
        expected,
        _twins(graph),
    )


def _homophily(graph: Graph) -> tuple[float | None, float | None]:
    if graph.y is None or graph.y.ndim > 1 or graph.y.dtype.kind == "f":
        return None, None
    known = np.array([v is not None and v == v and v != -1 for v in graph.y.tolist()])
    ends = graph.edges[known[graph.edges].all(axis=1)]
    if not len(ends):
        return None, None
    _, counts = np.unique(graph.y[known].astype(str), return_counts=True)
    labels = graph.y.astype(str)[ends]
    return float((labels[:, 0] == labels[:, 1]).mean()), float(((counts / counts.sum()) ** 2).sum())


def _twins(graph: Graph) -> int:
    if graph.x is None or not isinstance(graph.x, np.ndarray):
        return 0
    near = graph.adjacency
    lists = np.split(near.source.numpy(), near.pointer[1:-1].numpy())
    marks = [(x.tobytes(), np.sort(n).tobytes()) for x, n in zip(graph.x, lists, strict=True)]
    return len(marks) - len(set(marks))
