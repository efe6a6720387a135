"""Graphs from files: edge lists with a table of nodes, NPZ, GraphML, GML, and folders of graphs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from castalia.data.graphs.foreign_graphs import from_networkx
from castalia.data.graphs.graph import Graph
from castalia.data.graphs.graph_files import DRAWN, graph_files, read_drawn, read_graph_files
from castalia.data.graphs.graph_set import Graphs
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.table_reader import read_table
from castalia.errors import InvalidData
from castalia.utils.text import did_you_mean

__all__ = ["holds_graph", "holds_graphs", "read_graph", "read_graphs"]

ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("u", "v"), ("node1", "node2"))
IDS = ("id", "node", "node_id", "name")


def holds_graph(path: Any) -> bool:
    """Whether a path is that of graphs by itself: GraphML, GML, or a folder of many."""
    if not isinstance(path, str | os.PathLike):
        return False
    found = Path(path)
    return found.suffix.lower() in DRAWN or holds_graphs(found)


def holds_graphs(path: Any) -> bool:
    """Whether a path is that of many graphs: a TU folder, or one of GraphML or GML files."""
    if not isinstance(path, str | os.PathLike):
        return False
    return _tu_name(Path(path)) is not None or bool(graph_files(Path(path)))


def read_graph(
    edges: Any,
    nodes: Any = None,
    *,
    target: str | None = None,
    directed: bool = False,
    encoding: str | None = None,
) -> Graph:
    """Read one graph.

    Parameters
    ----------
    edges
        A table with an edge a row (CSV, TSV, Parquet, a frame …): columns ``source`` and ``target``
        or the like, else the first two; ``weight``, and further numbers, which are features of
        edges. Or an NPZ file with ``edges``, ``x`` and ``y``, GraphML or GML.
    nodes
        A table with a node a row: the column ``id``, ``node`` or ``name``, else the first, names
        it, the others are its features.
    target
        The column of ``nodes`` to predict; empty where it is not known.
    directed
        Whether an edge leads from its first node to its second only.
    encoding
        Of text files.
    """
    path = Path(edges) if isinstance(edges, str | os.PathLike) else None
    if path is not None and path.suffix.lower() == ".npz":
        return _from_arrays(path, directed)
    if path is not None and path.suffix.lower() in DRAWN:
        return from_networkx(read_drawn(path))
    table = read_table(edges, encoding=encoding)
    ends = _ends(table)
    pairs = np.stack([_names(table, name) for name in ends], axis=1)
    rest = [name for name in table.columns if name not in ends]
    weight = table.column("weight") if "weight" in rest else None
    numbers = [n for n in rest if n != "weight" and table.column(n).dtype.kind in "fiub"]
    edge_x = np.stack([table.column(n) for n in numbers], axis=1) if numbers else None
    if nodes is None:
        return Graph(pairs, directed=directed, weight=weight, edge_x=edge_x)
    ids, x, y = _nodes(read_table(nodes, encoding=encoding), target)
    return Graph(pairs, x, y, directed, weight, edge_x=edge_x, nodes=ids)


def _ends(table: Dataset) -> tuple[str, str]:
    names = {name.lower(): name for name in table.columns}
    for first, second in ENDS:
        if first in names and second in names:
            return names[first], names[second]
    if len(table.columns) < 2:
        raise InvalidData(
            f"read: a list of edges must have two columns at least; {table.source} has "
            f"{len(table.columns)}."
        )
    return table.columns[0], table.columns[1]


def _names(table: Dataset, name: str) -> np.ndarray:
    """Return names of nodes as whole numbers where all are, as words otherwise."""
    column = table.column(name)
    missing = np.array([value is None or value != value for value in column.tolist()])
    if missing.any():
        raise InvalidData(
            f"read: column `{name}` of {table.source} must name a node in every row; "
            f"{int(missing.sum()):,} of {len(column):,} are empty, first in row "
            f"{int(missing.argmax())}. Drop those rows."
        )
    if column.dtype.kind == "f" and (column == column.round()).all():
        return column.astype(np.int64)
    return column if column.dtype.kind in "iu" else column.astype(str)


def _nodes(table: Dataset, target: str | None) -> tuple[np.ndarray, Any, np.ndarray | None]:
    """Return names, features and targets of nodes."""
    own = next((n for n in table.columns if n.lower() in IDS), table.columns[0])
    if target is not None and target not in table.columns:
        raise InvalidData(
            f"read: the table of nodes must have the target `{target}`; it has "
            f"{', '.join(table.columns[:8])}.{did_you_mean(target, table.columns)}"
        )
    rest = [name for name in table.columns if name not in (own, target)]
    y = None if target is None else table.column(target)
    return _names(table, own), table.select(rest) if rest else None, y


def _from_arrays(path: Path, directed: bool) -> Graph:
    with np.load(path, allow_pickle=False) as file:
        if "edges" not in file:
            raise InvalidData(
                f"read: {path} must hold an array `edges`, (E, 2); it has "
                f"{', '.join(file) or 'none'}."
            )
        x, y = _array(file, "x", "features"), _array(file, "y", "labels")
        if "feat_data" in file:
            parts = file["feat_data"], file["feat_indices"].astype(np.int64), file["feat_indptr"]
            x = csr_array(parts, shape=tuple(file["feat_shape"]))
        count = None if x is None and y is None else np.arange(len(y) if x is None else x.shape[0])
        return Graph(file["edges"], x, y, directed, _array(file, "weight"), nodes=count)


def _array(file: Any, *names: str) -> Any:
    return next((file[name] for name in names if name in file), None)


def _tu_name(folder: Path) -> str | None:
    """Return the name of the data in a folder of the TU collection, or None."""
    if not folder.is_dir():
        return None
    found = sorted(folder.glob("*_graph_indicator.txt"))
    return found[0].name.removesuffix("_graph_indicator.txt") if found else None


def read_graphs(folder: Any, *, target: str | None = None, directed: bool = False) -> Graphs:
    """Read many graphs: a folder of the TU collection or of GraphML and GML files, or an NPZ file.

    Labels of nodes and edges become columns of 0 and 1, attributes columns of numbers.

    Parameters
    ----------
    folder
        Where ``NAME_A.txt``, ``NAME_graph_indicator.txt`` and ``NAME_graph_labels.txt`` lie, with
        ``NAME_node_labels.txt`` and ``NAME_node_attributes.txt`` where there are any, and the same
        for edges. Or a folder of GraphML and GML files, a graph each. Or an NPZ file with
        ``graph_ptr``.
    target
        What to predict of a GraphML or GML file: an attribute of the graph, or a column of the one
        table in the folder, whose first column names the files.
    directed
        Whether edges lead one way only.
    """
    path = Path(folder)
    if path.suffix.lower() == ".npz":
        return _packed(path, directed)
    if graph_files(path):
        return read_graph_files(path, target)
    name = _tu_name(path)
    if name is None:
        raise InvalidData(
            f"read: {path} must hold a file NAME_graph_indicator.txt, or GraphML or GML files; it "
            "does not."
        )
    owner = _numbers(path / f"{name}_graph_indicator.txt").astype(np.int64).ravel() - 1
    edges = _numbers(path / f"{name}_A.txt").astype(np.int64).reshape(-1, 2) - 1
    x = _described(path / name, "node")
    y = _numbers(path / f"{name}_graph_labels.txt")[:, 0]
    y = y.astype(np.int64) if (y == y.round()).all() else y
    return _cut(owner, edges, x, y, directed, _described(path / name, "edge"))


def _described(path: Path, what: str) -> np.ndarray | None:
    """Return labels of nodes or edges as columns of 0 and 1, and their attributes."""
    parts, labels = [], path.with_name(f"{path.name}_{what}_labels.txt")
    if labels.is_file():
        found = _numbers(labels)[:, 0]
        parts.append((found[:, None] == np.unique(found)).astype(np.float64))
    attributes = path.with_name(f"{path.name}_{what}_attributes.txt")
    if attributes.is_file():
        parts.append(_numbers(attributes))
    return np.concatenate(parts, axis=1) if parts else None


def _numbers(path: Path) -> np.ndarray:
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise InvalidData(
            f"read: {path} must hold rows of numbers with commas: {error}."
        ) from error


def _packed(path: Path, directed: bool) -> Graphs:
    with np.load(path, allow_pickle=False) as file:
        if not {"graph_ptr", "edges", "graph_label"} <= set(file):
            raise InvalidData(
                f"read: {path} must hold `graph_ptr`, `edges` and `graph_label`; it has "
                f"{', '.join(file)}."
            )
        counts = np.diff(file["graph_ptr"])
        x = _array(file, "x")
        if x is None and "node_label" in file:
            x = (file["node_label"][:, None] == np.unique(file["node_label"])).astype(np.float64)
        owner = np.repeat(np.arange(len(counts)), counts)
        return _cut(owner, file["edges"].astype(np.int64), x, file["graph_label"], directed)


def _cut(
    owner: np.ndarray,
    edges: np.ndarray,
    x: Any,
    y: np.ndarray,
    directed: bool,
    edge_x: np.ndarray | None = None,
) -> Graphs:
    """Return the graphs of nodes that stand one after the other."""
    starts = np.searchsorted(owner, np.arange(len(y) + 1))
    order = np.argsort(owner[edges[:, 0]], kind="stable")
    cuts = np.searchsorted(owner[edges[order, 0]], np.arange(len(y) + 1))
    return Graphs(
        [
            Graph(
                edges[order[cuts[g] : cuts[g + 1]]] - a,
                None if x is None else x[a:b],
                directed=directed,
                edge_x=None if edge_x is None else edge_x[order[cuts[g] : cuts[g + 1]]],
                nodes=np.arange(b - a),
            )
            for g, (a, b) in enumerate(zip(starts, starts[1:], strict=False))
        ],
        y,
    )
