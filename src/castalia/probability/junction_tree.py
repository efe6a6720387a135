"""Junction tree: all marginals of a product of factors with two messages an edge.

Cliques are those of a min-fill elimination. A message up is the product of a clique's factors and
of what its children sent, summed to the separator; one down is the belief of the parent, summed to
it and divided by what came up. Then the belief of every clique is its marginal.
Reference: 1988, Lauritzen, Spiegelhalter, Local computations with probabilities on graphical
structures, Journal of the Royal Statistical Society B 50.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from castalia.probability.factors import (
    Factor,
    check_room,
    contract,
    elimination_order,
    scaled,
    sizes_of,
)

__all__ = ["JunctionTree"]


@dataclass
class _Clique:
    scope: frozenset[str]
    parent: int = -1  # the clique that comes later, or none
    factors: list[Factor] = field(default_factory=list)


class JunctionTree:
    """Calibrated cliques of a product of factors.

    Parameters
    ----------
    factors
        Tables of numbers of at least 0.

    Attributes
    ----------
    log_partition : float
        Logarithm of the sum over all states; minus infinity where every product is 0.
    beliefs : list of Factor
        Marginal of every clique, normalised.

    Examples
    --------
    >>> tree = JunctionTree([Factor(("a",), np.array([1.0, 3.0])), Factor(("a", "b"), np.eye(2))])
    >>> tree.marginals()["b"], round(np.exp(tree.log_partition))
    (array([0.25, 0.75]), 4)
    """

    def __init__(self, factors: Sequence[Factor]) -> None:
        sizes = sizes_of(factors)
        order = elimination_order([factor.scope for factor in factors])
        check_room(order, sizes)
        self.cliques = _cliques(order)
        home = {
            name: i
            for i, clique in reversed(list(enumerate(self.cliques)))
            for name in clique.scope
        }
        self._home = home
        constant = 0.0
        with np.errstate(divide="ignore"):
            for factor in factors:
                if factor.scope:
                    self._place(factor)
                else:
                    constant += float(np.log(factor.table))
        self.log_partition = constant
        self.beliefs = self._calibrated()

    def _place(self, factor: Factor) -> None:
        """Give a factor to the first clique that holds its scope."""
        first = min(self._home[name] for name in factor.scope)
        wanted = set(factor.scope)
        at = next(i for i in range(first, len(self.cliques)) if wanted <= self.cliques[i].scope)
        self.cliques[at].factors.append(factor)

    def _calibrated(self) -> list[Factor]:
        up: list[Factor] = []
        inbox: list[list[Factor]] = [[] for _ in self.cliques]
        for i, clique in enumerate(self.cliques):  # children come before parents
            between = clique.scope & self.cliques[clique.parent].scope if clique.parent >= 0 else ()
            message, scale = scaled(contract([*clique.factors, *inbox[i]], sorted(between)))
            up.append(message)
            self.log_partition += scale
            if clique.parent >= 0:
                inbox[clique.parent].append(message)
            elif not message.table.any():
                self.log_partition = -np.inf
        return self._downwards(up, inbox)

    def _downwards(self, up: list[Factor], inbox: list[list[Factor]]) -> list[Factor]:
        beliefs: list[Factor] = [Factor((), np.ones(()))] * len(self.cliques)
        for i in reversed(range(len(self.cliques))):
            clique = self.cliques[i]
            down = []
            if clique.parent >= 0:
                total = contract([beliefs[clique.parent]], up[i].scope).table
                share = np.divide(
                    total, up[i].table, out=np.zeros_like(total), where=up[i].table > 0
                )
                down = [Factor(up[i].scope, share)]
            belief = contract([*clique.factors, *inbox[i], *down], sorted(clique.scope))
            mass = belief.table.sum()
            beliefs[i] = Factor(belief.scope, belief.table / mass if mass > 0 else belief.table)
        return beliefs

    def marginals(self) -> dict[str, np.ndarray]:
        """Return the marginal of every variable."""
        return {name: contract([self.beliefs[i]], [name]).table for name, i in self._home.items()}


def _cliques(order: Sequence[tuple[str, frozenset[str]]]) -> list[_Clique]:
    """Join the cliques of an elimination to a tree, those inside another one left out."""
    place = {name: i for i, (name, _) in enumerate(order)}
    cliques = [_Clique(near | {name}) for name, near in order]
    moved = list(range(len(order)))  # where a clique that was left out lives on
    for i, (_, near) in enumerate(order):
        cliques[i].parent = min((place[name] for name in near), default=-1)
    alive = [True] * len(order)
    for i in range(len(order)):
        p = cliques[i].parent
        if p >= 0 and alive[p] and cliques[p].scope <= cliques[i].scope:
            cliques[p].scope, alive[i] = (
                cliques[i].scope,
                False,
            )  # the parent takes the child's scope
            moved[i] = p
    return _compact(cliques, moved, alive)


def _compact(cliques: list[_Clique], moved: list[int], alive: list[bool]) -> list[_Clique]:
    def found(i: int) -> int:
        while i >= 0 and not alive[i]:
            i = moved[i]
        return i

    kept = [i for i in range(len(cliques)) if alive[i]]
    number = {i: n for n, i in enumerate(kept)}
    for i in kept:
        parent = found(cliques[i].parent)
        cliques[i].parent = number[parent] if parent >= 0 else -1
    return [cliques[i] for i in kept]
