"""What a graph network has to beat: guessing, features alone, labels alone, neighbour summaries.

Label propagation: F <- a A^ F + (1 - a) Y, with Y the known classes and A^ = D^-1/2 A D^-1/2
(2004, Zhou et al., Learning with local and global consistency, NIPS).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from castalia.data import read
from castalia.data.graphs import GraphNodes
from castalia.method.classic_model import ClassicModel
from castalia.method.table_matrix import Matrix

__all__ = ["KnownLabels", "NodeColumns", "label_propagation", "node_baseline"]

STAY, ROUNDS = 0.9, 50  # share that comes from neighbours, and how often it is passed on


class NodeColumns:
    """Nodes as rows of numbers: their features, and perhaps the means of their neighbours'.

    Categories are columns of 0 and 1; gaps are filled with the mean.

    Parameters
    ----------
    neighbours
        Whether the number of edges and the neighbours' means are columns too.
    """

    def __init__(self, neighbours: bool = False) -> None:
        self.neighbours = neighbours
        self.matrix: Matrix | None = None  # None: nodes have no features

    def fit(self, view: GraphNodes) -> NodeColumns:
        """Learn the columns from all nodes."""
        table = view.graph.x
        self.matrix = None if table is None else Matrix.of(read(table)).fit(read(table))
        return self

    def encode(self, view: GraphNodes) -> np.ndarray:
        """Return the columns of these nodes."""
        graph, own = view.graph, self._own(view.graph)
        if not self.neighbours:
            return own[view.index]
        mean = (graph.adjacency.averaged() @ torch.from_numpy(own)).numpy()
        degree = np.log1p(graph.degrees)[:, None]
        return np.concatenate([own, mean, degree], axis=1)[view.index]

    def _own(self, graph: Any) -> np.ndarray:
        if self.matrix is None:
            return np.log1p(graph.degrees)[:, None]
        found = self.matrix.encode(read(graph.x))
        words = self.matrix.categorical
        numbers = np.delete(found, words, axis=1)
        seen = np.isfinite(numbers)
        means = np.where(seen, numbers, 0).sum(axis=0) / seen.sum(axis=0).clip(min=1)
        sizes = [len(known) for known in self.matrix.words.values()]
        marks = [found[:, [w]] == np.arange(n) for w, n in zip(words, sizes, strict=True)]
        return np.concatenate([np.where(seen, numbers, means), *marks], axis=1)

    def state(self) -> dict[str, Any]:
        """Return what was learnt, as JSON values."""
        matrix = None if self.matrix is None else self.matrix.state()
        return {"neighbours": self.neighbours, "matrix": matrix}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> NodeColumns:
        """Return the columns whose `state` this is."""
        made = cls(bool(state["neighbours"]))
        made.matrix = None if state["matrix"] is None else Matrix.from_state(state["matrix"])
        return made


class KnownLabels:
    """Nodes as shares of the classes that reach them from nodes whose class is known.

    Parameters
    ----------
    names, codes
        The nodes that are known, and their class numbers.
    count
        How many classes there are.
    """

    def __init__(self, names: Sequence[Any], codes: Sequence[int], count: int) -> None:
        self.names, self.codes, self.count = list(names), list(codes), count

    def fit(self, view: GraphNodes) -> KnownLabels:
        """Return itself: what is known was given."""
        return self

    def encode(self, view: GraphNodes) -> np.ndarray:
        """Return the shares of these nodes, (n, classes); of nodes that none reaches all alike."""
        graph = view.graph
        here = np.isin(np.array(self.names), graph.ids)
        known = torch.zeros(len(graph), self.count, dtype=torch.float64)
        rows = torch.from_numpy(graph.positions(np.array(self.names)[here]))
        known[rows, torch.tensor(self.codes)[torch.from_numpy(here)]] = 1
        mixed, found = graph.adjacency.normalised(loops=False), known
        for _ in range(ROUNDS):
            found = STAY * (mixed @ found) + (1 - STAY) * known
        scores = found.numpy()[view.index] + 1e-9
        shares: np.ndarray = scores / scores.sum(axis=1, keepdims=True)
        return shares

    def state(self) -> dict[str, Any]:
        """Return what is known, as JSON values."""
        return {"names": self.names, "codes": self.codes, "count": self.count}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> KnownLabels:
        """Return the labels whose `state` this is."""
        return cls(state["names"], state["codes"], int(state["count"]))


def label_propagation(view: GraphNodes, y: np.ndarray, seed: int) -> ClassicModel:
    """Return a logistic regression on the classes that reach a node, fitted.

    It learns from each half of the known nodes what the other half's classes say about it.
    """
    classes, codes = np.unique(y, return_inverse=True)
    names, half = view.graph.ids[view.index], np.random.default_rng(seed).permutation(len(y)) % 2
    shares = np.empty((len(y), len(classes)))
    for side in (0, 1):
        given = half != side
        labels = KnownLabels(names[given].tolist(), codes[given].tolist(), len(classes))
        shares[~given] = labels.encode(view[~given])
    linear = LogisticRegression(C=100.0, max_iter=1000).fit(shares, y)
    return ClassicModel(linear, KnownLabels(names.tolist(), codes.tolist(), len(classes)))


def node_baseline(key: str, kind: str, rounds: int, seed: int) -> Any:
    """Return a baseline, not yet fitted: "guess", "linear" or "boosting"."""
    classify = kind == "classification"
    if key == "guess":
        dummy = DummyClassifier(strategy="prior") if classify else DummyRegressor()
        return ClassicModel(dummy, NodeColumns())
    if key == "linear":
        linear = LogisticRegression(max_iter=1000) if classify else Ridge()
        return ClassicModel(make_pipeline(StandardScaler(), linear), NodeColumns())
    boosting = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    return ClassicModel(boosting(max_iter=rounds, random_state=seed), NodeColumns(True))
