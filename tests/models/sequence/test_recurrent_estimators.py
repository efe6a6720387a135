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


@pytest.mark.parametrize("output", ["quantile", "gaussian", "laplace", "mixture"])
def test_an_interval_holds_what_it_should(output):
    random = np.random.default_rng(0)
    X = [np.full((2, 1), level) for level in random.normal(size=200)]
    y = np.array([x[0, 0] for x in X]) + random.normal(size=200)
    model = RNNRegressor(output=output, hidden=6, epochs=8, lr=0.04, random_state=0).fit(X, y)
    low, high = model.predict_interval(X, 0.8)
    assert 0.65 < np.mean((low < y) & (y < high)) < 0.93
    assert model.score(X, y) > 0.15


def test_intervals_of_steps_and_of_counts():
    X = ragged(60, 1)
    y = [np.cumsum(x) for x in X]
    model = RNNRegressor(output="gaussian", hidden=8, epochs=15, lr=0.03, random_state=0).fit(X, y)
    low, high = model.predict_interval(X)
    assert [part.shape for part in low] == [part.shape for part in y]
    inside = [(a < part) & (part < b) for a, part, b in zip(low, y, high, strict=True)]
    assert np.mean(np.concatenate(inside)) > 0.7
    counts = RNNRegressor(output="poisson", **QUICK)
    assert (counts.fit(X, [len(x) for x in X]).predict(X) > 0).all()
    with pytest.raises(InvalidData, match="counts or rates of at least 0.*got -1"):
        counts.fit(X, [-1.0] * len(X))
    with pytest.raises(InvalidParameter, match="must be 'quantile' or a likelihood"):
        RNNRegressor(**QUICK).fit(X, y).predict_interval(X)


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


def test_a_conditional_generator_makes_what_is_asked_for(tmp_path):
    X, y = [["a", "a"], ["b"]] * 30, ["long", "short"] * 30
    model = RNNGenerator(
        likelihood="symbols", conditional=True, hidden=8, epochs=25, lr=0.05, random_state=0
    ).fit(X, y)
    assert model.sample(2, y=["short", "long"], random_state=0) == [["b"], ["a", "a"]]
    assert model.sample(3, y="short", random_state=0) == [["b"]] * 3
    right, wrong = model.score_samples(X[:2], y[:2]), model.score_samples(X[:2], y[1::-1])
    assert (right > wrong + 3).all()
    assert model.score(X, y) > model.score(X, "long")
    castalia.save(model, tmp_path / "conditional")
    assert np.allclose(castalia.load(tmp_path / "conditional").score_samples(X[:2], y[:2]), right)


def test_numbers_are_a_condition_too():
    y = np.linspace(10, 30, 60)
    X = [np.full((3, 1), level) for level in y]
    model = RNNGenerator(conditional=True, hidden=8, epochs=30, lr=0.03, random_state=0).fit(X, y)
    drawn = model.sample(40, length=2, y=np.repeat([12.0, 28.0], 20), random_state=0)
    low, high = np.mean(drawn[:20]), np.mean(drawn[20:])
    assert np.allclose([low, high], [12, 28], atol=3)
    assert len(model.sample(2, length=2, y=12.0)) == 2


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda model: model.sample(2), "`y` must be a condition"),
        (lambda model: model.sample(3, y=["u", "v"]), "must have 1 or 3 conditions; got 2"),
        (lambda model: model.sample(y="w"), "classes of fit, `u` and `v`; got 'w'"),
        (lambda model: model.fit([["a"]] * 4), "y must hold a class, or numbers"),
        (
            lambda model: model.set_params(conditional=False).sample(y="u"),
            "must be None without conditional",
        ),
    ],
)
def test_conditions_that_cannot_be_are_refused(call, words):
    model = RNNGenerator(likelihood="symbols", conditional=True, **QUICK)
    model.fit([["a"], ["b"]] * 5, ["u", "v"] * 5)
    with pytest.raises((InvalidParameter, InvalidData), match=words):
        call(model)


def test_a_single_step_is_a_sequence():
    X = [np.array([[float(i % 2)]]) for i in range(40)]
    model = RNNClassifier(hidden=4, epochs=20, lr=0.05, random_state=0)
    assert model.fit(X, [i % 2 for i in range(40)]).score(X, [i % 2 for i in range(40)]) == 1
