"""Nodes of a Bayesian network: one conditional distribution each.

Table: P(x = k | parents) is an entry. Linear-Gaussian: x ~ N(b_d + w_d . parents, v_d), with one
set (b, w, v) for every combination d of its discrete parents.
Shapes: N rows, k states, q combinations of discrete parents, G continuous parents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from castalia.base.saved_values import register
from castalia.errors import InvalidData, ShapeMismatch
from castalia.probability.d_separation import topological_order
from castalia.utils.text import did_you_mean, listing

__all__ = ["Columns", "GaussianNode", "Node", "TableNode", "checked_nodes", "combined"]

Columns = Mapping[str, np.ndarray]  # codes of states, -1 where missing; numbers, NaN where missing
SUM_TOLERANCE = 1e-4  # of published tables, which are rounded


@register
@dataclass(frozen=True, eq=False)
class TableNode:
    """A discrete variable and its table.

    Parameters
    ----------
    name
        Of the variable.
    states
        Its values.
    table
        Probabilities, (states of each parent …, states); the last axis sums to 1.
    parents
        Names of the parents, all discrete, in the order of the axes.

    Examples
    --------
    >>> TableNode("wet", ("yes", "no"), [[0.9, 0.1], [0.2, 0.8]], parents=("rain",)).n_parameters
    2
    """

    name: str
    states: tuple[Any, ...]
    table: Any
    parents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", tuple(self.states))
        object.__setattr__(self, "parents", tuple(self.parents))
        object.__setattr__(self, "table", np.asarray(self.table, dtype=np.float64))

    @property
    def n_parameters(self) -> int:
        """Free entries of the table: (k - 1) times the combinations of the parents."""
        return (len(self.states) - 1) * int(np.prod(self.table.shape[:-1], dtype=np.int64))

    def log_prob(self, columns: Columns) -> np.ndarray:
        """Return ln P(x | parents) of complete rows, (N,)."""
        at = combined([columns[name] for name in (*self.parents, self.name)], self.table.shape)
        with np.errstate(divide="ignore"):
            return np.log(self.table.reshape(-1))[at]

    def sample(self, columns: Columns, n: int, random: np.random.Generator) -> np.ndarray:
        """Draw a state for each row, given the parents' columns, (n,)."""
        rows = self.table.reshape(-1, len(self.states))
        edges = np.ascontiguousarray(np.cumsum(rows, axis=1)[:, :-1].T)  # (k - 1, q)
        edges[edges > 1 - 1e-12] = 1.0  # no state of probability 0 is drawn by rounding
        at = combined([columns[name] for name in self.parents], self.table.shape[:-1])
        u = random.random(n)
        found = np.zeros(n, dtype=np.int16)
        for edge in edges:
            found += u >= (edge[at] if self.parents else edge[0])
        return found


@register
@dataclass(frozen=True, eq=False)
class GaussianNode:
    """A continuous variable: a linear function of continuous parents and normal noise.

    Parameters
    ----------
    name
        Of the variable.
    bias
        Mean where all continuous parents are 0; (states of each discrete parent …).
    weights
        One for each continuous parent, (…, G).
    variance
        Of the noise, above 0, (…).
    parents
        Names of continuous parents, in the order of the weights.
    given
        Names of discrete parents, in the order of the axes.

    Examples
    --------
    >>> GaussianNode("child", 80.0, [0.5], 36.0, parents=("mother",)).n_parameters
    3
    """

    name: str
    bias: Any
    weights: Any
    variance: Any
    parents: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", tuple(self.parents))
        object.__setattr__(self, "given", tuple(self.given))
        for name in ("bias", "weights", "variance"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))

    @property
    def n_parameters(self) -> int:
        """Bias, weights and variance for each combination of the discrete parents."""
        return int(self.bias.size) * (2 + len(self.parents))

    def at(self, columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return bias, weights and variance of rows: (N,), (N, G), (N,), or one row for all."""
        at = combined([columns[name] for name in self.given], self.bias.shape)
        weights = self.weights.reshape(self.bias.size, len(self.parents))
        return self.bias.reshape(-1)[at], weights[at], self.variance.reshape(-1)[at]

    def mean(self, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance given the parents, (N,) each."""
        bias, weights, variance = self.at(columns)
        total = bias
        for j, name in enumerate(self.parents):
            total = total + weights[:, j] * columns[name]
        return total, variance

    def log_prob(self, columns: Columns) -> np.ndarray:
        """Return the log density of complete rows, (N,)."""
        mean, variance = self.mean(columns)
        gap = columns[self.name] - mean
        return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + gap**2 / variance))

    def sample(self, columns: Columns, n: int, random: np.random.Generator) -> np.ndarray:
        """Draw a number for each row, given the parents' columns, (n,)."""
        mean, variance = self.mean(columns)
        return np.asarray(mean + np.sqrt(variance) * random.standard_normal(n))


Node = TableNode | GaussianNode


def combined(codes: Sequence[np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """Return the number of each row's combination of states, (N,); one zero without variables.

    >>> combined([np.array([0, 1]), np.array([2, 0])], [2, 3])
    array([2, 3])
    """
    total: np.ndarray = np.zeros(1, dtype=np.intp)
    for code, size in zip(codes, sizes, strict=False):
        total = total * size + code
    return total


def checked_nodes(nodes: Sequence[Node]) -> dict[str, Node]:
    """Return nodes by name, parents first, or say which of them is wrong and how."""
    known = {node.name: node for node in nodes}
    if len(known) < len(nodes) or not known:
        names = [node.name for node in nodes]
        twice = next((name for name in names if names.count(name) > 1), "none")
        raise InvalidData(f"BayesianNetwork: nodes must have different names; got `{twice}`.")
    above = {node.name: _parents(node) for node in nodes}
    for node in nodes:
        for name in above[node.name]:
            if name not in known:
                raise InvalidData(
                    f"BayesianNetwork: the parents of `{node.name}` must be nodes, "
                    f"{listing(known)}; got `{name}`.{did_you_mean(name, known)}"
                )
    order = topological_order(above)
    return {name: _checked(known[name], known) for name in order}


def _parents(node: Node) -> tuple[str, ...]:
    return node.parents if isinstance(node, TableNode) else (*node.given, *node.parents)


def _checked(node: Node, known: Mapping[str, Node]) -> Node:
    discrete = node.parents if isinstance(node, TableNode) else node.given
    for name in discrete:
        if not isinstance(known[name], TableNode):
            raise InvalidData(
                f"BayesianNetwork: the discrete parents of `{node.name}` must be tables; `{name}` "
                "is continuous. Reverse the edge or cut `{name}` into intervals.".replace(
                    "{name}", name
                )
            )
    shape = tuple(len(known[name].states) for name in discrete)  # type: ignore[union-attr]
    return (
        _checked_table(node, shape)
        if isinstance(node, TableNode)
        else _gaussian(node, shape, known)
    )


def _checked_table(node: TableNode, shape: tuple[int, ...]) -> TableNode:
    wanted = (*shape, len(node.states))
    if node.table.shape != wanted:
        raise ShapeMismatch(
            f"BayesianNetwork: the table of `{node.name}` must have shape {wanted}, the states of "
            f"{listing((*node.parents, node.name), 'and')}; got {node.table.shape}."
        )
    total = node.table.sum(axis=-1)
    off = np.abs(total - 1)
    if (node.table < 0).any() or not (off <= SUM_TOLERANCE).all():
        at = tuple(
            map(
                int,
                np.unravel_index(
                    int(np.nanargmax(np.where(np.isnan(off), np.inf, off))), off.shape
                ),
            )
        )
        low = f" and the smallest entry is {node.table.min():g}" if (node.table < 0).any() else ""
        where = f" for parents in states {at}" if node.parents else ""
        raise InvalidData(
            f"BayesianNetwork: every row of the table of `{node.name}` must be at least 0 and sum "
            f"to 1; the row{where} sums to {float(total[at]):g}, {float(total[at]) - 1:+.3g} off"
            f"{low}. Divide the row by its sum."
        )
    return TableNode(node.name, node.states, node.table / total[..., None], node.parents)


def _gaussian(
    node: GaussianNode, shape: tuple[int, ...], known: Mapping[str, Node]
) -> GaussianNode:
    words = [name for name in node.parents if not isinstance(known[name], GaussianNode)]
    if words:
        raise InvalidData(
            f"BayesianNetwork: `parents` of `{node.name}` must be continuous; `{words[0]}` is "
            "discrete. Name it in `given`."
        )
    wanted = {"bias": shape, "weights": (*shape, len(node.parents)), "variance": shape}
    for name, size in wanted.items():
        if getattr(node, name).shape != size:
            raise ShapeMismatch(
                f"BayesianNetwork: `{name}` of `{node.name}` must have shape {size}; got "
                f"{getattr(node, name).shape}."
            )
    if not (node.variance > 0).all():
        raise InvalidData(
            f"BayesianNetwork: the variance of `{node.name}` must be above 0; got "
            f"{node.variance.min():g}."
        )
    return node
