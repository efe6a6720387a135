"""d-separation: which variables of a directed graph are independent given others.

A path carries dependence through a chain or a fork whose middle is not given, and through a
collider where the middle, or a descendant of it, is given.
Reference: 1998, Shachter, Bayes-ball, Uncertainty in Artificial Intelligence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from castalia.errors import InvalidData
from castalia.utils.text import listing

__all__ = ["ancestors", "d_separated", "dependent_on", "topological_order"]

Parents = Mapping[str, Collection[str]]


def topological_order(parents: Parents) -> list[str]:
    """Order variables so that parents come before children, or name a cycle.

    >>> topological_order({"wet": ["rain"], "rain": []})
    ['rain', 'wet']
    """
    try:
        return list(TopologicalSorter(parents).static_order())
    except CycleError as error:
        raise InvalidData(
            "BayesianNetwork: edges must not form a cycle; got "
            f"{' -> '.join(error.args[1])}. Remove or reverse one of them."
        ) from None


def ancestors(parents: Parents, names: Iterable[str]) -> set[str]:
    """Return some variables and everything they descend from.

    >>> sorted(ancestors({"a": [], "b": ["a"], "c": []}, ["b"]))
    ['a', 'b']
    """
    found, ahead = set[str](), list(names)
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead.extend(parents[name])
    return found


def dependent_on(parents: Parents, name: str, given: Collection[str] = ()) -> set[str]:
    """Return what may depend on a variable when others are given.

    >>> alarm = {"burglary": [], "earthquake": [], "alarm": ["burglary", "earthquake"]}
    >>> sorted(dependent_on(alarm, "burglary")), sorted(dependent_on(alarm, "burglary", ["alarm"]))
    (['alarm', 'burglary'], ['burglary', 'earthquake'])
    """
    children: dict[str, list[str]] = {node: [] for node in parents}
    for child, above in parents.items():
        for parent in above:
            children[parent].append(child)
    opened = ancestors(parents, given)  # colliders through which a path leads on
    seen, ahead, found = set[tuple[str, bool]](), [(name, True)], set[str]()
    while ahead:
        node, from_child = ahead.pop()
        if (node, from_child) in seen:
            continue
        seen.add((node, from_child))
        free = node not in given
        found |= {node} if free else set()
        if free and from_child:
            ahead += [(parent, True) for parent in parents[node]]
        if free:
            ahead += [(child, False) for child in children[node]]
        if not from_child and node in opened:
            ahead += [(parent, True) for parent in parents[node]]
    return found


def d_separated(
    parents: Parents,
    first: str | Collection[str],
    second: str | Collection[str],
    given: str | Collection[str] = (),
) -> bool:
    """Whether two sets of variables are independent, by the graph alone, given a third.

    Parameters
    ----------
    parents
        Parents of every variable.
    first, second
        Names.
    given
        Names of what is known.

    Examples
    --------
    >>> chain = {"a": [], "b": ["a"], "c": ["b"]}
    >>> d_separated(chain, "a", "c", "b"), d_separated(chain, "a", "c")
    (True, False)
    """
    one, other, known = (
        [part] if isinstance(part, str) else list(part) for part in (first, second, given)
    )
    strangers = [name for name in (*one, *other, *known) if name not in parents]
    if strangers:
        raise InvalidData(
            f"d_separated: variables must be {listing(parents, 'or')}; got {listing(strangers)}."
        )
    return not any(dependent_on(parents, name, known) & set(other) for name in one)
