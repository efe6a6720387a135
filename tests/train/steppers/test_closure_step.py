"""Optimizers that evaluate a batch several times, in the loop."""

import functools

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

import castalia
from castalia import Callback, MLPClassifier, MLPRegressor, Training
from castalia.errors import Diverged, InvalidParameter
from castalia.nets.dense import MLP
from castalia.objectives import L2, CrossEntropy, SquaredError
from castalia.objectives.objective import Objective
from castalia.optim import ConjugateGradient, GaussNewton, HessianFree, Newton
from castalia.protocols import Batch
from castalia.testing import train_tensors
from castalia.testing.toys import moons
from castalia.train.steppers.closure_step import Evaluations, Given, is_of_outputs

NEW = ("delta_bar_delta", "conjugate_gradient", "newton", "gauss_newton", "hessian_free")
CURVED = NEW[2:]

torch.manual_seed(0)
X = torch.randn(48, 3, dtype=torch.float64)
Y = torch.sin(X[:, :1] * 2) + X[:, 1:2]


def network(dropout=0.0):
    torch.manual_seed(1)
    return MLP(3, 1, hidden=(5,), activation="tanh", dropout=dropout).double()


def fit(net=None, objective=None, *, epochs=6, batch_size=48, run=None, **settings):
    net = net if net is not None else network()
    state = train_tensors(
        net,
        objective if objective is not None else SquaredError(),
        X,
        Y,
        training=Training(validation=0, **settings),
        epochs=epochs,
        batch_size=batch_size,
        lr=1e-3,
        run=run,
    )
    return net, state


def table(classes):
    chance = np.random.default_rng(0)
    X = chance.normal(size=(120, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, (y > 0).astype(int) if classes else y


@pytest.mark.parametrize("classes, batch_size", [(False, 40), (True, 120)])
@pytest.mark.parametrize("name", NEW)
def test_estimators_train_with_it_on_whole_and_mini_batches(name, classes, batch_size):
    estimator = MLPClassifier if classes else MLPRegressor
    model = estimator(
        hidden=(6,),
        activation="tanh",
        epochs=60 if name == "delta_bar_delta" else 8,
        batch_size=batch_size,
        lr=0.1,
        random_state=0,
        training=Training(optimizer=name, validation=0),
    ).fit(*table(classes))
    assert model.history_[-1]["loss"] < 0.75 * model.history_[0]["loss"]
    assert model.score(*table(classes)) > (0.75 if classes else 0.5)


@pytest.mark.parametrize("name", NEW)
def test_a_trained_estimator_is_saved_and_loaded(name, tmp_path):
    X, y = table(False)
    training = Training(optimizer=name, validation=0)
    model = MLPRegressor(hidden=(4,), epochs=2, random_state=0, training=training).fit(X, y)
    castalia.save(model, tmp_path / "model")
    loaded = castalia.load(tmp_path / "model")
    assert loaded.training.optimizer == name
    assert (loaded.predict(X) == model.predict(X)).all()


class Interrupt(Callback):
    def __init__(self, at):
        self.at = at

    def on_batch_start(self, state):
        if state.total == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", NEW)
def test_a_killed_run_ends_with_the_same_weights_dropout_included(name, tmp_path):
    settings = {"optimizer": name, "checkpoint_every": 1, "batch_size": 16, "epochs": 3}
    whole, _ = fit(network(0.3), run=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        fit(network(0.3), run=tmp_path / "cut", callbacks=[Interrupt(5)], **settings)
    resumed, _ = fit(network(0.3), run=tmp_path / "cut", **settings)
    for mine, theirs in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("name", CURVED)
def test_a_step_of_the_loop_is_the_optimizers_own_step(name):
    trained, _ = fit(optimizer=name, epochs=3)
    net = network()
    optimizer = castalia.optim.build_optimizer(name, net.parameters(), lr=1.0)
    for _ in range(3):
        optimizer.step(lambda: (net(X), lambda out: (out - Y).square().mean()))
    for mine, theirs in zip(trained.parameters(), net.parameters(), strict=True):
        assert_close(mine, theirs)


@pytest.mark.parametrize("name", ["conjugate_gradient", *CURVED])
def test_the_recorded_loss_is_that_before_the_step_and_lr_is_its_own(name):
    with torch.no_grad():
        first = float((network()(X) - Y).square().mean())
    _, state = fit(optimizer=name, epochs=2)
    assert state.history[0]["loss"] == pytest.approx(first)
    assert state.history[0]["lr"] == 1.0


def test_every_evaluation_of_a_step_sees_the_same_dropout():
    net, evaluations = network(0.5).train(), Evaluations(torch.device("cpu"))
    batch = Batch(X, Y)
    closure = evaluations.of_loss(SquaredError(), net, batch, "train")
    losses = {float(closure().detach()) for _ in range(4)}
    assert len(losses) == 1
    assert float(SquaredError().terms(net, batch, "train")["loss"].detach()) not in losses


class Twice(Objective):
    """Asks the network twice: with and without noise."""

    def terms(self, net, batch, phase):
        gap = net(batch.x + 0.01) - net(batch.x)
        return {"loss": gap.square().mean() + (net(batch.x) - batch.y).square().mean()}


@pytest.mark.parametrize(
    "objective, answer",
    [(SquaredError(), True), (SquaredError() + L2(0.1), True), (Twice(), False)],
    ids=["supervised", "penalised", "twice"],
)
def test_losses_of_the_outputs_are_recognised(objective, answer):
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1)).double().train()
    before = net[0].running_mean.clone()
    assert is_of_outputs(objective, net, Batch(X, Y), "train") is answer
    assert torch.equal(before, net[0].running_mean)
    assert net.training


def test_hessian_free_uses_the_hessian_where_the_loss_is_not_of_the_outputs():
    _, state = fit(objective=Twice(), optimizer="hessian_free")
    assert state.history[-1]["loss"] < 0.5 * state.history[0]["loss"]


def test_gauss_newton_refuses_a_loss_that_is_not_of_the_outputs():
    with pytest.raises(InvalidParameter, match=r"GaussNewton: the objective must.*got Twice"):
        fit(objective=Twice(), optimizer="gauss_newton")


def test_a_penalty_counts_in_gauss_newton_steps():
    strong, _ = fit(objective=SquaredError() + L2(10.0), optimizer="gauss_newton", epochs=30)
    weights = [p for p in strong.parameters() if p.ndim == 2]
    assert max(float(w.detach().abs().max()) for w in weights) < 1e-3


def test_a_stand_in_answers_once_and_hands_on_the_rest():
    net = network()
    given = Given(net, X, Y)
    assert given(X) is Y
    assert list(given.parameters())[0] is next(net.parameters())


def test_listeners_see_the_gradient_at_the_start_of_the_step():
    seen, net = [], network()

    class Listen(Callback):
        def on_gradients(self, state):
            seen.append(torch.cat([p.grad.flatten() for p in net.parameters()]).clone())

    fresh = network()
    (fresh(X) - Y).square().mean().backward()
    fit(net, optimizer="hessian_free", epochs=1, callbacks=[Listen()])
    assert len(seen) == 1
    assert_close(seen[0], torch.cat([p.grad.flatten() for p in fresh.parameters()]))


def test_a_schedule_scales_the_steps():
    net, before = network(), network()
    fit(net, optimizer="newton", schedule=lambda k, total: 0.0, epochs=1)
    for mine, theirs in zip(net.parameters(), before.parameters(), strict=True):
        assert_close(mine, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["conjugate_gradient", *CURVED])
def test_a_loss_that_is_no_number_ends_the_training_by_name(name):
    class Broken(SquaredError):
        def terms(self, net, batch, phase):
            return {"loss": super().terms(net, batch, phase)["loss"] * float("nan")}

    with pytest.raises(Diverged, match="the loss must be finite before a step; got nan"):
        fit(objective=Broken(), optimizer=name)


def test_cross_entropy_of_weighted_rows_is_a_loss_of_outputs():
    X, y = moons(100)
    model = MLPClassifier(
        hidden=(6,), epochs=10, random_state=0, training=Training(optimizer="gauss_newton")
    )
    model.fit(X, y, sample_weight=np.linspace(0.5, 1.5, len(X)))
    assert model.score(X, y) > 0.8
    assert is_of_outputs(
        CrossEntropy(),
        nn.Linear(2, 2),
        Batch(torch.zeros(3, 2), torch.tensor([0, 1, 1]), torch.ones(3)),
        "train",
    )


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"weight_decay": 0.1}, "`weight_decay` must be 0 with optimizer 'newton'; got 0.1"),
        ({"clip": 1.0}, "`clip` must be None with optimizer 'newton'; got 1.0"),
        ({"accumulate": 2}, "`accumulate` must be 1 with optimizer 'newton'; got 2"),
        ({"compile": True}, "`compile` must be 'auto' or False with optimizer 'newton'; got True"),
        ({"precision": "bf16"}, "`precision` must not be 'bf16' with optimizer 'newton'"),
        ({"optimizer": Newton, "accumulate": 3}, "with optimizer 'newton'; got 3"),
        (
            {"optimizer": functools.partial(HessianFree, damping=1.0), "clip": 2.0},
            "with optimizer 'HessianFree'; got 2.0",
        ),
        (
            {"optimizer": lambda p, lr: GaussNewton(p), "accumulate": 2},
            "with optimizer 'GaussNewton'; got 2",
        ),
    ],
    ids=["decay", "clip", "accumulate", "compile", "bf16", "class", "partial", "function"],
)
def test_settings_that_cannot_go_with_it_are_named(settings, message):
    training = Training(**{"optimizer": "newton", **settings})
    with pytest.raises(InvalidParameter, match=message):
        MLPRegressor(hidden=(4,), training=training).fit(*table(False))


@pytest.mark.parametrize("strategy", ["auto", "ddp"])
def test_several_processes_are_refused(monkeypatch, strategy):
    monkeypatch.setenv("WORLD_SIZE", "2")
    training = Training(optimizer="hessian_free", strategy=strategy)
    with pytest.raises(InvalidParameter, match="'hessian_free' runs in one process only"):
        MLPRegressor(training=training).fit(*table(False))


def test_gradient_closures_work_on_accumulated_batches():
    whole, _ = fit(optimizer="conjugate_gradient", epochs=2)
    parts, _ = fit(optimizer="conjugate_gradient", epochs=2, accumulate=3)
    for mine, theirs in zip(whole.parameters(), parts.parameters(), strict=True):
        assert_close(mine, theirs, rtol=1e-6, atol=1e-8)


def test_a_class_and_a_function_may_be_given():
    for maker in (ConjugateGradient, lambda p, lr: Newton(p, saddle_free=True, damping=0.1)):
        _, state = fit(optimizer=maker, epochs=8)
        assert state.history[-1]["loss"] < 0.8 * state.history[0]["loss"]
