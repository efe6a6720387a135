"""Many graphs, each a row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from castalia.data.graphs.graph import Graph
from castalia.errors import InvalidData

__all__ = ["Graphs"]


class Graphs:
    """A sequence of graphs with a target each.

    Parameters
    ----------
    graphs
        The graphs.
    y
        Target of each graph; None: not known.
    names
        What each graph is called; None: by its number.

    Examples
    --------
    >>> pair = Graphs([Graph([(0, 1)]), Graph([(0, 1), (1, 2)])], ["short", "long"])
    >>> pair, len(pair[:1])
    (Graphs(2 graphs, 2 to 3 nodes), 1)
    """

    def __init__(
        self, graphs: Sequence[Graph], y: Any = None, names: Sequence[str] | None = None
    ) -> None:
        self.graphs = list(graphs)
        called = range(len(self.graphs)) if names is None else names
        self.names = np.array([str(name) for name in called], dtype=object)
        self.y = None if y is None else np.asarray(y)
        if self.y is not None and len(self.y) != len(self.graphs):
            raise InvalidData(
                f"Graphs: `y` must have a value for each of the {len(self.graphs):,} graphs; got "
                f"{len(self.y):,}."
            )

    def __len__(self) -> int:
        return len(self.graphs)

    def __iter__(self) -> Iterator[Graph]:
        return iter(self.graphs)

    def __repr__(self) -> str:
        sizes = [len(graph) for graph in self.graphs]
        span = f", {min(sizes):,} to {max(sizes):,} nodes" if sizes else ""
        return f"Graphs({len(self):,} graphs{span})"

    @property
    def shape(self) -> tuple[int]:
        """How many graphs there are; scikit-learn then divides them like an array."""
        return (len(self.graphs),)

    def __getitem__(self, key: Any) -> Any:
        key = key[0] if isinstance(key, tuple) else key  # scikit-learn asks for [rows, ...]
        if isinstance(key, int | np.integer):
            return self.graphs[key]
        chosen = np.arange(len(self.graphs))[key]
        y = None if self.y is None else self.y[chosen]
        return Graphs([self.graphs[i] for i in chosen], y, self.names[chosen].tolist())

    def fingerprint(self) -> str:
        """Return a mark of the content of all graphs."""
        text = " ".join(graph.fingerprint() for graph in self.graphs)
        return hashlib.sha256(text.encode()).hexdigest()

    def take(self, index: np.ndarray) -> Graphs:
        """Return the graphs at these positions."""
        found: Graphs = self[np.asarray(index)]
        return found
