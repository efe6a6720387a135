"""Bayesian networks as pgmpy answers them."""

import importlib
import logging
import warnings

import numpy as np
import pytest
from benchmarks.bayesian_networks import pgmpy_network, random_network

EVIDENCE = {"v3": "s1", "v9": "s0"}


@pytest.fixture(scope="module")
def pair():
    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    ours = random_network(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pgmpy, about its own names
        theirs = pgmpy_network(ours)
        assert theirs.check_model()
        yield ours, theirs, importlib.import_module("pgmpy.inference").VariableElimination(theirs)


def test_all_marginals_are_those_of_pgmpy(pair):
    ours, _, engine = pair
    for name, found in ours.marginals(EVIDENCE).items():
        if name not in EVIDENCE:
            answer = engine.query([name], evidence=EVIDENCE, show_progress=False)
            expected = dict(zip(answer.state_names[name], answer.values, strict=True))
            assert found == pytest.approx(expected, abs=1e-12)


def test_the_likeliest_states_are_those_of_pgmpy(pair):
    ours, _, engine = pair
    hidden = [name for name in ours.nodes_ if name not in EVIDENCE]
    expected = engine.map_query(hidden, evidence=EVIDENCE, show_progress=False)
    found = ours.most_probable(EVIDENCE)
    assert {name: found[name] for name in hidden} == expected


def test_separation_is_that_of_pgmpy(pair):
    ours, theirs, _ = pair
    names = list(ours.nodes_)
    random = np.random.default_rng(0)
    for _ in range(60):
        a, b, *given = random.choice(names, 4, replace=False).tolist()
        assert ours.d_separated(a, b, given) != theirs.is_dconnected(a, b, observed=given)
