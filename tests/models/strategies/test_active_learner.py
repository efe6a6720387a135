"""Which labels are asked for, and how many are saved."""

import numpy as np
import pytest

import castalia
from castalia import ActiveLearning, MLPClassifier, Training
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.strategies.active_learner import QUERIES, farthest_first, information_gain
from castalia.testing.toys import moons

NET = MLPClassifier(hidden=(16,), dropout=0.2, epochs=30, lr=0.03, training=Training(validation=0))


@pytest.mark.parametrize("query", QUERIES)
def test_the_least_certain_row_is_wanted_most(query):
    p = np.array([[0.9, 0.05, 0.05], [0.4, 0.35, 0.25], [0.6, 0.3, 0.1]])
    assert QUERIES[query](p).argsort().tolist() == [0, 2, 1]


def test_only_members_that_disagree_have_something_to_learn():
    sure, torn = [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
    gain = information_gain(np.array([sure, torn]).transpose(1, 0, 2))
    np.testing.assert_allclose(gain, [np.log(2), 0], atol=1e-12)


def test_a_core_set_covers_the_rows_within_twice_the_best_radius():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    taken = farthest_first(X, X[:1], 5)
    assert len(set(taken.tolist())) == 5
    radius = np.linalg.norm(X[:, None] - X[[0, *taken]][None], axis=2).min(axis=1).max()
    gaps = np.linalg.norm(X[taken][:, None] - X[taken][None], axis=2)
    assert radius <= gaps[np.triu_indices(5, k=1)].min()  # Gonzalez


def labels_until(query, target, seed):
    X, y = moons(300, 0.1, seed)
    unseen = moons(500, 0.1, seed + 100)
    pool = np.ones(300, dtype=bool)
    pool[:6] = False
    model = ActiveLearning(NET, query=query, random_state=seed).fit(X[:6], y[:6])
    while model.score(*unseen) < target and model.labels_ < 60:
        rows = np.flatnonzero(pool)[model.ask(X[pool], 4)]
        pool[rows] = False
        model.tell(X[rows], y[rows])
    return model.labels_


def test_fewer_labels_than_at_random_reach_the_same_accuracy():
    asked, drawn = (
        [labels_until(query, 0.97, seed) for seed in range(3)] for query in ("margin", "random")
    )
    assert np.mean(asked) < 0.8 * np.mean(drawn)


@pytest.mark.parametrize("query", ["bald", "coreset"])
def test_other_queries_answer_with_different_rows(query):
    X, y = moons(80)
    model = ActiveLearning(NET, query=query, random_state=0).fit(X[:20], y[:20])
    rows = model.ask(X[20:], 5)
    assert len(set(rows.tolist())) == 5
    np.testing.assert_array_equal(rows, model.ask(X[20:], 5))


def test_a_pool_that_is_too_small_and_a_network_without_dropout_are_refused(tmp_path):
    X, y = moons(40)
    model = ActiveLearning(NET, random_state=0).fit(X, y)
    with pytest.raises(InvalidParameter, match="`n` must be from 1 to the 40 rows of the pool"):
        model.ask(X, 41)
    plain = MLPClassifier(hidden=(4,), epochs=1, training=Training(validation=0))
    with pytest.raises(InvalidParameter, match="query='bald' needs a network with dropout"):
        ActiveLearning(plain, query="bald").fit(X, y).ask(X)
    castalia.save(model, tmp_path / "model")
    with pytest.raises(InvalidData, match="must be fitted to the labelled rows again after load"):
        castalia.load(tmp_path / "model").tell(X, y)
