"""Asked first, told then: losses by arrival, and what they cost against knowing all."""

import numpy as np
import pytest

from castalia import MLPClassifier, MLPRegressor, OnlineLearning, Training
from castalia.errors import InvalidData
from castalia.models.strategies.curriculum import row_losses
from castalia.testing.toys import moons, sine

NET = MLPClassifier(hidden=(16,), epochs=40, lr=0.02, training=Training(validation=0))


def test_the_mean_regret_falls_as_rows_arrive():
    X, y = moons(800, 0.1)
    model = OnlineLearning(NET, block=8, random_state=0).fit(X, y)
    regret = model.regret(X, y) / np.arange(1, 801)
    assert regret[99] > regret[399] > regret[799]
    assert regret[799] < 0.5 * regret[99]


def test_the_loss_of_a_row_is_that_before_it_is_learnt():
    X, y = moons(40)
    model = OnlineLearning(NET, block=4, random_state=0).fit(X[:36], y[:36])
    before = row_losses(model.estimator_, X[36:], y[36:])
    model.partial_fit(X[36:], y[36:])
    np.testing.assert_array_equal(model.losses_[36:], before)
    assert len(model.losses_) == 40


def test_rows_in_two_calls_are_rows_in_one():
    X, y = moons(48)
    whole = OnlineLearning(NET, block=8, random_state=0).partial_fit(X, y)
    parts = OnlineLearning(NET, block=8, random_state=0)
    parts.partial_fit(X, y)  # scales are those of the first rows
    np.testing.assert_array_equal(whole.losses_, parts.losses_)
    assert parts.partial_fit(X[:8], y[:8]).losses_[48:].mean() < whole.losses_[:8].mean()


def test_classes_may_come_later_when_they_are_named_and_numbers_are_learnt_too():
    X, y = moons(60)
    first = y == 0
    model = OnlineLearning(NET, block=10, random_state=0)
    model.partial_fit(X[first], y[first], classes=[0, 1]).partial_fit(X[~first], y[~first])
    assert model.classes_.tolist() == [0, 1]
    X, y = sine(200)
    net = MLPRegressor(hidden=(16,), lr=0.02, training=Training(validation=0))
    losses = OnlineLearning(net, block=5, random_state=0).fit(X, y).losses_
    assert losses[-50:].mean() < 0.7 * losses[:50].mean()


def test_regret_is_asked_of_the_rows_that_were_met():
    X, y = moons(40)
    with pytest.raises(InvalidData, match="must be the 40 rows that were met; got 39"):
        OnlineLearning(NET, block=40, random_state=0).fit(X, y).regret(X[1:], y[1:])
