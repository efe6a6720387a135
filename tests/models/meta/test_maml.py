"""Starting weights for a family: gradients by hand, tasks side by side, sines from five points."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor
from torch import nn
from torch.testing import assert_close

import castalia
from castalia import ConvNetClassifier, MLPClassifier, MLPRegressor, Training
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.meta import MAML
from castalia.models.meta.maml import EpisodeLoss, MetaLoss, StartAndRates
from castalia.models.meta.starting_weights import adapted, task_loss
from castalia.nets.vision import ConvNet
from castalia.nn import network_modes
from castalia.objectives import CrossEntropy, SquaredError
from castalia.protocols import Batch

HALF = SquaredError(scale="half")


@pytest.mark.parametrize("second", [True, False], ids=["second order", "first order"])
def test_the_gradient_is_that_of_a_quadratic_by_hand(second):
    net = nn.Linear(1, 1, bias=False).double()
    net.weight.data.fill_(0.7)
    w, a = 0.7, 0.1
    x = torch.tensor([[[2.0], [2.0]], [[3.0], [3.0]]], dtype=torch.float64)  # any split is alike
    y = torch.tensor([[[1.0], [1.0]], [[-1.0], [-1.0]]], dtype=torch.float64)
    MetaLoss(HALF, 1, a, 1, second_order=second).terms(net, Batch(x, y), "train")["loss"].backward()
    found = 0.0
    for xs, ys in ((2.0, 1.0), (3.0, -1.0)):
        fast = w - a * xs * (w * xs - ys)
        found += xs * (fast * xs - ys) * (1 - a * xs**2 if second else 1) / 2
    assert net.weight.grad.item() == pytest.approx(found)


def test_tasks_side_by_side_are_tasks_one_by_one():
    net = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    x, y = torch.randn(4, 6, 2, dtype=torch.float64), torch.randn(4, 6, 1, dtype=torch.float64)
    torch.manual_seed(0)
    together = MetaLoss(HALF, 3, 0.2, 2).terms(net, Batch(x, y), "train")["loss"]
    torch.manual_seed(0)
    order = torch.randperm(6)
    inside, outside = order[:3], order[3:]
    weights, losses = dict(net.named_parameters()), []
    for task_x, task_y in zip(x, y, strict=True):
        fast = adapted(task_loss(net, HALF, task_x[inside], task_y[inside]), weights, 0.2, 2)
        outputs = torch.func.functional_call(net, fast, (task_x[outside],))
        losses.append(HALF.rows(outputs, task_y[outside]).mean())
    assert_close(together, torch.stack(losses).mean())


def test_tasks_are_drawn_from_classes_and_new_ones_are_learnt_from_two_rows_each(tmp_path):
    def angles(classes, seed):
        random = np.random.default_rng(seed)
        angle = np.repeat(random.uniform(0, 2 * np.pi, classes), 10)
        X = np.c_[np.cos(angle), np.sin(angle), random.normal(size=(len(angle), 2))]
        X[:, :2] += 0.05 * random.normal(size=(len(angle), 2))
        return X, np.repeat(np.arange(classes), 10)

    net = MLPClassifier(hidden=(32,), training=Training(validation=0))
    model = MAML(net, ways=3, shots=2, inner_lr=0.5, tasks=10, lr=1e-2, random_state=0)
    fresh = clone(model).set_params(epochs=1, lr=1e-9).fit(*angles(60, 0))
    model.set_params(epochs=30).fit(*angles(60, 0))
    X, y = angles(30, 1)
    found = model.score(X, y, groups=y // 3)
    assert found > fresh.score(X, y, groups=y // 3) + 0.05
    known = np.flatnonzero((y < 3) & (np.arange(300) % 10 < 2))
    named = model.adapt(X[known], np.array(["c", "a", "b"])[y[known]])
    assert named.classes_.tolist() == ["a", "b", "c"]
    castalia.save(model, tmp_path / "model")
    assert castalia.load(tmp_path / "model").score(X, y, groups=y // 3) == found
    with pytest.raises(InvalidData, match="as many classes as `ways`, 3; got 2"):
        model.adapt(X[:20], y[:20])
    with pytest.raises(InvalidData, match="3 classes or more, with 3 rows or more each; got 2"):
        clone(model).fit(X[:20], y[:20])
    with pytest.raises(InvalidParameter, match="must be a classifier where `ways` is set"):
        MAML(ways=3).fit(X, y)
    with pytest.raises(InvalidParameter, match="must not keep statistics of all batches"):
        MAML(ConvNetClassifier(widths=(2,)), ways=2).fit(np.zeros((20, 8, 8)), y[:20])


def test_an_episode_is_its_task_with_as_many_known_rows_of_each_class():
    net = nn.Sequential(nn.Linear(2, 3)).double()
    x = torch.randn(6, 1, 2, dtype=torch.float64).expand(6, 5, 2)  # rows of a class are alike
    settings = (CrossEntropy(), 2, 0.3, 1)
    found = EpisodeLoss(*settings, ways=3, queries=3).terms(net, Batch(x), "train")["loss"]
    weights, losses = dict(net.named_parameters()), []
    for task in x.split(3):
        truth = torch.arange(3)
        fast = adapted(task_loss(net, CrossEntropy(), task[:, 0], truth), weights, 0.3, 1)
        outputs = torch.func.functional_call(net, fast, (task[:, 0],))
        losses.append(CrossEntropy().rows(outputs, truth).mean())
    assert_close(found, torch.stack(losses).mean())


def test_batch_norm_is_by_the_rows_of_a_task_beside_others_and_alone(tmp_path):
    net = ConvNet(1, 2, widths=(2,), convs=1, batch_norm="own").double()
    x = torch.rand(4, 1, 1, 4, 4, dtype=torch.float64).expand(4, 3, 1, 4, 4)  # rows are alike
    settings = (CrossEntropy(), 1, 0.3, 1)
    found = EpisodeLoss(*settings, ways=2, queries=2).terms(net, Batch(x), "train")["loss"]
    weights, losses, truth = dict(net.named_parameters()), [], torch.arange(2)
    for task in x.split(2):
        fast = adapted(task_loss(net, CrossEntropy(), task[:, 0], truth), weights, 0.3, 1)
        outputs = torch.func.functional_call(net, fast, (task[:, 0],))
        losses.append(CrossEntropy().rows(outputs, truth).mean())
    assert_close(found, torch.stack(losses).mean())
    images, labels = np.arange(12 * 16).reshape(12, 4, 4) % 37, np.repeat([0, 1, 2], 4)
    plain = ConvNetClassifier(widths=(2,), convs=1, batch_norm="own", training=Training())
    model = MAML(plain, ways=3, shots=2, queries=2, epochs=1, random_state=0).fit(images, labels)
    castalia.save(model, tmp_path / "model")
    again = castalia.load(tmp_path / "model").adapt(images, labels)
    assert_close(again.predict_proba(images), model.adapt(images, labels).predict_proba(images))
    assert 0 <= model.score(images, labels) <= 1


def test_learnt_rates_step_where_the_gradient_of_the_query_says():
    net = nn.Linear(1, 1, bias=False).double()
    net.weight.data.fill_(0.7)
    both = StartAndRates(net, 0.1, steps=1)
    x = torch.full((1, 2, 1), 2.0, dtype=torch.float64)
    y = torch.ones(1, 2, 1, dtype=torch.float64)
    MetaLoss(HALF, 1, 0.0, 1).terms(both, Batch(x, y), "train")["loss"].backward()
    slope = 2.0 * (0.7 * 2.0 - 1.0)
    fast = 0.7 - 0.1 * slope
    assert both.values[0].grad.item() == pytest.approx(-slope * 2.0 * (fast * 2.0 - 1.0))


def test_every_inner_step_has_rates_of_its_own():
    def loss(w):
        return (w["a"] - 1) ** 2 / 2

    rates = {"a": torch.tensor([0.5, 0.2])}
    found = adapted(loss, {"a": torch.tensor(0.0)}, rates, 2)
    assert found["a"].item() == pytest.approx(0.5 + 0.2 * 0.5)
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = MAML(MLPClassifier(hidden=(4,)), ways=2, shots=1, tasks=3, epochs=2, inner_steps=2)
    model.set_params(rates="learnt", lr=0.1, random_state=0).fit(X, np.repeat(np.arange(12), 5))
    first, second = next(iter(model.rates_.values()))
    assert not torch.equal(first, second)
    learnt = model.adapt(X[:10], np.repeat([0, 1], 5), steps=4)  # further ones as the last
    assert learnt.predict(X[:3]).shape == (3,)


def sines(tasks, points, seed):
    random = np.random.default_rng(seed)
    x = random.uniform(-3, 3, (tasks, points))
    high, shift = random.uniform(0.5, 2, (tasks, 1)), random.uniform(0, np.pi, (tasks, 1))
    return x.reshape(-1, 1), (high * np.sin(x + shift)).ravel(), np.repeat(np.arange(tasks), points)


@pytest.mark.parametrize("rates", ["given", "learnt"])
def test_tasks_are_compiled_as_a_whole_and_learn_the_same(monkeypatch, rates):
    calls = []

    def compile_nothing(function, mode):
        return lambda *given: calls.append(mode) or function(*given)

    monkeypatch.setattr(torch, "compile", compile_nothing)
    network_modes.compiled.cache_clear()  # neither another's nor, later, this one
    X = np.random.default_rng(0).normal(size=(60, 3))

    def losses(mode):
        settings = Training(compile=mode, validation=0, watch=False)
        net = MLPClassifier(hidden=(4,), training=settings)
        model = MAML(net, ways=2, shots=1, queries=2, tasks=3, epochs=2, rates=rates)
        model.set_params(random_state=0).fit(X, np.repeat(np.arange(12), 5))
        return [line["loss"] for line in model.estimator_.history_]

    try:
        assert losses(True) == losses("auto")
    finally:
        network_modes.compiled.cache_clear()
    assert calls == [None] * 4  # two steps an epoch


def test_five_points_of_a_new_sine_are_enough_and_were_not_before():
    net = MLPRegressor(hidden=(40, 40), activation="tanh", training=Training(validation=0))
    model = MAML(net, inner_lr=0.3, epochs=25, lr=8e-3, tasks=20, random_state=0)
    model.fit(*sines(160, 15, 0))
    fresh = MAML(net, inner_lr=0.3, epochs=1, lr=1e-9, random_state=0).fit(*sines(20, 15, 0))
    x, y, task = sines(20, 25, 1)

    def error(start):
        found = []
        for t in range(20):
            rows = np.flatnonzero(task == t)
            learnt = start.adapt(x[rows[:5]], y[rows[:5]])
            found.append(np.mean((learnt.predict(x[rows[5:]]) - y[rows[5:]]) ** 2))
        return np.mean(found)

    after, before = error(model), np.mean((model.predict(x) - y) ** 2)
    assert after < 0.5 * error(fresh)
    assert after < 0.6 * before


def test_further_steps_never_raise_the_loss_though_the_rate_is_too_long_for_them():
    net = MLPRegressor(hidden=(8,), training=Training(validation=0))
    x, y, task = sines(4, 10, 0)
    model = MAML(net, inner_lr=5.0, epochs=1, lr=1e-9, random_state=0).fit(x, y, groups=task)
    losses = [
        np.mean((model.adapt(x[:5], y[:5], steps).predict(x[:5]) - y[:5]) ** 2)
        for steps in range(1, 6)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.9 * losses[0]


def test_missing_tasks_too_few_rows_and_another_estimator_are_refused():
    x, y, task = sines(4, 4, 0)
    with pytest.raises(InvalidData, match="`groups` must give the task of each of the 16 rows"):
        MAML().fit(x, y)
    with pytest.raises(InvalidData, match="with 6 rows or more each; got 4 with as few as 4"):
        MAML().fit(x, y, groups=task)
    with pytest.raises(InvalidData, match="every task must have two classes or more"):
        MAML(MLPClassifier(hidden=(2,)), shots=2).fit(x, task, groups=task)
    with pytest.raises(InvalidData, match="must name the group of every row; got NaN for 4"):
        MAML().fit(x, y, groups=np.where(task == 1, np.nan, task))
    with pytest.raises(InvalidParameter, match="`estimator` must be one of ours"):
        MAML(DecisionTreeRegressor()).fit(x, y, groups=task)
