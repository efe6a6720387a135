"""What a network of whole graphs has to beat: guessing, sizes and means, and colour counts.

Reference of the counts: 2011, Shervashidze et al., Weisfeiler–Lehman graph kernels, JMLR 12.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from castalia.data import Graph, Graphs
from castalia.data.graphs import refined_colours
from castalia.data.tables.table_reader import read_table
from castalia.method.classic_model import ClassicModel

__all__ = ["GRAPH_BASELINES", "ColourCounts", "GraphSummaries", "graph_baseline"]

GRAPH_BASELINES = {
    "guess": "Guessing",
    "boosting": "Boosting, sizes and means",
    "colours": "Weisfeiler–Lehman, linear",
}
ROUNDS = 3  # of refinement
KINDS = 64  # different rows of features; with more they are no colours, and degrees are
MOST = 5_000  # columns


class ColourCounts:
    """Graphs as counts of the colours of their nodes.

    Parameters
    ----------
    columns
        The colours that are counted.
    plain
        Whether nodes begin with one colour for all instead of their features.
    """

    def __init__(self, columns: list[str] | None = None, plain: bool = False) -> None:
        self.columns, self.plain = list(columns or ()), plain

    def fit(self, graphs: Graphs) -> ColourCounts:
        """Learn which colours occur in two graphs at least."""
        kinds = {row for graph in graphs for row in _feature_rows(graph)}
        self.plain = len(kinds) > KINDS
        seen = Counter(colour for graph in graphs for colour in set(self._colours(graph)))
        self.columns = [colour for colour, count in seen.most_common(MOST) if count > 1]
        return self

    def encode(self, graphs: Graphs) -> np.ndarray:
        """Return the counts, (n, colours)."""
        place = {colour: i for i, colour in enumerate(self.columns)}
        found = np.zeros((len(graphs), max(1, len(place))))
        for row, graph in enumerate(graphs):
            for colour, count in Counter(self._colours(graph)).items():
                if colour in place:
                    found[row, place[colour]] = count
        return np.log1p(found)

    def _colours(self, graph: Graph) -> list[str]:
        first = ["node"] * len(graph) if self.plain else _feature_rows(graph)
        rounds = refined_colours(graph, first, ROUNDS)
        return [f"{number}:{colour}" for number, each in enumerate(rounds) for colour in each]

    def state(self) -> dict[str, Any]:
        """Return what was learnt, as JSON values."""
        return {"columns": self.columns, "plain": self.plain}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ColourCounts:
        """Return the counts whose `state` this is."""
        return cls(state["columns"], bool(state["plain"]))


class GraphSummaries:
    """Graphs as rows of numbers: nodes, edges, degrees, and means of their features."""

    def fit(self, graphs: Graphs) -> GraphSummaries:
        """Return itself: there is nothing to learn."""
        return self

    def encode(self, graphs: Graphs) -> np.ndarray:
        """Return the numbers, (n, columns)."""
        return np.stack([_summary(graph) for graph in graphs])

    def state(self) -> dict[str, Any]:
        """Return nothing, as JSON values."""
        return {}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> GraphSummaries:
        """Return the summaries."""
        return cls()


def _summary(graph: Graph) -> np.ndarray:
    degrees, x = graph.degrees, graph.x
    own = [len(graph), len(graph.edges), degrees.mean(), degrees.max(), degrees.std()]
    if not (isinstance(x, np.ndarray) or issparse(x)):
        return np.array(own)
    means = np.asarray(x.mean(axis=0)).ravel()
    return np.concatenate([own, means])


def _feature_rows(graph: Graph) -> list[str]:
    """Return the features of each node as one word."""
    x = graph.x
    if x is None:
        return ["node"] * len(graph)
    if issparse(x) or isinstance(x, np.ndarray):
        dense = x.toarray() if issparse(x) else x
        return [",".join(f"{value:g}" for value in row) for row in dense]
    table = read_table(x)
    columns = [table.column(name).tolist() for name in table.columns]
    return [",".join(map(str, row)) for row in zip(*columns, strict=True)]


def graph_baseline(key: str, kind: str, rounds: int, seed: int) -> ClassicModel:
    """Return one of `GRAPH_BASELINES`, not yet fitted."""
    classify = kind == "classification"
    if key == "guess":
        dummy = DummyClassifier(strategy="prior") if classify else DummyRegressor()
        return ClassicModel(dummy, GraphSummaries())
    if key == "colours":
        linear = LogisticRegression(max_iter=1000) if classify else Ridge()
        return ClassicModel(make_pipeline(MaxAbsScaler(), linear), ColourCounts())
    boosting = HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor
    return ClassicModel(boosting(max_iter=rounds, random_state=seed), GraphSummaries())
