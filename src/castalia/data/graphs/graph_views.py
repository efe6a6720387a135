"""Rows of a graph: some of its nodes, or pairs of them; the rest of the graph stays around them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

__all__ = ["GraphNodes", "GraphPairs", "GraphRowsView"]


@dataclass(eq=False)
class GraphRowsView:
    """Rows that belong to one graph; scikit-learn can divide them like an array.

    Attributes
    ----------
    graph
        The whole graph.
    index
        Positions of nodes, (n,), or of pairs of them, (n, 2).
    labelled
        Which of the rows have a target, once that is known.
    """

    graph: Any
    index: np.ndarray
    labelled: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.index)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of features of a node."""
        return len(self.index), self.graph.width

    @property
    def y(self) -> np.ndarray | None:
        """Targets of these nodes; None where the graph has none, and of pairs."""
        known = self.graph.y is not None and self.index.ndim == 1
        return self.graph.y[self.index] if known else None

    def __getitem__(self, key: Any) -> Self:
        key = key[0] if isinstance(key, tuple) else key  # scikit-learn asks for [rows, ...]
        if isinstance(key, int | np.integer):
            key = [key]
        marked = None if self.labelled is None else self.labelled[key]
        return replace(self, index=self.index[key], labelled=marked)

    def fingerprint(self) -> str:
        """Return a mark of the content: the graph, and which rows of it."""
        text = f"{self.graph.fingerprint()} {self.index.tolist()}"
        return hashlib.sha256(text.encode()).hexdigest()

    def take(self, index: np.ndarray) -> Self:
        """Return the rows at these positions."""
        return self[index]


class GraphNodes(GraphRowsView):
    """Some nodes of a graph."""


class GraphPairs(GraphRowsView):
    """Some pairs of nodes of a graph."""
