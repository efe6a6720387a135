"""Every way of taking steps ends at the weights of the plain one, over the whole catalogue."""

import pytest
import torch
from torch import nn

from castalia import MLPClassifier, Training
from castalia.base import Estimator
from castalia.catalog import SYSTEMS
from castalia.errors import InvalidParameter
from castalia.nets.dense import MLP
from castalia.objectives import CrossEntropy, SquaredError
from castalia.testing import toy, train_tensors
from castalia.testing.contract import _some, load_class, make
from castalia.train.step import PlainStep
from castalia.train.steppers.choice import WAYS

TRAINED = [record for record in SYSTEMS.values() if issubclass(load_class(record), Estimator)]
# Written-out gradients add up in another order than autograd does; everything else is equal.
TOLERANCE = {"written-out gradients": {"rtol": 1e-4, "atol": 1e-6}}
QUIET = {"verbose": False, "watch": False, "device": "cpu"}


def fitted(record, step):
    """Fit the smallest configuration for an epoch; of images and texts on a few rows."""
    model = make(record).set_params(epochs=1)
    settings = model.training.get_params() if model.training is not None else {}
    model.set_params(training=Training(**{**settings, **QUIET, "step": step}))
    X, y = _some(record)
    if record.data == "image":
        X, y = X[:24], y[:24]
    return model.fit(X, y)


def assert_equal_weights(ours, plain, way):
    for a, b in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, **TOLERANCE.get(way, {"rtol": 0, "atol": 0}))


@pytest.mark.parametrize("record", TRAINED, ids=lambda record: record.name)
def test_the_way_that_is_chosen_ends_where_the_plain_step_ends(record):
    fast, plain = fitted(record, "auto"), fitted(record, "plain")
    assert plain.settings_["step"] == "plain"
    assert fast.settings_["step"] != "plain"
    assert_equal_weights(fast.module_, plain.module_, fast.settings_["step"])


def rows(n=40):
    source = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=source, dtype=torch.float64)
    return x, (x[:, :1] + x[:, 1:2]).sin()


class Hungry(SquaredError):
    """Runs out of memory on more than ten rows."""

    def terms(self, net, batch, phase):
        if len(batch.x) > 10:
            raise torch.OutOfMemoryError("out of memory")
        return super().terms(net, batch, phase)


@pytest.mark.parametrize(
    "way, objective, settings",
    [
        ("fused", SquaredError(), {"optimizer": "adam"}),
        ("fused", SquaredError(), {"optimizer": "sgd", "clip": 0.1}),
        ("fused", SquaredError(), {"optimizer": "muon", "weight_decay": 0.1}),
        ("fused", SquaredError(), {"optimizer": ("muon", {"rest": "nesterov"}), "clip": 0.1}),
        ("fused", SquaredError(), {"optimizer": "lion"}),
        ("fused, micro-batches", SquaredError(), {"accumulate": 3}),
        ("fused, micro-batches", Hungry(), {}),
        ("fused", SquaredError(), {"optimizer": "adamw", "weight_decay": 0.1, "average": "ema"}),
    ],
)
def test_each_way_takes_the_plain_steps(way, objective, settings):
    x, y = rows()
    nets = []
    for loss, chosen in ((objective, settings), (SquaredError(), {**settings, "step": "plain"})):
        torch.manual_seed(0)
        nets.append(nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double())
        chosen = {k: v for k, v in chosen.items() if k != "accumulate" or "step" not in chosen}
        training = Training(**QUIET, **chosen)
        state = train_tensors(nets[-1], loss, x, y, training=training, epochs=3, lr=0.01)
        assert state.settings["step"] == (way if loss is objective else "plain")
    divided = "micro-batches" in way  # sums of parts differ from the whole in the last digits
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12 if divided else 0)


def test_a_default_classifier_says_how_its_steps_were_taken():
    X, y = toy("moons")
    assert MLPClassifier(epochs=1).fit(X, y).settings_["step"] == "written-out gradients"


def test_the_plain_step_calls_backward_and_the_optimizer(monkeypatch):
    calls = []
    backward, step = torch.Tensor.backward, torch.optim.Adam.step
    monkeypatch.setattr(torch.Tensor, "backward", lambda s: calls.append("b") or backward(s))
    monkeypatch.setattr(torch.optim.Adam, "step", lambda s: calls.append("s") or step(s))
    net = MLP(3, 2, hidden=(4,)).double()
    x, y = rows(32)
    labels = (y[:, 0] > 0).long()
    train_tensors(net, CrossEntropy(), x, labels, training=Training(step="plain", **QUIET))
    assert calls == ["b", "s"] * 2


def test_the_table_of_ways_begins_with_the_plain_one_and_ends_with_one_that_always_serves():
    assert WAYS[0][0] is PlainStep
    assert WAYS[-1][1](None)
    assert len({way.name for way, _ in WAYS}) == len(WAYS)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"step": "quick"}, r"`step` must be `auto` or `plain`; got 'quick'"),
        ({"step": "plain", "accumulate": 2}, r"whole batches in one process; got `accumulate=2`"),
        ({"step": "plain", "optimizer": "lbfgs"}, r"`step` must be 'auto' with optimizer 'lbfgs'"),
    ],
)
def test_a_step_that_cannot_be_taken_is_refused(settings, message):
    X, y = toy("moons")
    with pytest.raises(InvalidParameter, match=message):
        MLPClassifier(training=Training(**settings)).fit(X, y)
