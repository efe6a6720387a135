"""Graph separation against independence in tables with random numbers."""

import itertools

import numpy as np
import pytest

from castalia.errors import InvalidData
from castalia.probability import conditionally_independent
from castalia.probability.d_separation import d_separated, dependent_on, topological_order

GRAPH = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d"]}


def random_joint(parents, seed=0):
    """Return the joint table of random binary tables, axes in the order of the graph."""
    random, names = np.random.default_rng(seed), list(parents)
    joint = np.ones([2] * len(names))
    for name, above in parents.items():
        table = random.dirichlet([1, 1], size=[2] * len(above))  # (parents …, state)
        axes = [names.index(v) for v in (*above, name)]
        order = np.argsort(axes)
        shape = [2 if i in axes else 1 for i in range(len(names))]
        joint = joint * table.transpose(order).reshape(shape)
    return joint


def test_the_graph_says_independent_where_and_only_where_random_tables_are():
    joint, names = random_joint(GRAPH), list(GRAPH)
    for a, b in itertools.combinations(range(5), 2):
        rest = [i for i in range(5) if i not in (a, b)]
        for size in range(4):
            for given in itertools.combinations(rest, size):
                by_graph = d_separated(GRAPH, names[a], names[b], [names[i] for i in given])
                assert by_graph == conditionally_independent(joint, a, b, given)


def test_a_collider_opens_when_it_or_its_descendant_is_known():
    assert d_separated(GRAPH, "b", "c", "a")
    assert not d_separated(GRAPH, "b", "c", ["a", "d"])
    assert not d_separated(GRAPH, "b", "c", ["a", "e"])
    assert dependent_on(GRAPH, "e", ["d"]) == {"e"}


def test_cycles_and_strangers_are_named():
    with pytest.raises(InvalidData, match="must not form a cycle; got .*->.*->"):
        topological_order({"a": ["c"], "b": ["a"], "c": ["b"]})
    with pytest.raises(InvalidData, match="got `z`"):
        d_separated(GRAPH, "a", "z")
    assert topological_order(GRAPH)[0] == "a"
