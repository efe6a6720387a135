"""What a link predictor has to beat: guessing, and the neighbours that two nodes share.

Common neighbours: |N(u) & N(v)|. Adamic–Adar: the sum over them of 1 / log degree
(2003, Adamic, Adar, Friends and neighbors on the web, Social Networks 25).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from castalia.data.graphs import GraphPairs
from castalia.method.classic_model import ClassicModel

__all__ = ["PAIR_BASELINES", "SharedNeighbours", "pair_baseline"]

PAIR_BASELINES = {
    "guess": "Guessing",
    "common": "Common neighbours",
    "adamic": "Adamic–Adar",
}


class SharedNeighbours:
    """Pairs of nodes as one number: the neighbours that both have.

    Parameters
    ----------
    rare
        Whether a neighbour counts by one over the logarithm of its degree.
    """

    def __init__(self, rare: bool = False) -> None:
        self.rare = rare

    def fit(self, view: GraphPairs) -> SharedNeighbours:
        """Return itself: there is nothing to learn."""
        return self

    def encode(self, view: GraphPairs) -> np.ndarray:
        """Return log(1 + what they share), (n, 1)."""
        matrix: Any = view.graph.scipy()
        near = csr_array(((matrix + matrix.T) != 0).astype(np.float64))  # a direction is no matter
        near.setdiag(0)
        near.eliminate_zeros()
        degree = np.diff(near.indptr)
        worth = 1 / np.log(np.maximum(degree, 2)) if self.rare else np.ones(len(degree))
        u, v = view.index.T
        shared = near[u].multiply(near[v]) @ worth
        return np.log1p(np.asarray(shared)).reshape(-1, 1)

    def state(self) -> dict[str, Any]:
        """Return how neighbours count, as JSON values."""
        return {"rare": self.rare}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SharedNeighbours:
        """Return what has this `state`."""
        return cls(bool(state["rare"]))


def pair_baseline(key: str) -> ClassicModel:
    """Return one of `PAIR_BASELINES`, not yet fitted."""
    made = DummyClassifier(strategy="prior") if key == "guess" else LogisticRegression(C=100.0)
    return ClassicModel(made, SharedNeighbours(key == "adamic"))
