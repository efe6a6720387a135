"""Samples of a Bayesian network: ancestral ones, and three ways to respect evidence.

Ancestral sampling draws every variable after its parents. Evidence on a variable with parents makes
it wrong to draw and fix; then rows that disagree are rejected, or every row is weighted by the
probability of the evidence given its parents, w = prod P(e | parents).
References: 1988, Henrion, logic sampling; 1990, Fung, Chang, likelihood weighting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from castalia.errors import InvalidData
from castalia.models.probabilistic.conditional_nodes import GaussianNode, Node
from castalia.utils.text import listing

__all__ = ["WeightedRows", "ancestral", "rejection", "weighted"]

ROUND = 2**16  # rows drawn at once
MOST = 2**26  # rows drawn before rejection gives up


class WeightedRows(NamedTuple):
    """Rows and how much each counts.

    Attributes
    ----------
    columns
        Codes of states, or numbers, by name, (N,).
    weight
        Weights that sum to 1, (N,).
    """

    columns: dict[str, np.ndarray]
    weight: np.ndarray

    @property
    def effective_size(self) -> float:
        """Number of equal weights that would be worth as much: 1 / sum w^2."""
        return float(1 / (self.weight**2).sum())


def ancestral(
    nodes: Mapping[str, Node], n: int, random: np.random.Generator
) -> dict[str, np.ndarray]:
    """Draw rows, parents first."""
    found: dict[str, np.ndarray] = {}
    for name, node in nodes.items():
        found[name] = node.sample(found, n, random)
    return found


def rejection(
    nodes: Mapping[str, Node], n: int, evidence: Mapping[str, float], random: np.random.Generator
) -> tuple[dict[str, np.ndarray], float]:
    """Draw until n rows agree with discrete evidence; return them and the share that agreed."""
    lines = [name for name in evidence if isinstance(nodes[name], GaussianNode)]
    if lines:
        raise InvalidData(
            f"BayesianNetwork: rejection needs discrete evidence; {listing(lines, 'and')} is "
            "continuous, and no draw equals it. Use likelihood weighting."
        )
    kept: list[dict[str, np.ndarray]] = []
    agreed = drawn = 0
    while agreed < n:
        if drawn >= MOST:
            raise InvalidData(
                f"BayesianNetwork: rejection must find rows that agree with the evidence; got "
                f"{agreed} of {drawn:,} drawn. Use likelihood weighting."
            )
        rows = ancestral(nodes, ROUND, random)
        fits = np.all([rows[name] == value for name, value in evidence.items()], axis=0)
        fits = np.broadcast_to(fits, (ROUND,))
        agreed, drawn = agreed + int(fits.sum()), drawn + ROUND
        kept.append({name: values[fits] for name, values in rows.items()})
    joined = {name: np.concatenate([part[name] for part in kept])[:n] for name in nodes}
    return joined, agreed / drawn


def weighted(
    nodes: Mapping[str, Node], n: int, evidence: Mapping[str, float], random: np.random.Generator
) -> WeightedRows:
    """Draw rows with the evidence fixed, weighted by its probability given the parents."""
    found: dict[str, np.ndarray] = {}
    logs = np.zeros(n)
    for name, node in nodes.items():
        if name not in evidence:
            found[name] = node.sample(found, n, random)
            continue
        kind = np.float64 if isinstance(node, GaussianNode) else np.int16
        found[name] = np.full(n, evidence[name], dtype=kind)
        logs = logs + node.log_prob(found)
    top = logs.max()
    if top == -np.inf:
        raise InvalidData(
            "BayesianNetwork: evidence must have a probability above 0 given some of the rows "
            f"drawn; none of {n:,} allows it. Draw more, or ask `marginals`."
        )
    weight = np.exp(logs - top)
    return WeightedRows(found, weight / weight.sum())
