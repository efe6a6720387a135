"""Expectation maximisation for rows with missing values.

Expectation: a row is replaced by one row for every combination of its missing states, weighted by
the posterior; missing numbers by their mean and covariance given the rest. Maximisation: the
parameters of the completed rows. With a Dirichlet prior, ln L + sum alpha ln theta never falls.
Reference: 1977, Dempster, Laird, Rubin; 1995, Lauritzen, The EM algorithm for graphical association
models with missing data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, xlogy

from castalia.errors import InvalidData
from castalia.models.probabilistic.conditional_nodes import (
    Columns,
    GaussianNode,
    Node,
    TableNode,
    combined,
)
from castalia.models.probabilistic.family_scores import estimated_node, family_moments
from castalia.models.probabilistic.network_posterior import moments_of, spread
from castalia.probability.d_separation import topological_order
from castalia.utils.text import listing

__all__ = ["filled_in", "fitted_nodes", "missing_in", "patterns"]

MOST = 4096  # combinations of missing states in one row
Nodes = Mapping[str, Node]
States = Mapping[str, tuple[object, ...]]


class _Completed(NamedTuple):
    """Completed rows, their weights, and the log-likelihood of what was known.

    ``covariance`` (r, G, G) is that of missing numbers in the last r rows; the others lack none.
    """

    columns: dict[str, np.ndarray]
    weight: np.ndarray
    covariance: np.ndarray
    log_likelihood: float


def missing_in(columns: Columns, states: States) -> dict[str, np.ndarray]:
    """Return where each column has no value, (N,)."""
    return {n: v < 0 if n in states else np.isnan(v) for n, v in columns.items()}


def filled_in(columns: Columns, states: States, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Fill gaps with the commonest state or the mean, a start for the search and for EM."""
    found = {}
    for name, gap in missing_in(columns, states).items():
        values = columns[name]
        if gap.any():
            seen, w = values[~gap], weight[~gap]
            middle = (
                np.bincount(seen, w, len(states[name])).argmax()
                if name in states
                else np.average(seen, weights=w)
            )
            values = np.where(gap, middle, values)
        found[name] = values
    return found


def patterns(columns: Columns, states: States) -> Iterator[tuple[np.ndarray, list[str]]]:
    """Yield the rows that lack the same columns, with the names of those they have."""
    gaps = missing_in(columns, states)
    names = list(gaps)
    marks = np.stack([gaps[name] for name in names], axis=1)
    different, which = np.unique(marks, axis=0, return_inverse=True)
    which = which.reshape(-1)
    for i, mark in enumerate(different):
        known = [name for name, gap in zip(names, mark, strict=True) if not gap]
        yield np.flatnonzero(which == i), known


def fitted_nodes(
    parents: Mapping[str, tuple[str, ...]],
    columns: Columns,
    states: States,
    weight: np.ndarray,
    *,
    prior: float,
    steps: int = 100,
    tol: float = 1e-6,
) -> tuple[dict[str, Node], list[float]]:
    """Return the parameters of a graph, and what each step of EM reached; no gaps, no steps."""
    order = topological_order(parents)
    start = filled_in(columns, states, weight)
    nodes = {n: estimated_node(n, parents[n], start, states, weight, prior) for n in order}
    reached: list[float] = []
    if not any(gap.any() for gap in missing_in(columns, states).values()):
        return nodes, reached
    for _ in range(steps):
        rows = _expected(nodes, columns, states, weight)
        reached.append(rows.log_likelihood + _log_prior(nodes, prior))
        nodes = {n: _maximised(n, parents[n], rows, nodes, states, prior) for n in order}
        if len(reached) > 1 and reached[-1] - reached[-2] < tol * abs(reached[-1]):
            break
    return nodes, reached


def _log_prior(nodes: Nodes, prior: float) -> float:
    """Return sum alpha ln theta of the tables."""
    tables = [node.table for node in nodes.values() if isinstance(node, TableNode)]
    return float(sum(xlogy(prior / table.size, table).sum() for table in tables))


def _expected(nodes: Nodes, columns: Columns, states: States, weight: np.ndarray) -> _Completed:
    parts = [
        _completed(nodes, {n: columns[n][rows] for n in known}, weight[rows])
        for rows, known in patterns(columns, states)
        if known
    ]
    parts.sort(key=lambda part: len(part.covariance) > 0)
    return _Completed(
        {n: np.concatenate([part.columns[n] for part in parts]) for n in nodes},
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.covariance for part in parts]),
        sum(part.log_likelihood for part in parts),
    )


def _completed(nodes: Nodes, known: Columns, weight: np.ndarray) -> _Completed:
    """Complete rows that lack the same columns."""
    free = [n for n, node in nodes.items() if isinstance(node, TableNode) and n not in known]
    lines = [n for n, node in nodes.items() if isinstance(node, GaussianNode)]
    _check_combinations(nodes, free)
    rows = spread(nodes, free, known, len(weight))
    tables = [node.log_prob(rows) for node in nodes.values() if isinstance(node, TableNode)]
    logs = np.zeros(len(next(iter(rows.values())))) + sum(tables)
    seen = [n for n in lines if n in known]
    covariance = np.zeros((0, len(lines), len(lines)))
    if len(seen) == len(lines):
        density = sum((nodes[n].log_prob(rows) for n in lines), np.zeros(1))
    else:
        moments, density = moments_of(nodes, lines, rows, seen)
        covariance = moments.covariance
        rows |= {n: moments.mean[:, i] for i, n in enumerate(lines) if n not in known}
    logs = (logs + density).reshape(len(weight), -1)
    total = logsumexp(logs, axis=1)
    share = np.exp(logs - total[:, None]) * weight[:, None]
    return _Completed(rows, share.ravel(), covariance, float(weight @ total))


def _check_combinations(nodes: Nodes, free: list[str]) -> None:
    sizes: list[int] = [len(nodes[n].states) for n in free]  # type: ignore[union-attr]
    count = math.prod(sizes)
    if count > MOST:
        raise InvalidData(
            f"BayesianNetwork: a row must lack few discrete values; one lacks {len(free)}, "
            f"{listing(free, 'and', 5)}, which makes {count:,} combinations, above {MOST:,}. "
            "Leave out such rows or columns."
        )


def _maximised(
    name: str,
    parents: tuple[str, ...],
    rows: _Completed,
    nodes: Nodes,
    states: States,
    prior: float,
) -> Node:
    if name in states:
        return estimated_node(name, parents, rows.columns, states, rows.weight, prior)
    given = [p for p in parents if p in states]
    family = [*(p for p in parents if p not in states), name]
    sizes = [len(states[p]) for p in given]
    moments = family_moments(rows.columns, family, given, sizes, rows.weight)
    lines = [n for n, node in nodes.items() if isinstance(node, GaussianNode)]
    last = len(rows.weight) - len(rows.covariance)
    at = np.broadcast_to(combined([rows.columns[p] for p in given], sizes), rows.weight.shape)[
        last:
    ]
    for i, one in enumerate(family):
        for j, other in enumerate(family):
            more = rows.weight[last:] * rows.covariance[:, lines.index(one), lines.index(other)]
            moments[:, i + 1, j + 1] += np.bincount(at, more, len(moments))
    return estimated_node(name, parents, rows.columns, states, rows.weight, prior, moments)
