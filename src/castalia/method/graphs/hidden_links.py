"""Pairs of nodes whose links are hidden while they are tested."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from castalia.data import Graph
from castalia.data.graphs import GraphPairs

__all__ = ["HiddenLinks", "candidates", "pairs_apart"]


class HiddenLinks:
    """Links of a graph and pairs without one, as rows.

    ``take`` gives rows with the graph that a model may see then: where they are tested, or others
    are, the tested links are not in it.

    Parameters
    ----------
    graph
        The whole graph.
    apart
        Pairs without a link, (m, 2).
    """

    def __init__(self, graph: Graph, apart: np.ndarray) -> None:
        self.graph = graph
        self.edges = np.flatnonzero(graph.edges[:, 0] != graph.edges[:, 1])  # loops are no rows
        self.index = np.concatenate([graph.edges[self.edges], apart])
        self.y = np.repeat([1, 0], [len(self.edges), len(apart)])
        self.tests: list[np.ndarray] = []  # rows that are tested together
        self._seen: dict[int | None, Graph] = {None: graph}

    def __len__(self) -> int:
        return len(self.index)

    @property
    def source(self) -> str:
        """What messages call it."""
        return repr(self.graph)

    def fingerprint(self) -> str:
        """Return a mark of the content."""
        text = f"{self.graph.fingerprint()} {self.index.tolist()}"
        return hashlib.sha256(text.encode()).hexdigest()

    def take(self, rows: np.ndarray) -> GraphPairs:
        """Return some pairs, and the graph without what is tested with or beside them."""
        return GraphPairs(self._visible(self._test_of(np.asarray(rows))), self.index[rows])

    def _test_of(self, rows: np.ndarray) -> int | None:
        """Return which test the rows belong to, or leave alone."""
        inside = [np.isin(rows, test) for test in self.tests]
        found = [k for k, each in enumerate(inside) if each.all()]
        found += [k for k, each in enumerate(inside) if not each.any()]
        return found[0] if found else None

    def _visible(self, test: int | None) -> Graph:
        if test not in self._seen:
            rows = self.tests[test]  # type: ignore[index]
            self._seen[test] = self.graph.without(self.edges[rows[rows < len(self.edges)]])
        return self._seen[test]


def pairs_apart(graph: Graph, count: int, seed: int) -> np.ndarray:
    """Draw pairs of two nodes without an edge, each once; fewer where there are not so many."""
    n, random = len(graph), np.random.default_rng(seed)
    u, v = np.sort(graph.edges, axis=1).T
    known = np.unique(u * n + v)
    room = n * (n - 1) // 2 - int((u != v).sum())
    found = np.zeros(0, dtype=np.int64)
    while len(found) < min(count, room):
        a, b = np.sort(random.integers(n, size=(2 * count + 10, 2)), axis=1).T
        drawn = np.setdiff1d((a * n + b)[a != b], known)
        found = np.unique(np.concatenate([found, drawn]))
    keys = random.permutation(found)[:count]
    return np.stack([keys // n, keys % n], axis=1)


def candidates(graph: Graph, most: int) -> np.ndarray:
    """Return pairs without an edge that share neighbours, those with most of them first, (n, 2)."""
    matrix: Any = graph.scipy()
    near = ((matrix + matrix.T) != 0).astype(np.float64)
    paths = (near @ near - near.multiply(near @ near)).tocoo()
    u, v = paths.coords
    kept = (u < v) & (paths.data > 0)
    order = np.argsort(-paths.data[kept], kind="stable")[:most]
    return np.stack([u[kept], v[kept]], axis=1)[order].astype(np.int64)
