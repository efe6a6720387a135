"""Errors: what worker processes send of them."""

import pickle

import pytest

from castalia import errors

WHERE = {"Diverged": {"step": 3, "epoch": 2, "term": "kl", "lr": 0.1}, "SolverFailed": {"at": 0.5}}


@pytest.mark.parametrize("name", errors.__all__)
def test_an_error_of_a_worker_process_arrives_whole(name):
    error = getattr(errors, name)("one sentence", **WHERE.get(name, {}))
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == "one sentence"
    assert {key: getattr(found, key) for key in WHERE.get(name, {})} == WHERE.get(name, {})
