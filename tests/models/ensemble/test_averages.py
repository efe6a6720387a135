"""Deep, snapshot and dropout ensembles, and averages of weights."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier
from tests.sklearn_checks import learns_alike

import castalia
from castalia import (
    Callback,
    DeepEnsemble,
    DistributionRegressor,
    DropoutEnsemble,
    MLPClassifier,
    MLPRegressor,
    SnapshotEnsemble,
    Training,
    WeightAverage,
)
from castalia.errors import InvalidParameter
from castalia.models.ensemble.snapshot import _Restarts
from castalia.testing.toys import moons, sine

NET = MLPRegressor(hidden=(8,), epochs=30, lr=0.02, training=Training(validation=0))


@pytest.mark.parametrize(
    "ensemble",
    [
        DeepEnsemble(estimator=NET, members=2),
        SnapshotEnsemble(estimator=NET, members=2),
        DropoutEnsemble(
            estimator=MLPRegressor(hidden=(32,), dropout=0.2, epochs=30, lr=0.02), members=3
        ),
    ],
    ids=lambda ensemble: type(ensemble).__name__,
)
def test_scikit_learn_finds_no_fault_with_regressors(ensemble):
    learns_alike(ensemble)


# ---- deep ensembles ----


def test_a_mixture_adds_the_members_variance_to_that_of_their_means():
    X, y = sine(200)
    net = DistributionRegressor(hidden=(8,), epochs=20, lr=0.02)
    model = DeepEnsemble(estimator=net, members=3, random_state=0).fit(X, y)
    means = np.stack([m.predict(X) for m in model.estimators_])
    spreads = np.stack([m.predict_std(X) for m in model.estimators_])
    second = (spreads**2 + means**2).mean(axis=0)
    np.testing.assert_allclose(model.predict_std(X) ** 2, second - means.mean(axis=0) ** 2)
    each = np.stack([m.log_likelihood(X, y) for m in model.estimators_])
    np.testing.assert_allclose(model.log_likelihood(X, y), np.log(np.exp(each).mean(axis=0)))
    assert (model.log_likelihood(X, y) >= each.mean(axis=0) - 1e-12).all()  # Jensen


def test_only_members_with_a_likelihood_give_one():
    assert not hasattr(DeepEnsemble(), "log_likelihood")
    assert hasattr(DeepEnsemble(estimator=DistributionRegressor()), "log_likelihood")
    assert not hasattr(DeepEnsemble(estimator=MLPRegressor()), "predict_proba")


def test_members_disagree_far_from_the_data():
    X, y = sine(100)
    model = DeepEnsemble(estimator=NET, members=4, random_state=0).fit(X, y)
    assert model.predict_std([[5.0]])[0] > 5 * model.predict_std([[0.0]])[0]


def test_a_device_is_handed_down_to_the_members():
    X, y = moons(40)
    model = DeepEnsemble(members=2, device="cpu", random_state=0).fit(X, y)
    assert [m.training.device for m in model.estimators_] == ["cpu", "cpu"]
    bare = DeepEnsemble(estimator=MLPClassifier(epochs=1), members=1, device="cpu").fit(X, y)
    assert bare.estimators_[0].training.device == "cpu"
    with pytest.raises(NotFittedError):
        DeepEnsemble().predict(X)


# ---- snapshots ----


def test_the_rate_restarts_with_every_cycle():
    rate = _Restarts((2, 3, 4))
    assert [round(rate(k, 8), 3) for k in range(8)] == [1, 0.854, 0.5, 0.146, 1, 0.5, 1, 0.5]
    assert rate(12, 13) > 0


def test_members_are_the_weights_at_the_ends_of_the_cycles():
    kept = []

    class Keep(Callback):
        def on_epoch_end(self, state):
            kept.append([p.detach().clone() for p in state.net.parameters()])

    X, y = sine(80)
    net = MLPRegressor(hidden=(4,), epochs=8, training=Training(validation=0, callbacks=(Keep(),)))
    model = SnapshotEnsemble(estimator=net, members=3, random_state=0).fit(X, y)
    assert len(kept) == 8
    assert [m.n_iter_ for m in model.estimators_] == [4, 6, 8]
    for member in model.estimators_:
        pairs = zip(member.module_.parameters(), kept[member.n_iter_ - 1], strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    rates = [line["lr"] for line in model.estimators_[-1].history_]
    assert [i for i in range(1, 8) if rates[i] > rates[i - 1]] == [4, 6]
    assert rates[4] == rates[6] == pytest.approx(rates[0], rel=0.2)
    mean = np.mean([m.predict(X) for m in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict(X), mean)


@pytest.mark.parametrize(
    "net, message",
    [
        (DecisionTreeClassifier(), "one of ours that is trained by gradients; got DecisionTree"),
        (MLPClassifier(epochs=3), "at least `members`.*got 3 for 5"),
        (MLPClassifier(training=Training(schedule="cosine")), "`schedule` .* got 'cosine'"),
        (MLPClassifier(training=Training(patience=2)), "`patience` .* got 2"),
        (MLPClassifier(training=Training(average="ema")), "`average` .* got 'ema'"),
    ],
    ids=["tree", "epochs", "schedule", "patience", "average"],
)
def test_what_snapshots_cannot_use_is_named(net, message):
    with pytest.raises(InvalidParameter, match=message):
        SnapshotEnsemble(estimator=net).fit(*moons(40))


# ---- averages of weights ----


@pytest.mark.parametrize("average, setting", [("swa", "swa"), ("ema", ("ema", 0.9))])
def test_weight_averages_are_those_of_the_loop(average, setting):
    X, y = sine(80)
    model = WeightAverage(estimator=NET, average=average, decay_rate=0.9, random_state=0).fit(X, y)
    net = clone(NET).set_params(random_state=model.estimator_.random_state)
    alone = net.set_params(training=Training(validation=0, average=setting)).fit(X, y)
    assert np.array_equal(model.predict(X), alone.predict(X))
    assert model.module_ is model.estimator_.module_


def test_only_networks_have_weights_to_average(tmp_path):
    for cls in (WeightAverage, DropoutEnsemble):
        with pytest.raises(InvalidParameter, match="trained by gradients; got DecisionTree"):
            cls(estimator=DecisionTreeClassifier()).fit(*moons(40))
    X, y = sine(60)
    model = WeightAverage(estimator=NET, random_state=0).fit(X, y)
    loaded = castalia.load(castalia.save(model, tmp_path / "model"))
    assert np.array_equal(loaded.predict(X), model.predict(X))


# ---- dropout ----


def test_a_network_that_drops_nothing_is_no_ensemble():
    with pytest.raises(InvalidParameter, match="Set `dropout` above 0"):
        DropoutEnsemble(estimator=MLPClassifier(epochs=1)).fit(*moons(40))


def test_sub_networks_leave_no_trace_and_answer_each_row_by_itself():
    X, y = moons(60)
    model = DropoutEnsemble(members=6, random_state=0).fit(X, y)
    plain = model.estimator_.predict_proba(X)
    mean = model.predict_proba(X)
    assert np.array_equal(model.estimator_.predict_proba(X), plain)
    np.testing.assert_allclose(model.predict_proba(X[7:9]), mean[7:9])
    assert not np.allclose(mean, plain)
    assert (model.predict_std(X) > 0).any()


def test_without_one_mask_the_sub_network_is_the_masked_network_by_hand():
    X, y = sine(60)
    net = MLPRegressor(hidden=(5,), dropout=0.4, epochs=3, training=Training(precision="float64"))
    model = DropoutEnsemble(estimator=net, members=3, random_state=0).fit(X, y)
    est = model.estimator_
    first, last = est.module_.layers[0], est.module_.layers[-1]
    x = est.adapter_.rows(X, np.float64).take(torch.arange(60))
    with torch.no_grad():
        hidden = torch.relu(first(x))
        said = [last(hidden * torch.from_numpy(m) / 0.6) for m in model.masks_[0]]
    expected = np.mean([est.codec.decode(est, values) for values in said], axis=0)
    np.testing.assert_allclose(model.predict(X), expected)
