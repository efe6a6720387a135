"""Memory over many steps: recalling what came first, and counting further than trained to."""

import numpy as np

from castalia import RNNClassifier, RNNRegressor, RNNTagger
from castalia.train import Training


def first_symbols(n, steps, seed):
    """Noise that begins with +1 or -1, and which of them it was."""
    random = np.random.default_rng(seed)
    X = 0.3 * random.normal(size=(n, steps, 1))
    y = random.integers(0, 2, n)
    X[:, 0, 0] = 2 * y - 1
    return X, y


def test_an_lstm_recalls_what_came_a_hundred_steps_ago_and_a_vanilla_network_does_not():
    known, new = first_symbols(256, 101, 0), first_symbols(200, 101, 1)
    settings = {"hidden": 16, "epochs": 12, "lr": 0.02, "random_state": 0}
    assert RNNClassifier(memory=100, **settings).fit(*known).score(*new) > 0.95
    assert RNNClassifier(cell="elman", **settings).fit(*known).score(*new) < 0.65


def counted(numbers):
    """Strings a^n b^n, and what may follow each letter."""
    X = [["a"] * n + ["b"] * n for n in numbers]
    return X, [["any"] * n + ["b"] * (n - 1) + ["end"] for n in numbers]


def test_an_lstm_counts_further_than_it_was_trained_to():
    model = RNNTagger(hidden=8, bidirectional=False, epochs=60, lr=0.03, random_state=0)
    model.set_params(training__validation=0, training__patience=None, training__clip=1.0)
    model.fit(*counted(list(range(1, 11)) * 6))
    X, wanted = counted(range(1, 16))  # five longer than any seen
    assert model.predict(X).tolist() == wanted
    elman = RNNTagger(**{**model.get_params(deep=False), "cell": "elman"})
    assert elman.fit(*counted(list(range(1, 11)) * 6)).predict(X).tolist() != wanted


def triggers(n, seed):
    """A trigger, and a spike that is due eight steps later, when nothing is shown any more."""
    random = np.random.default_rng(seed)
    X, y = np.zeros((n, 16, 1)), np.zeros((n, 16))
    start = random.integers(0, 6, n)
    X[np.arange(n), start, 0] = 1
    y[np.arange(n), start + 8] = 1
    return X, list(y)


def test_gates_that_see_the_cell_keep_time_where_closed_ones_cannot():
    new, missed = triggers(100, 99), {}
    for cell in ("lstm", "peephole"):
        training = Training(validation=0, clip=1.0, schedule="cosine", verbose=False)
        model = RNNRegressor(
            cell=cell,
            hidden=2,
            epochs=60,
            batch_size=32,
            lr=0.05,
            random_state=0,
            training=training,
        ).fit(*triggers(128, 0))
        missed[cell] = 1 - model.score(*new)  # 1 knows nothing
    assert missed["peephole"] < 0.5 * missed["lstm"]
