"""Members trained side by side are those of lone trainings."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from sklearn.base import clone
from torch import nn

from castalia import (
    Bagging,
    Callback,
    DeepEnsemble,
    DistributionRegressor,
    MLPClassifier,
    MLPRegressor,
    Training,
)
from castalia.errors import Diverged
from castalia.models.ensemble.member_samples import MemberCuts
from castalia.models.ensemble.stack import Stack
from castalia.models.ensemble.stacked_members import _Group
from castalia.testing.toys import blobs, moons, sine

EXACT = {"validation": 0, "precision": "float64", "device": "cpu"}


def assert_equal_weights(one, other):
    for a, b in zip(one.module_.parameters(), other.module_.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"validation": 0.2},
        {"optimizer": "momentum", "schedule": "cosine"},
        {"optimizer": "adamw", "weight_decay": 0.1},
    ],
    ids=["adam", "validation", "schedule", "decay"],
)
def test_a_member_has_the_weights_of_a_lone_fit_from_its_seed(settings):
    X, y = blobs(150)
    net = MLPClassifier(
        hidden=(7, 5), epochs=3, batch_size=32, lr=0.02, training=Training(**{**EXACT, **settings})
    )
    ensemble = DeepEnsemble(estimator=net, members=3, random_state=0).fit(X, y)
    assert ensemble.together_
    for member in ensemble.estimators_:
        alone = clone(member).fit(X, y)
        assert_equal_weights(member, alone)
        np.testing.assert_allclose(member.predict_proba(X), alone.predict_proba(X))
        for ours, theirs in zip(member.history_, alone.history_, strict=True):
            kept = {k: v for k, v in theirs.items() if k != "seconds"}
            assert {k: pytest.approx(v) for k, v in kept.items() if k != "stage"} == {
                k: ours[k] for k in kept if k != "stage"
            }
        assert member.n_iter_ == alone.n_iter_
        assert member.settings_["seed"] == member.random_state


@pytest.mark.parametrize(
    "net", [MLPRegressor(), DistributionRegressor(), DistributionRegressor(likelihood="mixture")]
)
def test_regressors_too(net):
    X, y = sine(100)
    net = net.set_params(hidden=(6,), epochs=3, batch_size=40, training=Training(**EXACT))
    weight = np.linspace(0.5, 2, len(y))
    ensemble = DeepEnsemble(estimator=net, members=2, random_state=0).fit(X, y, weight)
    assert ensemble.together_
    alone = [clone(member).fit(X, y, weight) for member in ensemble.estimators_]
    for member, other in zip(ensemble.estimators_, alone, strict=True):
        assert_equal_weights(member, other)
    mean = np.mean([other.predict(X) for other in alone], axis=0)
    np.testing.assert_allclose(ensemble.predict(X), mean)


def test_embedded_categories_go_through_vmap():
    X, y = moons(120)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 0] > 0, "u", "v")})
    net = MLPClassifier(hidden=(6,), epochs=3, training=Training(**EXACT))
    ensemble = DeepEnsemble(estimator=net, members=2, random_state=0).fit(frame, y)
    assert ensemble.together_
    assert ensemble.estimators_[0].module_.embed is not None
    for member in ensemble.estimators_:
        assert_equal_weights(member, clone(member).fit(frame, y))
    both = np.mean([member.predict_proba(frame) for member in ensemble.estimators_], axis=0)
    np.testing.assert_allclose(ensemble.predict_proba(frame), both)


def test_bagged_members_equal_a_loop_over_them_with_the_same_batches(monkeypatch):
    seen = []
    run = _Group.run

    def remember(group, objective, device, precision):
        start = [[p.detach().clone() for p in net.parameters()] for net in group.nets]
        seen.append((group, start))
        run(group, objective, device, precision)

    monkeypatch.setattr(_Group, "run", remember)
    X, y = blobs(90)
    net = MLPClassifier(hidden=(5,), epochs=2, batch_size=20, lr=0.05, training=Training(**EXACT))
    Bagging(estimator=net, members=3, random_state=0).fit(X, y)
    ((group, start),) = seen
    cuts = MemberCuts([len(kept) for kept in group.kept], 20, torch.device("cpu"))
    assert len({len(kept) for kept in group.kept}) > 1
    samples = group.member_samples(torch.float64)
    orders = [next(samples.batches(20, 0, epoch))[0].order for epoch in range(2)]
    for i, member in enumerate(group.members):
        net = nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 3)).double()
        for p, value in zip(net.parameters(), start[i], strict=True):
            p.data = value.double().clone()
        adam = torch.optim.Adam(net.parameters(), lr=0.05)
        for order in orders:
            for step in range(cuts.steps):
                rows = order[i, cuts.positions[i, step][cuts.real[i, step]]]
                weight = samples.shares[i, rows]
                x, y = samples.x.take(rows), samples.y[rows]
                losses = F.cross_entropy(net(x), y, reduction="none")
                adam.zero_grad()
                ((losses * weight).sum() / weight.sum()).backward()
                adam.step()
        for ours, theirs in zip(member.module_.parameters(), net.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9)


def test_every_row_of_a_member_is_in_exactly_one_batch_of_an_epoch():
    cuts = MemberCuts([10, 7, 9], 4, torch.device("cpu"))
    assert cuts.steps == 3
    assert int(cuts.sizes.min()) >= 2
    for i, rows in enumerate((10, 7, 9)):
        assert cuts.positions[i][cuts.real[i]].tolist() == list(range(rows))


class Listener(Callback):
    pass


@pytest.mark.parametrize(
    "settings",
    [
        {"clip": 1.0},
        {"patience": 3, "validation": 0.2},
        {"accumulate": 2},
        {"average": "ema"},
        {"callbacks": (Listener(),)},
        {"watch": True},
        {"step": "plain"},
        {"optimizer": "lbfgs"},
        {"optimizer": lambda parameters, lr: torch.optim.SGD(parameters, lr)},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_what_is_not_known_is_fitted_one_by_one(settings):
    X, y = moons(80)
    net = MLPClassifier(hidden=(4,), epochs=2, training=Training(**settings))
    ensemble = DeepEnsemble(estimator=net, members=2, random_state=0).fit(X, y)
    assert not ensemble.together_
    both = np.mean([member.predict_proba(X) for member in ensemble.estimators_], axis=0)
    np.testing.assert_allclose(ensemble.predict_proba(X), both, rtol=1e-6)


def test_members_that_the_doctor_is_asked_to_watch_have_a_diagnosis_each():
    X, y = moons(80)
    net = MLPClassifier(hidden=(4,), epochs=2, training=Training(watch=True))
    ensemble = DeepEnsemble(estimator=net, members=2, random_state=0).fit(X, y)
    assert all(member._record is not None for member in ensemble.estimators_)


def test_a_new_setting_of_the_loop_is_a_reason_to_fit_one_by_one():
    from castalia.models.ensemble.stacked_members import INDEPENDENT, _is_independent

    for field in fields(Training):
        training = Training()
        setattr(training, field.name, object())
        assert field.name in INDEPENDENT or not _is_independent(training)
    assert _is_independent(Training())


def test_groups_that_do_not_fit_side_by_side_give_the_same_members(monkeypatch):
    X, y = moons(60)
    model = DeepEnsemble(members=3, random_state=0).fit(X, y)
    monkeypatch.setattr("castalia.models.ensemble.stacked_members.MOST_NUMBERS", 200)
    apart = clone(model).fit(X, y)
    assert apart.estimators_[0].settings_["together"] == 1
    for one, other in zip(model.estimators_, apart.estimators_, strict=True):
        assert_equal_weights(one, other)


def test_a_member_that_diverges_is_named():
    X, y = sine(60)
    net = MLPRegressor(hidden=(4,), epochs=50, lr=1e30, training=Training(optimizer="sgd"))
    with pytest.raises(Diverged, match=r"the loss of member \d became .* lr=1e\+30"):
        DeepEnsemble(estimator=net, members=2, random_state=0).fit(X, y)


def test_dropout_differs_between_members_and_is_off_when_predicting():
    nets = [nn.Sequential(nn.Linear(2, 50), nn.Dropout(0.5)) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    stack = Stack(nets, torch.device("cpu"), torch.float32)
    x = torch.randn(4, 2).expand(2, 4, 2)
    with torch.random.fork_rng():
        first, second = stack.train()(x)
    assert not torch.equal(first == 0, second == 0)
    torch.testing.assert_close(stack.eval()(x)[1], nets[0].eval()(x[0]))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_members_train_side_by_side_on_a_gpu():
    X, y = blobs(200)
    net = MLPClassifier(hidden=(8,), epochs=30, lr=1e-2, training=Training(device="cuda"))
    ensemble = Bagging(estimator=net, members=4, random_state=0).fit(X, y)
    assert next(ensemble.estimators_[0].module_.parameters()).is_cuda
    assert ensemble.together_
    assert ensemble.score(X, y) > 0.8
