"""Recurrent estimators: ragged, categorical, stepwise and carried data."""

import numpy as np
import pytest
from sklearn.base import clone

import castalia
from castalia import RNNClassifier, RNNGenerator, RNNRegressor, RNNTagger
from castalia.errors import InvalidData, InvalidParameter
from castalia.testing.toys import beginnings, swings, totals

QUICK = {"hidden": 6, "epochs": 3, "random_state": 0}


def ragged(n=30, channels=2, seed=0):
    random = np.random.default_rng(seed)
    return [random.normal(size=(random.integers(1, 9), channels)) for _ in range(n)]


@pytest.mark.parametrize(
    "settings",
    [
        {"cell": "peephole", "without": ("nog",)},
        {"cell": "gru", "bidirectional": True, "pool": "mean"},
        {"cell": "jordan", "depth": 2, "residual": True},
        {"cell": "output", "truncate": 2},
        {"cell": "elman", "pool": "max"},
    ],
)
def test_an_answer_does_not_depend_on_the_sequences_beside(settings):
    X, y = beginnings(40)
    model = RNNClassifier(**QUICK, **settings).fit(X, y)
    alone = np.concatenate([model.predict_proba([x]) for x in X[:10]])
    assert np.allclose(model.predict_proba(X)[:10], alone, atol=1e-6)


def test_equal_lengths_train_alike_whether_stacked_or_listed():
    X = np.random.default_rng(0).normal(size=(40, 5, 1))
    y = (X[:, 0, 0] > 0).astype(int)
    one, other = (RNNClassifier(**QUICK).fit(data, y) for data in (X, list(X)))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_words_are_classified_and_unseen_ones_accepted():
    X = [["good", "day"], ["bad", "long", "day"]] * 30
    y = np.array(["+", "-"] * 30)
    model = RNNClassifier(hidden=8, epochs=20, lr=0.02, random_state=0).fit(X, y)
    assert model.predict([["good", "night"], ["bad", "night"]]).tolist() == ["+", "-"]


def test_a_run_that_was_stopped_ends_at_the_same_weights(tmp_path):
    X, y = beginnings(60)
    whole = RNNClassifier(hidden=6, epochs=4, random_state=0).fit(X, y)
    half = RNNClassifier(hidden=6, epochs=4, random_state=0)
    half.set_params(training__run=str(tmp_path / "run"), training__clip=1.0, training__patience=20)
    stop = type("Stop", (castalia.train.Callback,), {})()
    stop.on_epoch_end = lambda state: state.stop("enough") if state.epoch == 1 else None
    clone(half).set_params(training__callbacks=(stop,)).fit(X, y)
    assert np.array_equal(half.fit(X, y).predict_proba(X), whole.predict_proba(X))


def test_a_number_at_every_step():
    X = ragged(60, 1)
    y = [np.column_stack([np.cumsum(x), -x]) for x in X]
    model = RNNRegressor(hidden=12, epochs=60, lr=0.02, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.85
    assert [part.shape for part in model.predict(X)] == [part.shape for part in y]


def test_steps_that_arrive_one_by_one_get_the_tags_of_all_at_once():
    X, y = totals(60, steps=True)
    model = RNNTagger(bidirectional=False, cell="gru", **QUICK).fit(X, y)
    for x, wanted in zip(X[:5], model.predict(X[:5]), strict=True):
        stream = model.stream()
        assert [stream.push(step[None])[0] for step in x] == wanted
    with pytest.raises(InvalidParameter, match="`bidirectional` must be False"):
        RNNTagger(**QUICK).fit(X, y).stream()


def test_spelling_tags_words_that_were_never_seen():
    random = np.random.default_rng(0)
    stems = ["".join(random.choice(list("abcdefg"), 4)) for _ in range(120)]
    words = [stem + random.choice(["ing", "ed"]) for stem in stems]
    tags = ["V" if word.endswith("ing") else "P" for word in words]
    X, y = np.reshape(words, (-1, 4)).tolist(), np.reshape(tags, (-1, 4)).tolist()
    model = RNNTagger(letters=8, hidden=8, dim=16, epochs=30, lr=0.02, random_state=0)
    assert model.fit(X[:20], y[:20]).score(X[20:], y[20:]) > 0.9


@pytest.mark.parametrize(
    "y, words",
    [
        ([[0, 1], [0]], "sequence 0 has 3 steps and 2 targets"),
        ([[0, 0, 0], [0]], "got one class"),
        ([[0, 1, 0]], "same number of rows"),
    ],
)
def test_tags_that_do_not_fit_are_refused(y, words):
    with pytest.raises(InvalidData, match=words):
        RNNTagger(**QUICK).fit([np.zeros((3, 1)), np.zeros((1, 1))], y)


def test_the_density_of_a_sequence_is_the_sum_of_its_steps_in_its_own_units():
    X, _ = swings(60)
    model = RNNGenerator(**QUICK).fit(X)
    steps = model.step_log_prob(X[:4])
    assert [len(part) for part in steps] == [len(x) for x in X[:4]]
    assert np.allclose(model.score_samples(X[:4]), [part.sum() for part in steps])
    wide = RNNGenerator(**QUICK).fit([10 * x for x in X])
    wider = wide.score_samples([10 * x for x in X[:4]])
    lengths = np.array([len(x) for x in X[:4]])
    assert np.allclose(wider, model.score_samples(X[:4]) - np.log(10) * lengths, rtol=1e-3)


def test_the_first_step_of_a_density_is_that_of_the_distribution():
    X = [np.array([[1.0], [0.0]]), np.array([[1.0], [1.0]]), np.array([[0.0], [1.0]])] * 20
    model = RNNGenerator(likelihood="bernoulli", hidden=4, epochs=60, lr=0.05, random_state=0)
    first = [part[0] for part in model.fit(X).step_log_prob(X[1:3])]
    assert np.allclose(np.exp(first), [2 / 3, 1 / 3], atol=0.03)


def test_symbols_are_drawn_as_often_as_they_were_seen_and_end():
    random = np.random.default_rng(0)
    X = [["ab"[int(random.random() < 0.25)]] * random.integers(1, 4) for _ in range(120)]
    model = RNNGenerator(likelihood="symbols", hidden=8, epochs=60, lr=0.04, random_state=0).fit(X)
    drawn = model.sample(400, length=6, random_state=0)
    assert np.mean([len(set(part)) == 1 for part in drawn if part]) > 0.95
    assert abs(np.mean([part[0] == "b" for part in drawn if part]) - 0.25) < 0.08
    assert np.isclose(sum(len(part) for part in drawn) / len(drawn), 2, atol=0.3)
    total = sum(
        np.exp(model.score_samples([[letter] * n])[0]) for letter in "ab" for n in (1, 2, 3)
    )
    assert 0.8 < total <= 1.0


@pytest.mark.parametrize(
    "settings, X, words",
    [
        ({"likelihood": "symbols"}, [np.zeros((3, 2))] * 4, "one channel of categories"),
        ({}, [["a", "b"]] * 4, "channels of numbers only"),
        ({"likelihood": "bernoulli"}, [np.full((3, 1), 2.0)] * 4, "from 0 to 1.*holds 2"),
    ],
)
def test_densities_that_cannot_be_are_refused(settings, X, words):
    with pytest.raises((InvalidParameter, InvalidData), match=words):
        RNNGenerator(**QUICK, **settings).fit(X)


def test_a_single_step_is_a_sequence():
    X = [np.array([[float(i % 2)]]) for i in range(40)]
    model = RNNClassifier(hidden=4, epochs=20, lr=0.05, random_state=0)
    assert model.fit(X, [i % 2 for i in range(40)]).score(X, [i % 2 for i in range(40)]) == 1
