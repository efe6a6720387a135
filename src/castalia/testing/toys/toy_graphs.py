"""Toy graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.data import Graph, Graphs

__all__ = ["blocks", "communities", "heights", "ring_sizes", "rings"]


def _planted(
    n: int, inside: float, across: float, seed: int, groups: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Return edges that are more likely inside groups, and each node's group."""
    random = np.random.default_rng(seed)
    group = random.permutation(np.arange(n) % groups)
    u, v = np.triu_indices(n, k=1)
    drawn = random.random(len(u)) < np.where(group[u] == group[v], inside, across)
    return np.stack([u[drawn], v[drawn]], axis=1), group


def communities(n: int = 160, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Nodes of two groups whose members mostly know each other; features hardly say which.

    Features alone reach about 0.6, an optimal rule on features and neighbours 0.99.

    >>> X, y = communities()
    >>> X.graph, y[:2].tolist()
    (Graph(160 nodes, 793 edges, undirected, 4 features), ['red', 'blue'])
    """
    edges, group = _planted(n, 0.11, 0.012, seed)
    x = np.random.default_rng(seed + 1).normal(size=(n, 4))
    x[:, 0] += 0.6 * (2 * group - 1)
    names = np.array(["red", "blue"], dtype=object)[group]
    return Graph(edges, x, nodes=np.arange(n))[:], names


def heights(n: int = 160, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Nodes on a circle with a number that is the mean of their neighbours' features.

    >>> X, y = heights()
    >>> X.graph
    Graph(160 nodes, 320 edges, undirected, 2 features)
    """
    here = np.arange(n)
    edges = np.concatenate([np.stack([here, (here + k) % n], axis=1) for k in (1, 2)])
    x = np.random.default_rng(seed).normal(size=(n, 2))
    near = sum(np.roll(x[:, 0], k) for k in (-2, -1, 1, 2))
    order = np.random.default_rng(seed + 1).permutation(n)
    return Graph(edges, x, nodes=here)[order], np.asarray(near)[order]


def rings(n: int = 120, seed: int = 0) -> tuple[Graphs, np.ndarray]:
    """Trees, 0, and rings, 1, of six to twelve nodes without features.

    >>> rings()[0]
    Graphs(120 graphs, 6 to 12 nodes)
    """
    random = np.random.default_rng(seed)
    kinds = random.permutation(np.arange(n) % 2)
    graphs = [_ring(random) if kind else _tree(random) for kind in kinds]
    return Graphs(graphs), kinds


def ring_sizes(n: int = 120, seed: int = 0) -> tuple[Graphs, np.ndarray]:
    """Trees with a feature; to predict is the sum of it over the nodes.

    >>> ring_sizes()[1].shape
    (120,)
    """
    random = np.random.default_rng(seed)
    graphs = []
    for _ in range(n):
        tree = _tree(random)
        graphs.append(Graph(tree.edges, random.normal(size=(len(tree), 1))))
    return Graphs(graphs), np.array([float(graph.x.sum()) for graph in graphs])


def blocks(n: int = 80, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Pairs of nodes of four groups: links that the graph does not show, and pairs without any.

    Knowing the groups gives an area under the ROC curve of about 0.95.

    >>> X, y = blocks()
    >>> len(X) == len(y), round(float(y.mean()), 2)
    (True, 0.5)
    """
    edges, _ = _planted(n, 0.8, 0.01, seed, groups=4)
    random = np.random.default_rng(seed + 1)
    linked = {*map(tuple, edges.tolist())}
    apart = np.array([p for p in zip(*np.triu_indices(n, 1), strict=True) if p not in linked])
    hidden = random.permutation(len(edges))[: len(edges) // 2]
    pairs = np.concatenate([edges[hidden], random.permutation(apart)[: len(hidden)]])
    y = np.repeat([1, 0], len(hidden))
    order = random.permutation(len(pairs))
    graph = Graph(np.delete(edges, hidden, axis=0), nodes=np.arange(n))
    return graph.pairs(pairs[order]), y[order]


def _ring(random: np.random.Generator) -> Graph:
    here = random.permutation(int(random.integers(6, 13)))
    return Graph(np.stack([here, np.roll(here, 1)], axis=1))


def _tree(random: np.random.Generator) -> Graph:
    size = int(random.integers(6, 13))
    names = random.permutation(size)
    parents = [int(random.integers(i)) for i in range(1, size)]
    return Graph(np.stack([names[1:], names[parents]], axis=1))
