"""Rows of any shape: two systems in `tests/systems`, each in one file of its own."""

import ast
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from tests.systems import graph_classifier, ragged_classifier
from tests.systems.graph_classifier import GraphClassifier, GraphRows
from tests.systems.ragged_classifier import RaggedClassifier

from castalia import Callback, Training


def sequences(n=160):
    """Whether the first number is positive: the last state must remember it."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(random.integers(1, 9), 2)) for _ in range(n)]
    return X, np.array(["no", "yes"])[[int(row[0, 0] > 0) for row in X]]


def graphs(n=160):
    """A ring or a path; every node looks alike but for its neighbours."""
    X, y = [], np.arange(n) % 2
    for label, size in zip(y, np.random.default_rng(0).integers(3, 9, n), strict=True):
        a = np.arange(size if label else size - 1)
        b = (a + 1) % size
        X.append((np.ones((size, 1)), np.stack([np.append(a, b), np.append(b, a)])))
    return X, y


CASES = {
    "sequences": (RaggedClassifier(epochs=30, lr=0.02, batch_size=16, random_state=0), sequences),
    "graphs": (GraphClassifier(epochs=30, lr=0.02, batch_size=16, random_state=0), graphs),
}


@pytest.fixture(params=CASES)
def case(request):
    model, data = CASES[request.param]
    return clone(model), *data()


def test_they_learn_validate_and_answer_one_by_one_as_together(case):
    model, X, y = case
    model.fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.settings_["validation_rows"] == 16
    assert model.history_[-1]["val_loss"] < model.history_[0]["val_loss"]
    alone = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(20)])
    np.testing.assert_allclose(model.predict_proba(X[:20]), alone, atol=1e-5)


def test_weights_given_validation_rows_and_the_doctor_work(case):
    model, X, y = case
    training = Training(validation=(X[:30], y[:30]), patience=2, watch=True)
    weight = np.arange(len(y)) % 3
    model.set_params(training=training, calibrate=True).fit(X, y, sample_weight=weight)
    assert model.settings_["rows"] == np.count_nonzero(weight)
    assert model.temperature_ != 1.0
    assert not [note for note in model.diagnosis_.notes if "given up" in note]


class Dies(Callback):
    def on_epoch_end(self, state):
        if state.epoch == 3:
            raise KeyboardInterrupt


def test_a_run_that_was_interrupted_goes_on_to_the_bit(case, tmp_path):
    model, X, y = case
    whole = clone(model).set_params(epochs=5).fit(X, y)
    training = Training(run=tmp_path / "run", checkpoint_every=1, callbacks=[Dies()])
    model.set_params(epochs=5, training=training)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    model.set_params(training__callbacks=[]).fit(X, y)
    assert len(model.history_) == 5
    for one, other in zip(whole.module_.parameters(), model.module_.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_pickle_answers_alike(case):
    model, X, y = case
    model.set_params(epochs=1).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))


def test_graphs_of_a_batch_are_one_block_diagonal_graph():
    path = (torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]))
    packed = GraphRows([path, path]).take(torch.tensor([0, 1]))
    assert packed.edges.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert packed.graph.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(("system", "most"), [(ragged_classifier, 40), (graph_classifier, 60)])
def test_each_is_as_short_as_promised(system, most):
    """Statements and signatures count; imports, docstrings and blank lines do not."""
    tree = ast.parse(inspect.getsource(system))
    kept = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    lines = "\n".join(ast.unparse(node) for node in kept).splitlines()
    quotes = [line for line in lines if line.strip().startswith('"""')]
    assert len([line for line in lines if line.strip()]) - len(quotes) <= most


def test_the_guide_quotes_them():
    guide = Path(__file__).parents[2].joinpath("ADDING_A_SYSTEM.md").read_text(encoding="utf-8")
    for system in (ragged_classifier.RaggedRows, graph_classifier.GraphRows):
        assert inspect.getsource(system).strip() in guide
