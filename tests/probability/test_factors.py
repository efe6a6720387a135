"""Factors against sums over every state."""

import itertools
import string

import numpy as np
import pytest

from castalia.errors import InvalidData
from castalia.probability.factors import (
    ROW,
    Factor,
    contract,
    cut_evidence,
    elimination_order,
    most_probable,
    sizes_of,
    sum_out,
)
from castalia.probability.junction_tree import JunctionTree


def random_factors(seed, n=7, count=9, zeros=False):
    random = np.random.default_rng(seed)
    names = list(string.ascii_lowercase[:n])
    sizes = dict(zip(names, random.integers(1, 4, n), strict=True))
    scopes = [
        tuple(random.choice(names, random.integers(1, 4), replace=False)) for _ in range(count)
    ]
    tables = [random.gamma(1.0, size=[sizes[v] for v in scope]) for scope in scopes]
    if zeros:
        tables = [np.where(random.random(t.shape) < 0.1, 0, t) for t in tables]
    return [Factor(scope, table) for scope, table in zip(scopes, tables, strict=True)]


def enumerated(factors):
    """Return the product of all factors as one table, one state at a time."""
    sizes = sizes_of(factors)
    names = sorted(sizes)
    whole = np.ones([sizes[name] for name in names])
    for state in itertools.product(*(range(sizes[name]) for name in names)):
        at = dict(zip(names, state, strict=True))
        for factor in factors:
            whole[state] *= factor.table[tuple(at[name] for name in factor.scope)]
    return names, whole


@pytest.mark.parametrize("seed", range(6))
def test_elimination_equals_enumeration(seed):
    factors = random_factors(seed)
    names, whole = enumerated(factors)
    left, scale = sum_out(factors, keep=names[:2])
    found = contract(left, names[:2]).table * np.exp(scale)
    axes = tuple(range(2, len(names)))
    np.testing.assert_allclose(found, whole.sum(axis=axes), rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_all_marginals_of_the_junction_tree_equal_enumeration(seed):
    factors = random_factors(seed, zeros=seed % 2 == 1)
    names, whole = enumerated(factors)
    tree = JunctionTree(factors)
    np.testing.assert_allclose(tree.log_partition, np.log(whole.sum()), rtol=1e-12)
    for axis, name in enumerate(names):
        others = tuple(i for i in range(len(names)) if i != axis)
        exact = whole.sum(axis=others) / whole.sum()
        np.testing.assert_allclose(tree.marginals()[name], exact, atol=1e-12)
    for belief in tree.beliefs:
        kept = [names.index(name) for name in belief.scope]
        rest = tuple(i for i in range(len(names)) if i not in kept)
        exact = whole.sum(axis=rest) / whole.sum()  # axes of both are sorted by name
        np.testing.assert_allclose(belief.table, exact, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_most_probable_states_are_the_argmax(seed):
    factors = random_factors(seed)
    names, whole = enumerated(factors)
    found, log = most_probable(factors)
    at = np.unravel_index(whole.argmax(), whole.shape)
    assert [found[name] for name in names] == list(at)
    assert log == pytest.approx(np.log(whole.max()), rel=1e-12)


def test_rows_of_evidence_are_answered_at_once():
    factors = random_factors(3)
    names, whole = enumerated(factors)
    rows = np.array([0, sizes_of(factors)[names[0]] - 1, 0])
    left, scale = sum_out(cut_evidence(factors, {names[0]: rows}), keep=[names[1]])
    found = contract(left, [ROW, names[1]]).table * np.exp(np.broadcast_to(scale, 3))[:, None]
    exact = whole.sum(axis=tuple(range(2, len(names))))[rows]
    np.testing.assert_allclose(found, exact, rtol=1e-12)


def test_min_fill_eliminates_the_leaves_of_a_star_before_its_centre():
    scopes = [("hub", leaf) for leaf in "abcd"]
    order = elimination_order(scopes)
    assert max(len(near) for _, near in order) == 1  # the hub first would join four leaves
    loop = elimination_order([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    assert max(len(near) for _, near in loop) == 2


def test_a_clique_that_does_not_fit_is_refused_with_its_size():
    names = [f"v{i}" for i in range(30)]
    pairs = [Factor(pair, np.ones((3, 3))) for pair in itertools.combinations(names, 2)]
    with pytest.raises(InvalidData, match=r"would have 2\.06e\+14, 1.53e\+06 GiB. Give more"):
        sum_out(pairs, keep=[])
    with pytest.raises(InvalidData, match="at most 134,217,728 entries"):
        JunctionTree(pairs)


def test_states_that_disagree_are_named():
    with pytest.raises(InvalidData, match="`a` must have the same states.*got 2 and 3"):
        sizes_of([Factor(("a",), np.ones(2)), Factor(("a", "b"), np.ones((3, 2)))])
