"""Graphs of other libraries, taken as they are: NetworkX, scipy and PyTorch Geometric."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from castalia.data.graphs.graph import Graph, from_matrix
from castalia.data.graphs.graph_views import GraphRowsView
from castalia.errors import InvalidData

__all__ = ["as_graph", "from_networkx", "from_pyg"]

LABELS = ("y", "label", "target")  # attributes of nodes that are no features


def as_graph(source: Any, owner: str = "Graph") -> Graph:
    """Return a graph of ours, NetworkX's, PyTorch Geometric's, or an adjacency matrix as ours.

    Examples
    --------
    >>> from scipy.sparse import eye_array
    >>> as_graph(eye_array(3, k=1))
    Graph(3 nodes, 2 edges, directed)
    """
    if isinstance(source, Graph):
        return source
    if isinstance(source, GraphRowsView):
        found: Graph = source.graph
        return found
    if issparse(source):
        return from_matrix(source)
    if hasattr(source, "edge_index"):
        return from_pyg(source)
    if hasattr(source, "adj") and hasattr(source, "is_directed"):
        return from_networkx(source)
    raise InvalidData(
        f"{owner}: X must be a graph (`castalia.data.Graph`, NetworkX, scipy's sparse adjacency "
        f"matrix or PyTorch Geometric's Data); got {type(source).__name__}. "
        "castalia.read(…) reads one from a file."
    )


def from_networkx(source: Any, x: Any = None) -> Graph:
    """Return a NetworkX graph as ours: numeric attributes are features, ``y`` of nodes the target.

    Parallel edges of a multigraph count once. Features ``x`` that are given are taken instead of
    attributes.
    """
    nodes = list(source.nodes())
    number = {node: i for i, node in enumerate(nodes)}
    pairs = [(number[u], number[v]) for u, v in source.edges()]
    if source.is_multigraph():
        pairs = list(dict.fromkeys(pairs))
    data = [source.nodes[node] for node in nodes]
    weights, edge_x = None, None
    if not source.is_multigraph():
        known = [d for _, _, d in source.edges(data=True)]
        edge_x = _attributes(known, "weight")
        given = [d.get("weight") for d in known]
        weights = [float(w) for w in given] if given and all(w is not None for w in given) else None
    label = next((name for name in LABELS if any(name in d for d in data)), None)
    return Graph(
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        _attributes(data, label) if x is None else x,
        None if label is None else np.array([d.get(label) for d in data], dtype=object),
        source.is_directed(),
        weights,
        edge_x=edge_x,
        nodes=np.arange(len(nodes)),
    ).renamed(nodes)


def _attributes(data: list[dict[Any, Any]], label: str | None) -> np.ndarray | None:
    """Return the numbers that all nodes have, side by side, or None."""
    names = [
        name
        for name in (data[0] if data else {})
        if name != label and all(_is_number(d.get(name)) for d in data)
    ]
    if not names:
        return None
    return np.array(
        [np.concatenate([np.atleast_1d(d[name]) for name in names]) for d in data], dtype=np.float64
    )


def _is_number(value: Any) -> bool:
    return value is not None and np.asarray(value).dtype.kind in "fiub"


def from_pyg(source: Any) -> Graph:
    """Return PyTorch Geometric's ``Data`` as ours; edges that all go both ways are undirected."""
    edges = source.edge_index.detach().cpu().numpy().T
    count = int(source.num_nodes)
    weight = getattr(source, "edge_weight", None)
    x, y = getattr(source, "x", None), getattr(source, "y", None)
    forth = {*map(tuple, edges.tolist())}
    both = all((v, u) in forth for u, v in forth)
    kept = edges[:, 0] <= edges[:, 1] if both else np.ones(len(edges), dtype=bool)
    attributes = getattr(source, "edge_attr", None)
    return Graph(
        edges[kept],
        None if x is None else x.detach().cpu().numpy(),
        y.detach().cpu().numpy() if y is not None and len(y) == count else None,
        not both,
        None if weight is None else weight.detach().cpu().numpy()[kept],
        edge_x=None if attributes is None else attributes.detach().cpu().numpy()[kept],
        nodes=np.arange(count),
    )
