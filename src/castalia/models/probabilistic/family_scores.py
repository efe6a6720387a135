"""Scores of a variable and its parents, for structure search and for parameters.

BIC: ln L - (p / 2) ln N.  BDeu: the log marginal likelihood under a Dirichlet prior whose
pseudo-counts sum to the same for every table. Both are sums over variables, so a search computes
what one edge changes and keeps the rest.
Reference: 1995, Heckerman, Geiger, Chickering, Learning Bayesian networks, Machine Learning 20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import gammaln, xlogy

from castalia.models.probabilistic.conditional_nodes import (
    Columns,
    GaussianNode,
    Node,
    TableNode,
    combined,
)

__all__ = ["FamilyScores", "estimated_node", "family_moments"]

FLOOR = 1e-8  # of a variance, as a share of the column's
WIDEST = 2**22  # entries of a table that a search considers


class FamilyScores:
    """Cached scores of families on complete rows.

    Parameters
    ----------
    columns
        Codes of discrete columns, numbers of continuous ones, (N,).
    states
        Number of states of every discrete column.
    weight
        How often each row counts, (N,).
    score
        ``"bic"`` or ``"bdeu"``.
    prior
        Sum of the pseudo-counts of a table, for BDeu.
    """

    def __init__(
        self,
        columns: Columns,
        states: Mapping[str, int],
        weight: np.ndarray,
        score: str = "bic",
        prior: float = 1.0,
    ) -> None:
        self.columns, self.states, self.weight = columns, states, weight
        self.score, self.prior, self.total = score, prior, float(weight.sum())
        self._plain = None if (weight != 1).any() else True
        self._cache: dict[tuple[str, frozenset[str]], float] = {}

    def __call__(self, child: str, parents: frozenset[str]) -> float:
        """Return the score of a variable with these parents; higher is better."""
        key = child, parents
        if key not in self._cache:
            ordered = sorted(parents)
            discrete = child in self.states
            self._cache[key] = (
                self._table(child, ordered) if discrete else self._line(child, ordered)
            )
        return self._cache[key]

    def _table(self, child: str, parents: Sequence[str]) -> float:
        sizes = [self.states[name] for name in (*parents, child)]
        if np.prod(sizes, dtype=float) > WIDEST:
            return -np.inf
        counts = self.counts((*parents, child), sizes).reshape(-1, sizes[-1])
        return self._bic(counts) if self.score == "bic" else self._bdeu(counts)

    def counts(self, names: Sequence[str], sizes: Sequence[int]) -> np.ndarray:
        """Return how often each combination of states occurs."""
        at = combined([self.columns[name] for name in names], sizes)
        weight = None if self._plain else self.weight
        return np.bincount(at, weight, int(np.prod(sizes))).astype(np.float64)

    def _bic(self, counts: np.ndarray) -> float:
        above = counts.sum(axis=1)
        fit = xlogy(counts, counts).sum() - xlogy(above, above).sum()
        free = len(counts) * (counts.shape[1] - 1)
        return float(fit - 0.5 * np.log(self.total) * free)

    def _bdeu(self, counts: np.ndarray) -> float:
        q, k = counts.shape
        each, row = self.prior / (q * k), self.prior / q
        cells = gammaln(counts + each).sum() - q * k * gammaln(each)
        return float(cells - (gammaln(counts.sum(axis=1) + row) - gammaln(row)).sum())

    def _line(self, child: str, parents: Sequence[str]) -> float:
        given = [name for name in parents if name in self.states]
        lines = [name for name in parents if name not in self.states]
        sizes = [self.states[name] for name in given]
        if np.prod(sizes, dtype=float) > WIDEST:
            return -np.inf
        moments = family_moments(self.columns, (*lines, child), given, sizes, self.weight)
        _, variance = regression(moments, self._floor(child))
        n = moments[:, 0, 0]
        fit = -0.5 * (n * (np.log(2 * np.pi * variance) + 1)).sum()
        return float(fit - 0.5 * np.log(self.total) * len(n) * (len(lines) + 2))

    def _floor(self, child: str) -> float:
        return variance_floor(self.columns[child], self.weight)


def variance_floor(values: np.ndarray, weight: np.ndarray) -> float:
    """Return the smallest variance that a line through a column may leave."""
    mean = np.average(values, weights=weight)
    return FLOOR * float(np.average((values - mean) ** 2, weights=weight)) + 1e-12


def family_moments(
    columns: Columns,
    lines: Sequence[str],
    given: Sequence[str],
    sizes: Sequence[int],
    weight: np.ndarray,
) -> np.ndarray:
    """Return sums of w z z', z = (1, lines …), by combination of the given, (q, G + 2, G + 2)."""
    q = int(np.prod(sizes, dtype=int))
    at = np.broadcast_to(combined([columns[name] for name in given], sizes), weight.shape)
    z = [np.ones_like(weight), *(columns[name] for name in lines)]
    found = np.empty((q, len(z), len(z)))
    for i, one in enumerate(z):
        for j, other in enumerate(z[: i + 1]):
            found[:, i, j] = found[:, j, i] = np.bincount(at, weight * one * other, q)
    return found


def regression(moments: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Return least-squares coefficients (q, G + 1), bias first, and residual variances (q,)."""
    n = np.maximum(moments[:, 0, 0], 1e-300)
    mean = moments[:, 0, 1:] / n[:, None]
    cov = moments[:, 1:, 1:] / n[:, None, None] - mean[:, :, None] * mean[:, None, :]
    inner, across = cov[:, :-1, :-1], cov[:, :-1, -1]
    weights = (np.linalg.pinv(inner, rcond=1e-10, hermitian=True) @ across[..., None])[..., 0]
    variance = np.maximum(cov[:, -1, -1] - (weights * across).sum(axis=1), floor)
    bias = mean[:, -1] - (weights * mean[:, :-1]).sum(axis=1)
    return np.concatenate([bias[:, None], weights], axis=1), variance


def estimated_node(
    name: str,
    parents: Sequence[str],
    columns: Columns,
    states: Mapping[str, tuple[object, ...]],
    weight: np.ndarray,
    prior: float,
    moments: np.ndarray | None = None,
) -> Node:
    """Return a node with the parameters of its rows; pseudo-counts pull tables to the middle.

    A line for each combination of discrete parents is pulled to the line of all rows together, as
    by ``prior`` rows of it. ``moments`` are given where the rows are not complete.
    """
    given = [p for p in parents if p in states]
    sizes = [len(states[p]) for p in given]
    if name in states:
        k = len(states[name])
        at = combined([columns[p] for p in (*given, name)], (*sizes, k))
        found = np.bincount(at, weight, int(np.prod(sizes, dtype=int)) * k).reshape(*sizes, k)
        counts = found + prior / found.size
        total = counts.sum(axis=-1, keepdims=True)
        table = np.where(total > 0, counts / np.where(total > 0, total, 1), 1 / k)
        return TableNode(name, states[name], table, tuple(given))
    lines = [p for p in parents if p not in states]
    if moments is None:
        moments = family_moments(columns, (*lines, name), given, sizes, weight)
    whole = moments.sum(axis=0)
    empty = np.where(moments[:, 0, 0] > 0, 0.0, 1.0)
    pulled = moments + (prior + empty)[:, None, None] * whole / whole[0, 0] if given else moments
    line, variance = regression(pulled, variance_floor(columns[name], weight))
    return GaussianNode(
        name,
        line[:, 0].reshape(sizes),
        line[:, 1:].reshape(*sizes, len(lines)),
        variance.reshape(sizes),
        tuple(lines),
        tuple(given),
    )
