"""Posterior distributions in a Bayesian network, exact, for one case or many rows at once.

Only ancestors of what is asked and known matter. Tables are cut at the evidence and summed out by
min-fill. Continuous evidence becomes one factor over the discrete parents of its ancestors: given
those, the continuous variables are jointly normal.
Shapes: N rows, C combinations of discrete parents, G continuous variables.
Reference: 1992, Lauritzen, Propagation of probabilities, means and variances in mixed graphical
association models, JASA 87.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from castalia.errors import InvalidData
from castalia.models.probabilistic.conditional_nodes import Columns, GaussianNode, Node, TableNode
from castalia.probability.d_separation import ancestors
from castalia.probability.factors import (
    LARGEST,
    ROW,
    Factor,
    contract,
    cut_evidence,
    sum_out,
)

__all__ = [
    "Moments",
    "Posterior",
    "joint_factors",
    "mixture_of",
    "moments_of",
    "parents_of",
    "posterior_of",
]

Nodes = Mapping[str, Node]


class Posterior(NamedTuple):
    """A table over some discrete variables, rows first, and the log probability of the evidence."""

    table: np.ndarray
    log_evidence: np.ndarray


class Moments(NamedTuple):
    """Means (C, G) and covariances (C, G, G) of continuous variables, by name."""

    names: list[str]
    mean: np.ndarray
    covariance: np.ndarray


def parents_of(nodes: Nodes) -> dict[str, tuple[str, ...]]:
    """Return the parents of every node, discrete ones first."""
    return {
        name: node.parents if isinstance(node, TableNode) else (*node.given, *node.parents)
        for name, node in nodes.items()
    }


def posterior_of(nodes: Nodes, targets: Sequence[str], evidence: Columns) -> Posterior:
    """Return P(targets | evidence) of discrete targets, (N, states …), for rows of evidence."""
    factors, scale = joint_factors(nodes, targets, evidence)
    left, more = sum_out(factors, targets)
    n = _rows(evidence)
    joint = contract([*left, Factor((ROW,), np.ones(n))], [ROW, *targets]).table
    total = joint.reshape(n, -1).sum(axis=1)
    _check_possible(total, evidence)
    shape = (n,) + (1,) * len(targets)
    return Posterior(joint / total.reshape(shape), np.log(total) + more + scale)


def _rows(evidence: Columns) -> int:
    return len(next(iter(evidence.values()))) if evidence else 1


def _check_possible(total: np.ndarray, evidence: Columns) -> None:
    bad = np.flatnonzero(~(total > 0))
    if len(bad):
        where = f" of row {bad[0]}" if len(total) > 1 else ""
        raise InvalidData(
            f"BayesianNetwork: evidence must have a probability above 0; that{where} on "
            f"{', '.join(f'`{name}`' for name in list(evidence)[:6])} is impossible in this "
            "network. Drop part of it, or learn the tables with `prior` above 0."
        )


def joint_factors(
    nodes: Nodes, targets: Sequence[str], evidence: Columns
) -> tuple[list[Factor], Any]:
    """Return the factors whose product is P(rest, evidence), and a log scale a row."""
    above = parents_of(nodes)
    relevant = ancestors(above, [*targets, *evidence])
    known = {n: v for n, v in evidence.items() if isinstance(nodes[n], TableNode)}
    tables = [
        Factor((*node.parents, name), node.table)
        for name, node in nodes.items()
        if isinstance(node, TableNode) and name in relevant
    ]
    factors = cut_evidence(tables, known)
    if len(known) == len(evidence):
        return factors, 0.0
    density, scale = _density_factor(nodes, evidence)
    return [*factors, density], scale


def _density_factor(nodes: Nodes, evidence: Columns) -> tuple[Factor, np.ndarray]:
    """Return the density of continuous evidence given its discrete parents, largest entry 1."""
    seen = [n for n in evidence if isinstance(nodes[n], GaussianNode)]
    names, free = _continuous(nodes, seen, evidence)
    sizes = [len(nodes[name].states) for name in free]  # type: ignore[union-attr]
    n = _rows(evidence)
    columns = spread(nodes, free, evidence, n)
    if all(name in evidence for name in names):
        total = sum(nodes[name].log_prob(columns) for name in names)
        logs = np.broadcast_to(np.asarray(total), (n * int(np.prod(sizes, dtype=int)),))
    else:
        logs = moments_of(nodes, names, columns, seen)[1]
    table = logs.reshape(n, *sizes)
    top = table.reshape(n, -1).max(axis=1)
    return Factor((ROW, *free), np.exp(table - top.reshape(n, *(1,) * len(sizes)))), top


def _continuous(
    nodes: Nodes, wanted: Sequence[str], evidence: Columns
) -> tuple[list[str], list[str]]:
    """Return the continuous ancestors of variables, and their discrete parents not yet known."""
    relevant = ancestors(parents_of(nodes), wanted)
    names = [n for n, node in nodes.items() if n in relevant and isinstance(node, GaussianNode)]
    given = {p for n in names for p in nodes[n].given}  # type: ignore[union-attr]
    return names, [name for name in nodes if name in given and name not in evidence]


def spread(nodes: Nodes, free: Sequence[str], evidence: Columns, n: int) -> dict[str, np.ndarray]:
    """Return every row once for each combination of states, (N C,)."""
    sizes = [len(nodes[name].states) for name in free]  # type: ignore[union-attr]
    count = int(np.prod(sizes, dtype=float))
    if n * count > LARGEST:
        raise InvalidData(
            f"BayesianNetwork: continuous evidence must depend on few discrete variables; got "
            f"{count:,} combinations of {len(free)} for {n:,} rows. Give more evidence."
        )
    grid = np.indices(sizes).reshape(len(sizes), count) if sizes else np.zeros((0, 1), dtype=int)
    found = {name: np.repeat(values, count) for name, values in evidence.items()}
    return found | {name: np.tile(grid[i], n) for i, name in enumerate(free)}


def moments_of(
    nodes: Nodes, names: Sequence[str], columns: Columns, seen: Sequence[str]
) -> tuple[Moments, np.ndarray]:
    """Return moments of continuous variables given those seen, and the log density of these, (C,).

    The columns hold every discrete parent and the seen values; names are in topological order.
    """
    mean, cov = _prior_moments(nodes, names, columns)
    if not seen:
        return Moments(list(names), mean, cov), np.zeros(len(mean))
    at = [names.index(name) for name in seen]
    gap = np.stack([columns[name] for name in seen], axis=-1) - mean[:, at]  # (C, S)
    inner = cov[:, at][:, :, at]
    solved = np.linalg.solve(inner, np.concatenate([gap[..., None], cov[:, at]], axis=-1))
    logs = -0.5 * (
        (gap * solved[..., 0]).sum(axis=-1)
        + np.linalg.slogdet(inner)[1]
        + len(at) * np.log(2 * np.pi)
    )
    across = cov[:, :, at]  # (C, G, S)
    mean = mean + (across @ solved[..., :1])[..., 0]
    return Moments(list(names), mean, cov - across @ solved[..., 1:]), logs


def _prior_moments(
    nodes: Nodes, names: Sequence[str], columns: Columns
) -> tuple[np.ndarray, np.ndarray]:
    """Return means (C, G) and covariances (C, G, G) given the discrete parents, node by node."""
    parts = {name: nodes[name].at(columns) for name in names}  # type: ignore[union-attr]
    count = max((len(values) for values in columns.values()), default=1)
    g = len(names)
    mean, cov = np.zeros((count, g)), np.zeros((count, g, g))
    for i, name in enumerate(names):
        bias, weights, variance = parts[name]
        above = [names.index(parent) for parent in nodes[name].parents]
        mean[:, i] = bias + (weights * mean[:, above]).sum(axis=1)
        row = np.einsum("cj,cjg->cg", np.broadcast_to(weights, (count, len(above))), cov[:, above])
        cov[:, i, :], cov[:, :, i] = row, row
        cov[:, i, i] = variance + (weights * row[:, above]).sum(axis=1)
    return mean, cov


def mixture_of(
    nodes: Nodes, target: str, evidence: Columns
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, means and variances, (N, C) each, of a continuous variable given evidence."""
    seen = [n for n in evidence if isinstance(nodes[n], GaussianNode)]
    names, free = _continuous(nodes, [target, *seen], evidence)
    n = _rows(evidence)
    columns = spread(nodes, free, evidence, n)
    moments, _ = moments_of(nodes, names, columns, seen)
    weight = posterior_of(nodes, free, evidence).table.reshape(n, -1)
    i = names.index(target)
    return weight, moments.mean[:, i].reshape(n, -1), moments.covariance[:, i, i].reshape(n, -1)
