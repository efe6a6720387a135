"""GraphML and GML files: one graph each, alone or many in a folder with what to predict of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from castalia.data.graphs.foreign_graphs import from_networkx
from castalia.data.graphs.graph_set import Graphs
from castalia.data.tables.table_reader import read_table
from castalia.errors import InvalidData
from castalia.utils.imports import require
from castalia.utils.text import listing

__all__ = ["DRAWN", "graph_files", "read_drawn", "read_graph_files"]

DRAWN = (".graphml", ".gml")
TABLES = (".csv", ".tsv", ".parquet")


def graph_files(folder: Path) -> list[Path]:
    """Return the GraphML and GML files of a folder, by name; none of what is no folder."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in DRAWN)


def read_drawn(path: Path) -> Any:
    """Read a GraphML or GML file as NetworkX's graph."""
    networkx: Any = require("networkx", caller="castalia.read")
    reads = networkx.read_graphml if path.suffix.lower() == ".graphml" else networkx.read_gml
    try:
        return reads(path)
    except (OSError, ValueError, SyntaxError, networkx.NetworkXException) as error:
        kind = "GraphML" if path.suffix.lower() == ".graphml" else "GML"
        raise InvalidData(f"read: {path} must be {kind}: {error}.") from error


def read_graph_files(folder: Path, target: str | None) -> Graphs:
    """Read all graphs of a folder, with their targets where one is named."""
    files = graph_files(folder)
    networks = [read_drawn(path) for path in files]
    tables = _node_tables(networks)
    graphs = [from_networkx(one, x) for one, x in zip(networks, tables, strict=True)]
    y = None if target is None else _targets(folder, files, networks, target)
    return Graphs(graphs, y, [path.stem for path in files])


def _node_tables(networks: list[Any]) -> list[Any]:
    """Return the attributes that all nodes have: numbers as arrays, words as tables."""
    data = [[one.nodes[node] for node in one] for one in networks]
    first: dict[Any, Any] = next((row for rows in data for row in rows), {})
    names = [n for n in first if all(n in row for rows in data for row in rows)]
    if not names:
        return [None] * len(networks)
    words = any(isinstance(row[n], str) for rows in data for row in rows for n in names)
    found = []
    for rows in data:
        columns = {str(n): [row[n] for row in rows] for n in names}
        table = read_table(pa.table(columns)) if words else None
        found.append(np.array([*columns.values()], float).T if table is None else table)
    return found


def _targets(folder: Path, files: list[Path], networks: list[Any], target: str) -> np.ndarray:
    """Return what to predict of each graph: its own attribute, or its row in the one table."""
    if all(target in one.graph for one in networks):
        return np.array([one.graph[target] for one in networks])
    tables = [path for path in folder.iterdir() if path.suffix.lower() in TABLES]
    table = read_table(tables[0]) if len(tables) == 1 else None
    if table is None or target not in table.columns:
        own = {key for one in networks for key in one.graph} - {"node_default", "edge_default"}
        has = listing(sorted(own), "and") or "none"
        raise InvalidData(
            f"read: graphs of {folder} must have the attribute `{target}`, or one table beside "
            f"them a column of that name; the attributes are {has}."
        )
    rows = {Path(str(name)).stem: row for row, name in enumerate(table.column(table.columns[0]))}
    unknown = [path.name for path in files if path.stem not in rows]
    if unknown:
        raise InvalidData(
            f"read: the first column of {tables[0]} must name every file of {folder}; {unknown[0]} "
            f"and {len(unknown) - 1:,} others are missing."
        )
    found: np.ndarray = table.column(target)[[rows[path.stem] for path in files]]
    return found
