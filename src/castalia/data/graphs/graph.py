"""One graph: edges between nodes, what is known of each, and the names they have."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array, csr_array, issparse
from torch import Tensor

from castalia.data.graphs.graph_views import GraphNodes, GraphPairs
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.table_reader import read_table
from castalia.errors import DataWarning, InvalidData
from castalia.nn.graph import Adjacency
from castalia.utils.text import plural

__all__ = ["Graph"]


class Graph:
    """Nodes, edges, and what is known of them.

    ``graph[index]`` is some of its nodes, as rows for an estimator: the others stay neighbours.

    Parameters
    ----------
    edges
        Pairs of nodes, (E, 2), by number or by name. Of an edge that is given twice the first
        counts.
    x
        Features of the nodes, a row each: an array, a scipy sparse matrix, a frame or a `Dataset`.
        None: nodes differ by their edges only.
    y
        Target of each node; None, NaN, or -1 among class numbers, where it is not known.
    directed
        Whether an edge leads from its first node to its second only.
    weight
        Of each edge, (E,), above 0; None: ones.
    edge_x
        Features of the edges, (E, F).
    nodes
        Names of the nodes in the order of x and y; None: 0, 1 …, or all that edges name.

    Attributes
    ----------
    edges : numpy.ndarray
        Pairs of positions of nodes, (E, 2), each once.
    ids : numpy.ndarray
        Names of the nodes, (N,).
    repeated : int
        Edges that were given more than once.

    Examples
    --------
    >>> graph = Graph([("ann", "bob"), ("bob", "cem")])
    >>> graph
    Graph(3 nodes, 2 edges, undirected)
    >>> graph.degrees
    array([1, 2, 1])
    """

    def __init__(
        self,
        edges: Any,
        x: Any = None,
        y: Any = None,
        directed: bool = False,
        weight: Any = None,
        *,
        edge_x: Any = None,
        nodes: Sequence[Any] | np.ndarray | None = None,
    ) -> None:
        pairs = _pairs(edges)
        self.x, self.directed = _features(x), bool(directed)
        rows = next((_count(part) for part in (nodes, self.x, y) if part is not None), None)
        self.ids, found = _positions(pairs, nodes, rows)
        if not len(self.ids):
            raise InvalidData("Graph: must have a node; got none. Give edges, x or nodes.")
        kept = _first_of_each(found, directed=self.directed)
        self.repeated = _repeats(found)
        if self.repeated:
            warnings.warn(
                f"Graph: {self.repeated:,} of {len(found):,} edges are given more than once; the "
                "first of each counts.",
                DataWarning,
                stacklevel=2,
            )
        self.edges = found[kept]
        self.weight = _weights(weight, len(found), kept)
        self.edge_x = _edge_features(edge_x, len(found), kept)
        self.y = None if y is None else np.asarray(y)
        for name, part in (("x", self.x), ("y", self.y)):
            if part is not None and _count(part) != len(self.ids):
                raise InvalidData(
                    f"Graph: `{name}` must have a row for each of the {len(self.ids):,} nodes; got "
                    f"{_count(part):,}."
                )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        features = f", {self.width:,} features" if self.width else ""
        return f"Graph({len(self):,} nodes, {len(self.edges):,} edges, {kind}{features})"

    @property
    def width(self) -> int:
        """Number of features of a node."""
        if self.x is None:
            return 0
        return int(self.x.shape[1]) if hasattr(self.x, "shape") else len(self.x.columns)

    @property
    def edge_width(self) -> int:
        """Number of features of an edge."""
        return 0 if self.edge_x is None else int(self.edge_x.shape[1])

    def __getitem__(self, index: Any) -> GraphNodes:
        """Return some of the nodes, by position, slice or mask, as rows of an estimator."""
        return GraphNodes(self, np.arange(len(self)))[index]

    def positions(self, nodes: Any) -> np.ndarray:
        """Return where these nodes stand, by name, or say which is unknown."""
        names = np.asarray(nodes)
        order = np.argsort(self.ids, kind="stable")
        place = np.searchsorted(self.ids, names, sorter=order).clip(max=len(order) - 1)
        found = order[place]
        unknown = self.ids[found] != names
        if unknown.any():
            raise InvalidData(
                f"Graph: has no node {names[unknown].tolist()[0]!r}; "
                f"{int(unknown.sum()):,} of {names.size:,} names are unknown."
            )
        return found

    def pairs(self, pairs: Any) -> GraphPairs:
        """Return pairs of nodes, by name, as rows of a link predictor."""
        return GraphPairs(self, self.positions(_pairs(pairs)))

    @cached_property
    def adjacency(self) -> Adjacency:
        """The edges as a sparse matrix; of an undirected graph both ways."""
        edges = torch.from_numpy(self.edges.T.copy())
        parts = [None if p is None else torch.from_numpy(p) for p in (self.weight, self.edge_x)]
        if not self.directed:
            edges, *parts = _both_ways(edges, *parts)
        weight, edge_x = parts
        symmetric = not self.directed
        return Adjacency.of(edges, len(self), weight, symmetric=symmetric, edge_x=edge_x)

    @property
    def degrees(self) -> np.ndarray:
        """Number of edges that lead into each node, (N,); a loop counts once."""
        return self.adjacency.pointer.diff().numpy()

    def without(self, edges: np.ndarray) -> Graph:
        """Return the graph without some of its edges, by their numbers."""
        kept = np.setdiff1d(np.arange(len(self.edges)), edges)
        return self.replaced(kept)

    def replaced(self, kept: np.ndarray) -> Graph:
        """Return the graph with some of its edges only, by their numbers."""
        return Graph(
            self.ids[self.edges[kept]],
            self.x,
            self.y,
            self.directed,
            None if self.weight is None else self.weight[kept],
            edge_x=None if self.edge_x is None else self.edge_x[kept],
            nodes=self.ids,
        )

    def renamed(self, ids: Sequence[Any] | np.ndarray) -> Graph:
        """Return the same graph, whose nodes have other names, in the same order."""
        names = np.empty(len(ids), dtype=object)
        names[:] = list(ids)
        plain = np.asarray(list(ids))
        simple = plain.ndim == 1 and len({type(name) for name in ids}) == 1
        made = copy(self)
        made.ids = plain if simple else names
        return made

    def fingerprint(self) -> str:
        """Return a mark of the content: nodes, edges and features."""
        mark = hashlib.sha256(f"{self.directed} {self.ids.tolist()}".encode())
        for part in (self.edges, self.weight, self.edge_x, *_feature_parts(self.x)):
            mark.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
        return mark.hexdigest()

    def scipy(self) -> csr_array:
        """Return the adjacency matrix as scipy's, A[i, j] the weight of the edge from j to i."""
        a = self.adjacency
        parts = a.values(torch.float64).numpy(), a.source.numpy(), a.pointer.numpy()
        return csr_array(parts, shape=(len(self), len(self)))


def _pairs(edges: Any) -> np.ndarray:
    """Return a list of edges as (E, 2), or say what is wrong with it."""
    if isinstance(edges, Tensor):
        edges = edges.detach().cpu().numpy()
    found = np.asarray(edges)
    if found.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != 2:
        raise InvalidData(
            f"Graph: `edges` must be pairs of nodes, of shape (E, 2); got {found.shape}."
        )
    if found.dtype.kind == "O" and any(v is None or v != v for v in found.ravel()):
        raise InvalidData("Graph: `edges` must name two nodes each; got an edge with one missing.")
    if found.dtype.kind == "f":
        if not (np.isfinite(found).all() and (found == found.round()).all()):
            raise InvalidData("Graph: `edges` must name nodes; got numbers that are not whole.")
        found = found.astype(np.int64)
    return found


def _features(x: Any) -> Any:
    """Return features as a float array, a sparse matrix, or a table."""
    if x is None or isinstance(x, Dataset) or hasattr(x, "columns"):
        return x
    x = x.detach().cpu().numpy() if isinstance(x, Tensor) else x
    found = csr_array(x) if issparse(x) else np.asarray(x)
    if not issparse(found) and found.dtype.kind not in "fiub":
        raise InvalidData(
            f"Graph: `x` must hold numbers; got {found.dtype}. Give words as columns of a frame."
        )
    found = found if found.dtype.kind == "f" else found.astype(np.float64)
    found = found.reshape(-1, 1) if found.ndim == 1 else found
    if found.ndim != 2:
        raise InvalidData(f"Graph: `x` must have a row a node, (N, D); got shape {found.shape}.")
    values = found.data if issparse(found) else found
    if not np.isfinite(values).all():
        where = "" if issparse(found) else f", first for node {_first_bad(found)}"
        raise InvalidData(
            f"Graph: `x` must hold no NaN or infinity{where}. Fill the gaps, or give a frame, "
            "whose missing values are flagged."
        )
    return found


def _first_bad(x: np.ndarray) -> int:
    return int(np.flatnonzero(~np.isfinite(x).all(axis=1))[0])


def _feature_parts(x: Any) -> list[np.ndarray]:
    """Return features as arrays of bytes."""
    if x is None or isinstance(x, np.ndarray):
        return [] if x is None else [x]
    if issparse(x):
        return [x.indptr, x.indices, x.data]
    table = x if isinstance(x, Dataset) else read_table(x)
    return [np.frombuffer(table.fingerprint().encode(), dtype=np.uint8)]


def _count(part: Any) -> int:
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)


def _positions(pairs: np.ndarray, nodes: Any, rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of nodes, and the edges by position."""
    if nodes is not None:
        return _named(pairs, np.asarray(nodes))
    if pairs.dtype.kind not in "iu":
        ids, flat = np.unique(pairs, return_inverse=True)
        if rows is not None and rows != len(ids):
            raise InvalidData(
                f"Graph: `nodes` must name the {rows:,} rows of x and y, as edges name "
                f"{len(ids):,} nodes by words."
            )
        return ids, flat.reshape(pairs.shape)
    if pairs.size and pairs.min() < 0:
        raise InvalidData(
            f"Graph: numbers of nodes must be at least 0; got {int(pairs.min())}. Give `nodes` "
            "where they are names."
        )
    most = int(pairs.max()) + 1 if pairs.size else 0
    count = most if rows is None else rows
    if most > count:
        unknown = np.unique(pairs[pairs >= count])
        raise InvalidData(
            f"Graph: edges must join nodes 0 to {count - 1}, as there are {count:,} rows; got "
            f"{_strangers(unknown, pairs >= count)}."
        )
    return np.arange(count), pairs.astype(np.int64)


def _named(pairs: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    same = ordered[1:] == ordered[:-1]
    if same.any():
        raise InvalidData(
            f"Graph: `nodes` must name each node once; got {ordered[1:][same].tolist()[0]!r} more "
            f"than once, and {int(same.sum()):,} repeated names in all."
        )
    if not pairs.size or not len(ids):
        known = np.zeros(pairs.shape, dtype=bool)
        place = np.zeros(pairs.shape, dtype=np.int64)
    else:
        pairs = pairs if pairs.dtype.kind == ids.dtype.kind else pairs.astype(ids.dtype)
        place = np.searchsorted(ordered, pairs).clip(max=len(ids) - 1)
        known = ordered[place] == pairs
    if not known.all():
        unknown = np.unique(pairs[~known])
        raise InvalidData(
            f"Graph: edges must join nodes that are named; got {_strangers(unknown, ~known)}. Add "
            "them to the nodes or drop those edges."
        )
    return ids, order[place] if pairs.size else np.zeros((0, 2), dtype=np.int64)


def _strangers(unknown: np.ndarray, where: np.ndarray) -> str:
    """Return how many nodes are unknown, one of them, and in how many edges."""
    edges = plural(int(where.any(axis=1).sum()), "edge")
    return f"{plural(len(unknown), 'unknown node')}, first {unknown.tolist()[0]!r}, in {edges}"


def _keys(pairs: np.ndarray) -> np.ndarray:
    """Return a number for each pair, the same for the same pair."""
    return pairs[:, 0] * (int(pairs.max(initial=0)) + 1) + pairs[:, 1]


def _first_of_each(pairs: np.ndarray, *, directed: bool) -> np.ndarray:
    """Return the numbers of the edges to keep: the first of those that are the same."""
    _, first = np.unique(_keys(pairs if directed else np.sort(pairs, axis=1)), return_index=True)
    return np.sort(first)


def _repeats(pairs: np.ndarray) -> int:
    """Count edges that are given again, in the same direction."""
    return len(pairs) - len(np.unique(_keys(pairs)))


def _weights(weight: Any, count: int, kept: np.ndarray) -> np.ndarray | None:
    if weight is None:
        return None
    found = np.asarray(weight, dtype=np.float64)
    if found.shape != (count,):
        raise InvalidData(
            f"Graph: `weight` must hold a number for each of the {count:,} edges; got shape "
            f"{found.shape}."
        )
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise InvalidData(
            f"Graph: `weight` must hold finite numbers above 0; got {found.min():g} as the "
            "smallest. Drop edges that do not count."
        )
    return found[kept]


def _edge_features(edge_x: Any, count: int, kept: np.ndarray) -> np.ndarray | None:
    if edge_x is None:
        return None
    found = np.asarray(edge_x, dtype=np.float64)
    found = found.reshape(-1, 1) if found.ndim == 1 else found
    if found.ndim != 2 or len(found) != count:
        raise InvalidData(
            f"Graph: `edge_x` must have a row for each of the {count:,} edges; got shape "
            f"{found.shape}."
        )
    if not np.isfinite(found).all():
        raise InvalidData(
            f"Graph: `edge_x` must hold no NaN or infinity, first for edge {_first_bad(found)}. "
            "Fill the gaps."
        )
    return found[kept]


def _both_ways(edges: Tensor, *parts: Tensor | None) -> list[Any]:
    """Return each edge and its reverse, a loop once, and what is known of them."""
    back = edges[0] != edges[1]
    twice = [None if part is None else torch.cat([part, part[back]]) for part in parts]
    return [torch.cat([edges, edges.flip(0)[:, back]], dim=1), *twice]


def from_matrix(matrix: Any, x: Any = None, y: Any = None) -> Graph:
    """Return the graph of an adjacency matrix, A[i, j] the weight of the edge from i to j."""
    found = coo_array(matrix)
    if found.shape[0] != found.shape[1]:
        raise InvalidData(f"Graph: an adjacency matrix must be square; got {found.shape}.")
    directed = bool((abs(found - found.T)).nnz)
    pairs = np.stack([found.row, found.col], axis=1).astype(np.int64)
    weight = np.asarray(found.data, dtype=np.float64)
    kept = np.ones(len(pairs), dtype=bool) if directed else pairs[:, 0] <= pairs[:, 1]
    plain = bool((weight == 1).all())
    return Graph(
        pairs[kept],
        x,
        y,
        directed,
        None if plain else weight[kept],
        nodes=np.arange(found.shape[0]),
    )
