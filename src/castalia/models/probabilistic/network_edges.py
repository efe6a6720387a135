"""Edges of a Bayesian network that are given in place of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from castalia.base import Constraint
from castalia.errors import InvalidData
from castalia.probability.d_separation import topological_order
from castalia.utils.text import did_you_mean, listing

__all__ = ["Edges", "given_graph"]


class Edges(Constraint):
    """``"search"``, or pairs of names from parent to child."""

    def rule(self) -> str:
        """Say both."""
        return '"search" or pairs of names (parent, child)'

    def holds(self, value: Any) -> bool:
        """Whether it is the word or a sequence of pairs."""
        if isinstance(value, str):
            return value == "search"
        return isinstance(value, Sequence) and all(
            isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
            for pair in value
        )


def given_graph(
    edges: Sequence[Sequence[str]], names: Sequence[str], states: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Return the parents by edges, or say which edge is wrong."""
    parents: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    for parent, child in edges:
        for name in (parent, child):
            if name not in parents:
                raise InvalidData(
                    f"BayesianNetwork: edges must join columns, {listing(names)}; got "
                    f"{name!r}.{did_you_mean(str(name), names)}"
                )
        if child in states and parent not in states:
            raise InvalidData(
                f"BayesianNetwork: a discrete column must have discrete parents; got the edge from "
                f"continuous `{parent}` to `{child}`. Reverse it."
            )
        parents[child] = (*parents[child], parent)
    topological_order(parents)
    return parents
