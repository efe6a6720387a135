"""Factors: tables of numbers over some variables, their product and their sums.

phi(a, b) psi(b, c) summed over b is one contraction. A factor is not a distribution: its entries
are at least 0 and need not sum to 1. Orders of elimination are found by min-fill: the next variable
is the one whose neighbours lack the fewest edges.
Reference: 1999, Dechter, Bucket elimination, Artificial Intelligence 113.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from castalia.errors import InvalidData
from castalia.utils.text import listing

__all__ = [
    "ROW",
    "Factor",
    "contract",
    "cut_evidence",
    "elimination_order",
    "most_probable",
    "sizes_of",
    "sum_out",
]

ROW = ""  # the axis along which rows of a batch lie; no variable has this name
LARGEST = 2**27  # entries of a table: 1 GiB


class Factor(NamedTuple):
    """A table with one axis a variable.

    Attributes
    ----------
    scope
        Names of the variables, in the order of the axes.
    table
        Numbers of at least 0; logarithms where a function says so.
    """

    scope: tuple[str, ...]
    table: np.ndarray


def sizes_of(factors: Iterable[Factor]) -> dict[str, int]:
    """Return how many states each variable has.

    >>> sizes_of([Factor(("a", "b"), np.ones((2, 3)))])
    {'a': 2, 'b': 3}
    """
    found: dict[str, int] = {}
    for factor in factors:
        for name, size in zip(factor.scope, factor.table.shape, strict=True):
            if found.setdefault(name, size) != size:
                raise InvalidData(
                    f"Factor: `{name}` must have the same states in every factor; got "
                    f"{found[name]} and {size}."
                )
    return found


def contract(factors: Sequence[Factor], keep: Sequence[str]) -> Factor:
    """Multiply factors and sum over every variable that is not kept.

    >>> coin, same = Factor(("a",), np.array([0.2, 0.8])), Factor(("a", "b"), np.eye(2))
    >>> contract([coin, same], ["b"]).table
    array([0.2, 0.8])
    """
    number: dict[str, int] = {}
    operands: list[np.ndarray | list[int]] = []
    for factor in factors:
        labels = [number.setdefault(name, len(number)) for name in factor.scope]
        operands += [factor.table, labels]
    scope = tuple(name for name in keep if name in number)
    if not operands:
        return Factor((), np.ones(()))
    return Factor(scope, np.asarray(np.einsum(*operands, [number[name] for name in scope])))


def cut_evidence(
    factors: Iterable[Factor], evidence: Mapping[str, int | np.ndarray]
) -> list[Factor]:
    """Fix variables at the numbers of their states; arrays of them, one a row, make an axis `ROW`.

    >>> (cut,) = cut_evidence([Factor(("a", "b"), np.arange(4.0).reshape(2, 2))], {"a": 1})
    >>> cut.scope, cut.table.tolist()
    (('b',), [2.0, 3.0])
    """
    found = []
    for factor in factors:
        known = [name for name in factor.scope if name in evidence]
        if not known:
            found.append(factor)
            continue
        rest = tuple(name for name in factor.scope if name not in evidence)
        table = np.moveaxis(
            factor.table, [factor.scope.index(name) for name in known], range(len(known))
        )
        table = table[tuple(evidence[name] for name in known)]
        rows = table.ndim > len(rest)
        found.append(Factor((ROW, *rest) if rows else rest, table))
    return found


def elimination_order(
    scopes: Iterable[Collection[str]], keep: Collection[str] = ()
) -> list[tuple[str, frozenset[str]]]:
    """Order variables by min-fill; each comes with its neighbours at that time.

    >>> [name for name, _ in elimination_order([("a", "b"), ("b", "c")], keep=["c"])]
    ['a', 'b']
    """
    graph: dict[str, set[str]] = {}
    for scope in scopes:
        for name in scope:
            graph.setdefault(name, set()).update(other for other in scope if other != name)
    cost = {name: (_fill(graph, name), len(graph[name])) for name in graph if name not in keep}
    ahead = [(*value, name) for name, value in cost.items()]
    heapify(ahead)
    order = []
    while ahead:
        *value, name = heappop(ahead)
        if cost.get(name) != tuple(value):  # out of date, or done
            continue
        near = graph.pop(name)
        del cost[name]
        order.append((name, frozenset(near)))
        for node in near:
            graph[node] |= near
            graph[node] -= {name, node}
        for node in near.union(*(graph[node] for node in near)) & cost.keys():
            cost[node] = _fill(graph, node), len(graph[node])
            heappush(ahead, (*cost[node], node))
    return order


def _fill(graph: Mapping[str, set[str]], name: str) -> int:
    """Count the edges that eliminating a variable adds, each twice."""
    near = graph[name]
    return sum(len(near - graph[other]) - 1 for other in near)


def sum_out(factors: Sequence[Factor], keep: Collection[str]) -> tuple[list[Factor], Any]:
    """Sum over all variables but some, one at a time; return what is left and its log scale.

    The product of the factors, times the exponential of the scale, is the wanted sum; where rows
    lie along `ROW`, the scale has one entry a row.
    """
    sizes, left = sizes_of(factors), list(factors)
    scale: Any = 0.0
    order = elimination_order([factor.scope for factor in factors], {*keep, ROW})
    check_room(order, sizes)
    for name, near in order:
        bucket = [factor for factor in left if name in factor.scope]
        left = [factor for factor in left if name not in factor.scope]
        message, more = scaled(contract(bucket, sorted(near)))
        left.append(message)
        scale = scale + more
    return left, scale


def scaled(factor: Factor) -> tuple[Factor, Any]:
    """Return a factor with the largest entry 1, in each row, and the logarithm of its divisor."""
    rows = factor.scope[:1] == (ROW,)
    axes = tuple(range(int(rows), factor.table.ndim))
    top = factor.table.max(axis=axes, keepdims=True, initial=0.0)
    top = np.where(top == 0, 1.0, top)
    return Factor(factor.scope, factor.table / top), np.log(top.ravel() if rows else top.item())


def check_room(order: Iterable[tuple[str, Collection[str]]], sizes: Mapping[str, int]) -> None:
    """Refuse an elimination whose largest table would not fit, before it is begun."""
    for name, near in order:
        clique = [name, *sorted(near)]
        entries = float(np.prod([float(sizes[other]) for other in clique]))
        if entries > LARGEST:
            raise InvalidData(
                f"elimination: tables must have at most {LARGEST:,} entries; the one over "
                f"{listing([n or 'the rows' for n in clique], 'and', 6)} would have {entries:.3g}, "
                f"{8 * entries / 2**30:,.3g} GiB. Give more evidence, ask for fewer rows at once, "
                "or sample."
            )


def most_probable(factors: Sequence[Factor]) -> tuple[dict[str, int], float]:
    """Return the assignment with the largest product of factors, and its logarithm.

    >>> most_probable([Factor(("a", "b"), np.array([[0.3, 0.3], [0.0, 0.4]]))])[0]
    {'b': 1, 'a': 1}
    """
    sizes = sizes_of(factors)
    order = elimination_order([factor.scope for factor in factors])
    check_room(order, sizes)
    with np.errstate(divide="ignore"):
        left = [Factor(factor.scope, np.log(factor.table)) for factor in factors]
    steps: list[tuple[str, Factor]] = []
    for name, near in order:
        bucket = [factor for factor in left if name in factor.scope]
        left = [factor for factor in left if name not in factor.scope]
        whole = _added(bucket, (*sorted(near), name))
        steps.append((name, whole))
        left.append(Factor(whole.scope[:-1], whole.table.max(axis=-1)))
    found: dict[str, int] = {}
    for name, whole in reversed(steps):
        found[name] = int(whole.table[tuple(found[other] for other in whole.scope[:-1])].argmax())
    return found, float(sum(float(factor.table) for factor in left))


def _added(factors: Iterable[Factor], scope: tuple[str, ...]) -> Factor:
    """Add tables of logarithms, axes in the order of a scope."""
    total: np.ndarray = np.zeros((1,) * len(scope))
    for factor in factors:
        order = sorted(range(len(factor.scope)), key=lambda axis: scope.index(factor.scope[axis]))
        shape = [
            factor.table.shape[factor.scope.index(name)] if name in factor.scope else 1
            for name in scope
        ]
        total = total + factor.table.transpose(order).reshape(shape)
    return Factor(scope, total)
