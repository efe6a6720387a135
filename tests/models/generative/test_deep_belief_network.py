"""A stack of machines that is learnt layer by layer, then fine-tuned."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from castalia import DeepBeliefNetwork
from castalia.errors import InvalidParameter


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return X.astype(np.float32) / 16, y


@pytest.fixture(scope="module")
def model(digits):
    X, y = digits
    return DeepBeliefNetwork(
        hidden=(48, 24), pretrain_epochs=20, batch_size=20, epochs=15, lr=3e-3, random_state=0
    ).fit(X[:400], y[:400])


def test_it_classifies_rows_it_has_not_seen(model, digits):
    X, y = digits
    assert model.score(X[400:], y[400:]) > 0.85
    np.testing.assert_allclose(model.predict_proba(X[:5]).sum(axis=1), 1)
    assert model.transform(X[:5]).shape == (5, 24)


def test_the_layers_start_as_the_machines_and_the_machines_stay(model, digits):
    X, _ = digits
    below, above = model.machines_
    assert (below.weights_.shape, above.weights_.shape) == ((64, 48), (48, 24))
    fresh = model._network(model.spec_)
    model_linear = model.module_[0].weight.detach().numpy()
    assert np.abs(model_linear - below.weights_.T).max() > 1e-3  # fine-tuned
    assert np.corrcoef(model_linear.ravel(), below.weights_.T.ravel())[0, 1] > 0.5  # from there
    assert fresh[0].weight.shape == model.module_[0].weight.shape
    assert above.transform(below.transform(X[:3])).shape == (3, 24)


def test_samples_come_from_the_stack(model, digits):
    X, _ = digits
    drawn = model.sample(300, steps=200)
    assert drawn.shape == (300, 64)
    blank = X[:400].mean(axis=0) < 0.01
    assert drawn[:, blank].mean() < 0.1
    assert np.corrcoef(drawn.mean(axis=0), X[:400].mean(axis=0))[0, 1] > 0.8


def test_a_stack_of_nothing_is_refused():
    with pytest.raises(InvalidParameter, match="at least one number of units; got none"):
        DeepBeliefNetwork(hidden=()).fit(np.eye(4), [0, 1, 0, 1])
