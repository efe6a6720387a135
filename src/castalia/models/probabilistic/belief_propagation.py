"""Sum-product and max-product messages on a factor graph, and mean field.

Variable to factor: the sum of the other factors' messages. Factor to variable: log sum, or max,
over the other variables of the log-potential plus their messages. On a tree two passes are exact;
with loops messages go round, damped, until they stand still or the steps are over.
Mean field: q = prod q_i, and ln q_i = E_q ln p~ + constant in turns; E_q ln p~ + H(q) never falls
and stays below ln Z. References: 2001, Kschischang, Frey, Loeliger, Factor graphs and the
sum-product algorithm; 2005, Yedidia, Freeman, Weiss, Constructing free-energy approximations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from castalia.errors import InvalidData
from castalia.probability.factors import Factor, sizes_of

__all__ = ["Beliefs", "MeanField", "mean_field", "propagate"]

Messages = dict[tuple[int, str], np.ndarray]


class Beliefs(NamedTuple):
    """What messages say in the end.

    Attributes
    ----------
    marginals
        Of each variable; max-marginals, the largest 1, in max-product.
    log_partition
        ln Z by Bethe's formula: exact on trees; NaN in max-product.
    converged
        Whether the messages stood still.
    changes
        Largest change of a message in each round: falling, it settles; even, it goes round.
    tree
        Whether the graph has no loop, so that the answer is exact.
    """

    marginals: dict[str, np.ndarray]
    log_partition: float
    converged: bool
    changes: list[float]
    tree: bool

    def report(self) -> str:
        """Say in a sentence whether to trust the answer."""
        rounds = f"{len(self.changes)} round{'s' * (len(self.changes) != 1)}"
        if not self.converged:
            return (
                f"Messages still change by {self.changes[-1]:.2g} after {rounds}. Raise `damping` "
                "or `steps`, or use `gibbs`."
            )
        if self.tree:
            return f"Messages stood still after {rounds}; the graph is a tree, so this is exact."
        return f"Messages stood still after {rounds}; the graph has loops, so this is approximate."


class MeanField(NamedTuple):
    """Independent distributions near a joint one, and the lower bound of ln Z after each round."""

    marginals: dict[str, np.ndarray]
    bounds: list[float]


def propagate(
    factors: Sequence[Factor],
    *,
    maximum: bool = False,
    damping: float = 0.0,
    steps: int = 200,
    tol: float = 1e-10,
) -> Beliefs:
    """Send messages along all edges of a factor graph of log-potentials."""
    sizes = sizes_of(factors)
    edges = [(f, name) for f, factor in enumerate(factors) for name in factor.scope]
    at: dict[str, list[int]] = {name: [] for name in sizes}
    for f, name in edges:
        at[name].append(f)
    tree = _is_tree(factors)
    damping = 0.0 if tree else damping
    messages = {(f, name): np.zeros(sizes[name]) for f, name in edges}  # factor to variable
    changes: list[float] = []
    while len(changes) < steps and (not changes or changes[-1] > tol):
        fresh = _round(factors, messages, at, maximum)
        changes.append(max((_apart(fresh[e], messages[e]) for e in edges), default=0.0))
        messages = {e: (1 - damping) * fresh[e] + damping * messages[e] for e in edges}
    found = {
        n: _normal(sum((messages[f, n] for f in at[n]), np.zeros(sizes[n])), maximum) for n in sizes
    }
    bethe = np.nan if maximum else _bethe(factors, messages, at, found)
    return Beliefs(found, bethe, changes[-1] <= tol, changes, tree)


def _round(
    factors: Sequence[Factor], messages: Messages, at: Mapping[str, list[int]], maximum: bool
) -> Messages:
    total = _totals(messages, at)
    fresh: Messages = {}
    for f, factor in enumerate(factors):
        inward = [_less(total[name], messages[f, name]) for name in factor.scope]
        for axis, name in enumerate(factor.scope):
            fresh[f, name] = _centred(_message(factor, inward, axis, maximum))
    return fresh


def _totals(messages: Messages, at: Mapping[str, list[int]]) -> dict[str, np.ndarray]:
    """Return the sum of the messages to each variable."""
    return {name: np.sum([messages[f, name] for f in near], axis=0) for name, near in at.items()}


def _less(total: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return a sum of messages without one of them; minus infinity stays."""
    return np.where(np.isneginf(own), total, total - np.where(np.isneginf(own), 0.0, own))


def _message(factor: Factor, inward: Sequence[np.ndarray], axis: int, maximum: bool) -> np.ndarray:
    table = _with_messages(
        factor, [m if i != axis else np.zeros_like(m) for i, m in enumerate(inward)]
    )
    others = tuple(i for i in range(table.ndim) if i != axis)
    return np.asarray(table.max(axis=others) if maximum else logsumexp(table, axis=others))


def _with_messages(factor: Factor, inward: Sequence[np.ndarray]) -> np.ndarray:
    table = factor.table
    for i, message in enumerate(inward):
        table = table + message.reshape([-1 if j == i else 1 for j in range(table.ndim)])
    return table


def _centred(message: np.ndarray) -> np.ndarray:
    top = message.max()
    return message - top if np.isfinite(top) else message


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(np.exp(one) - np.exp(other)).max())


def _normal(logs: np.ndarray, maximum: bool) -> np.ndarray:
    p = np.exp(logs - logs.max())
    return np.asarray(p if maximum else p / p.sum())


def _is_tree(factors: Sequence[Factor]) -> bool:
    """Whether variables and factors form no loop: every edge joins two parts."""
    part: dict[object, object] = {}

    def root(node: object) -> object:
        while part.setdefault(node, node) != node:
            node = part[node]
        return node

    for f, factor in enumerate(factors):
        for name in factor.scope:
            one, other = root(f), root(name)
            if one == other:
                return False
            part[one] = other
    return True


def _bethe(
    factors: Sequence[Factor],
    messages: Messages,
    at: Mapping[str, list[int]],
    marginals: Mapping[str, np.ndarray],
) -> float:
    """Return Bethe's ln Z: entropies and mean log-potentials of the beliefs."""
    total = _totals(messages, at)
    found = 0.0
    for f, factor in enumerate(factors):
        logs = _with_messages(factor, [_less(total[n], messages[f, n]) for n in factor.scope])
        b = np.exp(logs - logsumexp(logs))
        table = np.where(b > 0, factor.table, 0.0)
        found += float((b * table).sum() + _entropy(b))
    return found + sum((1 - len(at[n])) * _entropy(p) for n, p in marginals.items())


def _entropy(p: np.ndarray) -> float:
    inside = p[p > 0]
    return float(-(inside * np.log(inside)).sum())


def mean_field(
    factors: Sequence[Factor],
    *,
    steps: int = 200,
    tol: float = 1e-10,
    random: np.random.Generator | None = None,
) -> MeanField:
    """Fit independent distributions to a product of log-potentials by coordinate ascent."""
    if not all(np.isfinite(factor.table).all() for factor in factors):
        raise InvalidData(
            "mean_field: every potential must be above 0; some log-potential is minus infinity. "
            "Use `belief_propagation` or `marginals`."
        )
    sizes = sizes_of(factors)
    random = random or np.random.default_rng(0)
    q = {name: random.dirichlet(np.full(size, 10.0)) for name, size in sizes.items()}
    near = {name: [f for f in factors if name in f.scope] for name in sizes}
    bounds = [_bound(factors, q)]
    for _ in range(steps):
        for name in sizes:
            logs = sum(_expected(factor, q, name) for factor in near[name])
            q[name] = _normal(np.asarray(logs), maximum=False)
        bounds.append(_bound(factors, q))
        if bounds[-1] - bounds[-2] < tol:
            break
    return MeanField(q, bounds)


def _expected(factor: Factor, q: Mapping[str, np.ndarray], name: str | None) -> np.ndarray:
    """Return E_q of a log-potential, given one variable."""
    table = factor.table
    for axis in reversed(range(table.ndim)):
        if factor.scope[axis] != name:
            table = np.tensordot(table, q[factor.scope[axis]], axes=(axis, 0))
    return np.asarray(table)


def _bound(factors: Sequence[Factor], q: Mapping[str, np.ndarray]) -> float:
    mean = sum(float(_expected(factor, q, None)) for factor in factors)
    return mean + sum(_entropy(p) for p in q.values())
