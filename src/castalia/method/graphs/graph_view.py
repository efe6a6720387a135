"""What a report shows of a graph: a part of it to look at, edges between classes, reasons."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.data import Graph, Graphs
from castalia.method.task import Task
from castalia.utils.imports import require

__all__ = ["drawn_part", "edges_between", "gallery", "layout", "reasons", "scores_by_share"]

MOST = 200  # nodes that are drawn
CLOSEST = 14  # edges of a reason
EXAMPLES, ROWS = 4, 4  # graphs of a class, and classes
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def layout(nodes: int, edges: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return a place for every node, (n, 2): those with an edge draw each other near.

    >>> layout(3, np.array([[0, 1]])).shape
    (3, 2)
    """
    networkx: Any = require("networkx", caller="castalia.method")
    made = networkx.Graph()
    made.add_nodes_from(range(nodes))
    made.add_edges_from(edges.tolist())
    places = networkx.spring_layout(made, seed=seed, iterations=120, k=1.6 / max(nodes, 1) ** 0.5)
    return np.array([places[node] for node in range(nodes)])


def drawn_part(graph: Graph, kinds: np.ndarray, wrong: np.ndarray, first: int) -> dict[str, Any]:
    """Return the nodes nearest to one of them, and the edges among them, with their places.

    Parameters
    ----------
    graph
        The graph.
    kinds
        Number of each node's class, -1 where it is not known.
    wrong
        Which nodes were tested and answered wrongly.
    first
        Where to begin.
    """
    nodes = _nearest(graph, first)
    place = np.full(len(graph), -1)
    place[nodes] = np.arange(len(nodes))
    edges = place[graph.edges]
    edges = edges[(edges >= 0).all(axis=1) & (edges[:, 0] != edges[:, 1])]
    return {
        "places": layout(len(nodes), edges).round(4),
        "edges": edges,
        "nodes": nodes,
        "kinds": kinds[nodes],
        "wrong": wrong[nodes],
        "total": len(graph),
    }


def _nearest(graph: Graph, first: int) -> np.ndarray:
    """Return up to so many nodes, those fewest steps away first, then any others."""
    edges, found, border = graph.adjacency, [first], [first]
    known = {first}
    while border and len(found) < MOST:
        border = [
            u
            for v in border
            for u in edges.source[edges.pointer[v] : edges.pointer[v + 1]].tolist()
            if not (u in known or known.add(u))  # type: ignore[func-returns-value]
        ]
        found += border
    others = np.setdiff1d(np.arange(len(graph)), found)
    return np.sort(np.concatenate([found, others])[:MOST].astype(np.int64))


def edges_between(graph: Graph, kinds: np.ndarray, count: int) -> np.ndarray:
    """Return how many edges join each class with each, in both directions, (K, K)."""
    found = np.zeros((count, count), dtype=int)
    ends = kinds[graph.edges[graph.edges[:, 0] != graph.edges[:, 1]]]
    ends = ends[(ends >= 0).all(axis=1)]
    np.add.at(found, tuple(ends.T), 1)
    np.add.at(found, tuple(ends[:, ::-1].T), 1)
    return found


def scores_by_share(
    graph: Graph, kinds: np.ndarray, tested: np.ndarray, right: np.ndarray
) -> list[dict[str, Any]]:
    """Return the accuracy of tested nodes by the share of their neighbours of the same class."""
    u, v = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    kept = (kinds[u] >= 0) & (u != v)
    same = np.bincount(v[kept & (kinds[u] == kinds[v])], minlength=len(graph))
    all_ = np.bincount(v[kept], minlength=len(graph))
    share = (same / all_.clip(min=1))[tested]
    found = []
    for low, high in zip(SHARES, SHARES[1:], strict=False):
        here = (all_[tested] > 0) & (share >= low) & ((share < high) | (high == SHARES[-1]))
        if here.any():
            score = float(right[here].mean())
            found.append({"low": low, "high": high, "nodes": int(here.sum()), "accuracy": score})
    return found


def reasons(
    model: Any, graph: Graph, kinds: np.ndarray, asked: dict[int, str]
) -> list[dict[str, Any]]:
    """Return which neighbours mattered for some nodes, by ``explain``.

    Parameters
    ----------
    model
        A fitted estimator of nodes.
    graph, kinds
        The graph, and the class numbers of its nodes.
    asked
        Nodes by position, and what to say of each.
    """
    found = []
    for node, title in asked.items():
        said = model.explain(graph, graph.ids[node], steps=10)
        ends = graph.positions(said.edges[:CLOSEST].ravel()).reshape(-1, 2)
        kept = _joined_to(node, ends)
        edges, shares = ends[kept], said.edge_shares[:CLOSEST][kept]
        nodes, flat = np.unique(np.append(edges.ravel(), node), return_inverse=True)
        local = flat[:-1].reshape(-1, 2)
        found.append(
            {
                "title": title,
                "node": int(flat[-1]),
                "names": [str(name) for name in graph.ids[nodes]],
                "places": layout(len(nodes), local).round(4),
                "edges": local,
                "shares": shares,
                "kinds": kinds[nodes],
            }
        )
    return found


def _joined_to(node: int, edges: np.ndarray) -> np.ndarray:
    """Return which edges are connected with a node by others of them."""
    reached = {node}
    for _ in range(len(edges)):
        reached |= {int(v) for edge in edges if reached & set(edge.tolist()) for v in edge}
    return np.array([int(edge[0]) in reached for edge in edges], dtype=bool)


def gallery(graphs: Graphs, task: Task) -> list[dict[str, Any]]:
    """Return some graphs of each class, or of each quarter of the numbers, with places of nodes."""
    classes = task.classes.tolist()
    bounds = np.quantile(task.y, (0.25, 0.5, 0.75)) if not classes else np.zeros(0)
    kinds = task.codes if classes else np.searchsorted(bounds, task.y)
    names = classes or [*(f"up to {bound:.3g}" for bound in bounds), "above"]
    found = []
    for kind, name in enumerate(names[:ROWS]):
        rows = np.flatnonzero(kinds == kind)
        small = rows[np.argsort([len(graphs.graphs[row]) for row in rows], kind="stable")]
        middle = small[np.linspace(0, len(small) - 1, EXAMPLES + 2).astype(int)[1:-1]]
        shown = [
            _small(graphs.graphs[row], str(graphs.names[row]))
            for row in dict.fromkeys(middle.tolist())
        ]
        found.append({"name": str(name), "graphs": shown})
    return found


def _small(graph: Graph, name: str) -> dict[str, Any]:
    part = drawn_part(graph, np.full(len(graph), -1), np.zeros(len(graph), dtype=bool), 0)
    return {"name": name, **{key: part[key] for key in ("places", "edges", "total")}}
