"""What the course says about ensembles, as seeded experiments."""

import copy
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression, Perceptron
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from castalia import (
    AdaBoost,
    Bagging,
    Callback,
    DeepEnsemble,
    DropoutEnsemble,
    MLPClassifier,
    MLPRegressor,
    Training,
    WeightAverage,
)
from castalia.testing.toys import moons, plane, sine


def test_bagging_lowers_the_error_and_the_variance_of_deep_trees():
    X, y = sine(400, noise=0.4)
    clean = np.sin(3 * X[200:, 0])
    tree = DecisionTreeRegressor()
    model = Bagging(estimator=tree, members=30, random_state=0).fit(X[:200], y[:200])
    each = [np.mean((m.predict(X[200:]) - clean) ** 2) for m in model.estimators_]
    together = np.mean((model.predict(X[200:]) - clean) ** 2)
    assert together < 0.5 * np.mean(each)
    assert together < min(each)

    def variance(estimator):
        """Variance of the prediction over training sets."""
        fits = [estimator.fit(*sine(80, noise=0.4, seed=s)).predict(X[200:]) for s in range(12)]
        return np.var(fits, axis=0).mean()

    bagged = Bagging(estimator=DecisionTreeRegressor(), members=15, random_state=0)
    assert variance(bagged) < 0.7 * variance(DecisionTreeRegressor(random_state=0))


class Voter(ClassifierMixin, BaseEstimator):
    """Names the right class with probability p, independently of everybody else."""

    def __init__(self, p=0.7, random_state=None):
        self.p, self.random_state = p, random_state

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):  # the first column of X holds the right class
        right = np.random.default_rng(self.random_state).random(len(X)) < self.p
        return np.where(right, X[:, 0], 1 - X[:, 0]).astype(int)


@pytest.mark.parametrize("members, p", [(5, 0.6), (11, 0.7), (11, 0.4)])
def test_the_error_of_a_majority_of_independent_voters_is_binomial(members, p):
    y = np.arange(20_000) % 2
    model = Bagging(estimator=Voter(p), members=members, combine="vote", random_state=0)
    error = 1 - model.fit(y[:, None].astype(float), y).score(y[:, None], y)
    expected = binom.cdf(members // 2, members, p)  # at most half of them are right
    assert error == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 20_000))


@settings(max_examples=60, deadline=None)
@given(
    logits=arrays(float, (4, 7, 3), elements=st.floats(-30, 30)),
    codes=arrays(int, 7, elements=st.integers(0, 2)),
)
def test_averaged_probabilities_are_no_worse_than_the_members_are_on_average(logits, codes):
    p = np.exp(logits - logits.max(axis=2, keepdims=True))
    p /= p.sum(axis=2, keepdims=True)
    mean = Bagging()._combined(p)
    rows = np.arange(7)
    ensemble = -np.log(mean[rows, codes])
    members = -np.log(p[:, rows, codes])
    assert (ensemble <= members.mean(axis=0) + 1e-9).all()
    np.testing.assert_allclose(mean.sum(axis=1), 1)


def test_jensen_holds_for_trained_members():
    X, y = moons(300, noise=0.3)
    model = Bagging(members=5, random_state=0).fit(X[:150], y[:150])
    X, y = X[150:], y[150:]
    rows = np.arange(len(y))
    each = [-np.log(m.predict_proba(X)[rows, y]).mean() for m in model.estimators_]
    assert -np.log(model.predict_proba(X)[rows, y]).mean() < np.mean(each)


def test_bagged_perceptrons_draw_a_smoother_boundary_and_err_less_than_one():
    X, y = moons(1200, noise=0.3)
    test = slice(200, None)
    bag = Bagging(estimator=Perceptron(max_iter=5, tol=None), members=25, combine="vote")
    bag.set_params(random_state=0).fit(X[:200], y[:200])
    single = [m.score(X[test], y[test]) for m in bag.estimators_]
    assert bag.score(X[test], y[test]) > np.mean(single) + 0.02
    # The share of votes takes many steps across the boundary where one perceptron takes one.
    line = np.column_stack([np.full(400, 0.5), np.linspace(-2, 2, 400)])
    assert len(np.unique(bag.predict_proba(line)[:, 1])) > 5
    assert len(np.unique(bag.estimators_[0].predict(line))) == 2


def test_adaboost_with_stumps_reaches_no_training_error_under_its_bound():
    X, y = moons(200, noise=0.1)
    model = AdaBoost(members=200).fit(X, y)
    assert model.train_errors_[0] > 0.1
    assert model.train_errors_[-1] == 0
    assert (model.train_errors_ <= model.bounds_).all()
    closed = 2.0 ** np.arange(1, len(model.errors_) + 1) * np.cumprod(
        np.sqrt(model.errors_ * (1 - model.errors_))
    )
    np.testing.assert_allclose(model.bounds_, closed)
    assert model.bounds_[-1] < model.bounds_[20] < model.bounds_[5] < 1


def test_bagging_gains_nothing_for_a_stable_learner_and_much_for_an_unstable_one():
    def gain(estimator, X, y):
        half = len(X) // 2
        bag = Bagging(estimator=estimator, members=25, random_state=0).fit(X[:half], y[:half])
        lone = estimator.fit(X[:half], y[:half])
        error = [np.mean((m.predict(X[half:]) - y[half:]) ** 2) for m in (lone, bag)]
        return 1 - error[1] / error[0]

    assert abs(gain(LinearRegression(), *plane(400))) < 0.02
    assert gain(DecisionTreeRegressor(random_state=0), *plane(400)) > 0.2


def test_a_stable_classifier_votes_as_one():
    X, y = moons(400, noise=0.3)
    tree = Bagging(estimator=DecisionTreeClassifier(), members=25, random_state=0)
    lone = DecisionTreeClassifier(random_state=0).fit(X[:200], y[:200])
    bagged = tree.fit(X[:200], y[:200])
    assert bagged.score(X[200:], y[200:]) > lone.score(X[200:], y[200:])


# ---- dropout as an ensemble ----


def dropout_net(hidden=6, members=1):
    X, y = sine(60)
    net = MLPRegressor(
        hidden=(hidden,),
        dropout=0.5,
        epochs=40,
        lr=0.02,
        training=Training(validation=0, precision="float64"),
    )
    return DropoutEnsemble(estimator=net, members=members, random_state=0).fit(X, y), X


def test_d_units_make_two_to_the_d_sub_networks_that_share_their_weights():
    model, X = dropout_net(hidden=6)
    assert model.n_subnetworks_ == 2**6
    masks = np.array(list(product([False, True], repeat=6)))
    before = [(p.data_ptr(), p.detach().clone()) for p in model.estimator_.module_.parameters()]
    answers = model._answers(X, [masks])
    after = list(model.estimator_.module_.parameters())
    for (place, value), now in zip(before, after, strict=True):
        assert now.data_ptr() == place
        assert torch.equal(now, value)
    assert len(np.unique(answers.round(9), axis=0)) >= 2**5  # and most are other functions
    mean, single = answers.mean(axis=0), answers.var(axis=0)
    halves = np.stack([answers[i::8].mean(axis=0) for i in range(8)])
    assert halves.var(axis=0).mean() < 0.5 * single.mean()
    assert np.mean((mean - answers) ** 2) == pytest.approx(single.mean())


def test_the_error_of_sampled_masks_to_the_exact_average_falls_as_one_over_sqrt_k():
    model, X = dropout_net(hidden=6)
    every = model._answers(X, [np.array(list(product([False, True], repeat=6)))])
    exact = every.mean(axis=0)
    sizes, errors = [4, 16, 64, 256], []
    for k in sizes:
        tries = []
        for seed in range(30):
            (masks,) = model.set_params(members=k)._draw(X, seed)
            found = every[masks @ 2 ** np.arange(6)[::-1]].mean(axis=0)
            tries.append(np.mean((found - exact) ** 2))
        errors.append(np.sqrt(np.mean(tries)))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.12)


def test_the_answer_is_the_mean_over_the_drawn_sub_networks_and_its_spread_their_deviation():
    model, X = dropout_net(hidden=6, members=15)
    (masks,) = model.masks_
    assert masks.shape == (15, 6)
    assert 0.3 < masks.mean() < 0.7  # units stay with probability 1 - 0.5
    members = []
    for mask in masks:
        member = copy.deepcopy(model.estimator_)
        member.module_.layers[-1].weight.data *= torch.as_tensor(mask / 0.5)  # a dropped unit: 0
        members.append(member.predict(X))
    members = np.stack(members)
    assert members.std(axis=0).mean() > 0.01
    np.testing.assert_allclose(model.predict(X), members.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(model.predict_std(X), members.std(axis=0), atol=1e-9)


# ---- averages of weights ----


def test_the_mean_of_the_weights_beats_the_mean_loss_on_a_noisy_quadratic():
    X, y = plane(200, noise=1.0)
    path = []

    class Keep(Callback):
        def on_epoch_end(self, state):
            path.append([p.detach().clone() for p in state.net.parameters()])

    training = Training(
        optimizer="sgd", validation=0, precision="float64", device="cpu", callbacks=(Keep(),)
    )
    # A linear network's squared error is a quadratic; batches of 2 rows make its gradient noisy.
    net = MLPRegressor(hidden=(), epochs=16, batch_size=2, lr=0.1, training=training)
    model = WeightAverage(estimator=net, random_state=0).fit(X, y)
    assert len(path) == 16
    members = []
    for weights in path[12:]:  # the last quarter is what is averaged
        for p, value in zip(model.module_.parameters(), weights, strict=True):
            p.data.copy_(value)
        members.append(np.mean((model.predict(X) - y) ** 2))
    means = [torch.stack(ws).mean(dim=0) for ws in zip(*path[12:], strict=True)]
    for p, value in zip(model.module_.parameters(), means, strict=True):
        p.data.copy_(value)
    averaged = np.mean((model.predict(X) - y) ** 2)
    again = WeightAverage(estimator=net, random_state=0).fit(X, y)
    np.testing.assert_allclose(np.mean((again.predict(X) - y) ** 2), averaged)
    assert averaged < np.mean(members)


def test_averaged_weights_are_one_model_when_predicting():
    X, y = sine(60)
    net = MLPRegressor(hidden=(7,), epochs=4)
    model = WeightAverage(estimator=net, random_state=0).fit(X, y)
    calls = []
    model.module_.register_forward_hook(lambda *args: calls.append(1))
    model.predict(X)
    assert len(calls) == 1
    assert sum(p.numel() for p in model.module_.parameters()) == 7 + 7 + 7 + 1


def test_the_mean_of_logits_of_separately_trained_models_beats_the_mean_member():
    X, y = load_digits(return_X_y=True)
    X, y, X_test, y_test = X[:500], y[:500], X[500:1300], y[500:1300]
    net = MLPClassifier(hidden=(12,), epochs=25, lr=5e-3)
    ensemble = DeepEnsemble(estimator=net, members=4, combine="logits", random_state=0).fit(X, y)
    logits = np.stack([m._outputs(X_test).numpy() for m in ensemble.estimators_]).mean(axis=0)
    np.testing.assert_allclose(ensemble.predict_proba(X_test), softmax(logits, axis=1), atol=1e-5)
    each = [m.score(X_test, y_test) for m in ensemble.estimators_]
    assert ensemble.score(X_test, y_test) > np.mean(each)
