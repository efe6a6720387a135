"""Labels that are wrong by a law, and a network that knows it."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.testing import assert_close

from castalia import MLPClassifier, Training, WeakSupervision
from castalia.errors import InvalidParameter
from castalia.models.strategies.noisy_labels import CorrectedCrossEntropy, label_transition
from castalia.objectives import CrossEntropy
from castalia.testing.toys import moons

NET = MLPClassifier(hidden=(16,), epochs=40, lr=0.02, training=Training(validation=0))
NOISE = np.array([[0.55, 0.45], [0.0, 1.0]])  # every other label of class 0 says 1


def spoilt(n, seed):
    X, y = moons(n, 0.1, seed)
    wrong = np.random.default_rng(seed + 1000).random(n) < NOISE[y, 1 - y]
    return X, y, np.where(wrong, 1 - y, y)


def test_right_labels_make_it_cross_entropy_and_the_minimum_is_the_law_of_the_labels():
    z, y = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 2, 1, 1, 0])
    assert_close(CorrectedCrossEntropy(np.eye(3)).rows(z, y), CrossEntropy().rows(z, y))
    t = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]])
    p = torch.softmax(z, dim=1).numpy()
    seen = (p @ t)[np.arange(5), y]
    assert_close(CorrectedCrossEntropy(t).rows(z, y).numpy(), -np.log(seen))


def test_labels_that_are_mostly_wrong_for_a_class_do_not_mislead_a_network_that_knows():
    unseen, gains = moons(500, 0.1, 99), []
    for seed in range(3):
        X, _, labels = spoilt(300, seed)
        plain = clone(NET).set_params(random_state=seed).fit(X, labels).score(*unseen)
        model = WeakSupervision(NET, transition=NOISE, random_state=seed).fit(X, labels)
        gains.append(model.score(*unseen) - plain)
    assert np.mean(gains) > 0.05


def test_the_law_is_counted_from_rows_that_were_held_out():
    X, y, labels = spoilt(400, 5)
    true = np.array([[np.mean(labels[y == k] == j) for j in (0, 1)] for k in (0, 1)])
    found = WeakSupervision(NET, random_state=0).fit(X, labels).transition_
    assert np.abs(found - true).max() < 0.2
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_a_row_that_looks_like_another_class_counts_as_that_one():
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]])
    np.testing.assert_array_equal(label_transition(p, np.array([0, 0, 1, 1])), np.eye(2))
    assert label_transition(p, np.array([0, 0, 0, 1]))[1].tolist() == [0.5, 0.5]


def test_a_matrix_of_the_wrong_shape_is_refused():
    with pytest.raises(InvalidParameter, match="must be 2 rows of 2 chances that sum to 1; got"):
        WeakSupervision(NET, transition=np.eye(3)).fit(*moons(40))
