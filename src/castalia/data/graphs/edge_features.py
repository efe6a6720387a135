"""Features of edges as a network takes them: mean 0 and deviation 1 over the edges learnt from."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch

from castalia.data.graphs.graph import Graph
from castalia.errors import InvalidData
from castalia.nn.graph import Adjacency

__all__ = ["EdgeFeatures"]


class EdgeFeatures:
    """How the features of edges become numbers; graphs without any have width 0.

    Parameters
    ----------
    scaled
        Whether columns are brought to mean 0 and deviation 1.
    """

    def __init__(self, *, scaled: bool = True) -> None:
        self.scaled, self.width = scaled, 0
        self.mean: list[float] = []
        self.scale: list[float] = []

    def fit(self, graphs: list[Graph]) -> Self:
        """Learn from the features of all edges."""
        parts = [graph.edge_x for graph in graphs if graph.edge_x is not None]
        if not parts:
            return self
        found = np.concatenate(parts)
        deviation = found.std(axis=0) if len(found) else np.ones(found.shape[1])
        self.width = found.shape[1]
        self.mean = (found.mean(axis=0) if len(found) else np.zeros(self.width)).tolist()
        self.scale = np.where(deviation > 0, deviation, 1.0).tolist()
        return self

    def check(self, graph: Graph, owner: str) -> None:
        """Refuse a graph whose edges lack the features learnt from; others are left aside."""
        if self.width and graph.edge_width != self.width:
            raise InvalidData(
                f"{owner}: edges must have {self.width} features, as in fit; got "
                f"{graph.edge_width or 'none'}."
            )

    def encode(self, graph: Graph, dtype: Any) -> Adjacency:
        """Return the edges of a graph with their features in a format, (E, width)."""
        edges = graph.adjacency
        if edges.edge_x is None or not self.width:
            return edges.described(None) if edges.edge_x is not None else edges
        x = edges.edge_x
        if self.scaled:
            x = (x - torch.tensor(self.mean)) / torch.tensor(self.scale)
        return edges.described(x.to(torch.float64 if dtype == np.float64 else torch.float32))
