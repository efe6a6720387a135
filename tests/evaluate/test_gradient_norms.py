"""The norm of the gradient, layer by layer."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from torch import nn

from castalia import MLPClassifier
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate import GradientNorms, UpdateRatios, to_svg
from castalia.objectives import CrossEntropy
from castalia.testing.toys import moons
from castalia.train import ParameterNorms, Training


def deep(unit, depth=10):
    torch.manual_seed(0)
    layers = [part for _ in range(depth) for part in (nn.Linear(16, 16), unit())]
    return nn.Sequential(*layers, nn.Linear(16, 1))


def test_norms_are_those_of_backward_and_the_network_keeps_its_gradients():
    net, x, y = deep(nn.Tanh, 3), torch.randn(9, 16), torch.randn(9, 1)
    shown = GradientNorms.from_network(net, nn.MSELoss(), x, y)
    assert all(p.grad is None for p in net.parameters())
    nn.functional.mse_loss(net(x), y).backward()
    assert shown.names == ["0", "2", "4", "6"]
    expected = [[net[i].weight.grad.norm().item() for i in (0, 2, 4, 6)]]
    np.testing.assert_allclose(shown.norms, expected, rtol=1e-5)


def test_the_gradient_vanishes_through_sigmoids_and_not_through_self_normalising_units():
    x, y = torch.randn(32, 16), torch.ones(32, 1)
    assert GradientNorms.from_network(deep(nn.Sigmoid), nn.MSELoss(), x, y).factor < 0.25
    healthy = GradientNorms.from_network(deep(nn.SELU), nn.MSELoss(), x, y).factor
    assert 0.4 < healthy < 1.5


def test_the_factor_is_what_a_layer_multiplies_the_gradient_by():
    table = {str(i): [10.0**i] for i in range(5)}
    assert GradientNorms.from_record(table).factor == pytest.approx(0.1)
    assert GradientNorms.from_record({"a": [4.0], "b": [1.0]}).factor == pytest.approx(4.0)
    assert np.isnan(GradientNorms.from_record({"a": [1.0], "b": [0.0]}).factor)


def test_layers_come_in_the_order_of_the_forward():
    class Backwards(nn.Module):
        def __init__(self):
            super().__init__()
            self.head, self.body = nn.Linear(4, 1), nn.Linear(3, 4)
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x):
            h = self.body(x)
            return self.head(self.attention(h, h, h)[0])

    x, y = torch.ones(1, 5, 3), torch.ones(1, 5, 1)
    shown = GradientNorms.from_network(Backwards(), nn.MSELoss(), x, y)
    assert shown.names[0] == "body"
    assert shown.names[-1] == "head"
    assert "attention.out_proj" in shown.names


def test_running_statistics_modes_and_the_random_state_stay():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    torch.manual_seed(5)
    state = torch.get_rng_state()
    x, y = torch.ones(6, 3), torch.ones(6, 1)
    first = GradientNorms.from_network(net, nn.MSELoss(), x, y).norms
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(GradientNorms.from_network(net, nn.MSELoss(), x, y).norms, first)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert net.training
    assert not any(m._forward_pre_hooks for m in net.modules())


def test_an_estimator_shows_the_gradient_of_what_it_minimises():
    X, y = moons(120)
    model = MLPClassifier(hidden=(6,), epochs=3, random_state=0).fit(X, y)
    shown = GradientNorms.from_estimator(model, X, y)
    x = torch.from_numpy(model.adapter_.encoder.encode(X, np.float32))
    net = model.module_
    net.zero_grad()
    CrossEntropy().rows(net(x), torch.from_numpy(y)).mean().backward()
    expected = [[p.grad.norm().item() for p in net.parameters() if p.ndim > 1]]
    np.testing.assert_allclose(shown.norms, expected, rtol=1e-4)
    other = LogisticRegression().fit(X, y)
    with pytest.raises(InvalidParameter, match="trained by gradients; got LogisticRegression"):
        GradientNorms.from_estimator(other, X, y)


def test_a_layer_without_gradient_is_marked_and_one_without_numbers_too():
    shown = GradientNorms.from_record({"a": [0.0], "b": [1.0], "c": [np.inf]}).plot()
    assert [text.get_text() for text in shown.ax_.texts] == ["none", "not finite"]
    assert shown.ax_.get_yscale() == "log"
    nothing = GradientNorms.from_record({"a": [0.0], "b": [0.0]}).plot()
    assert "<svg" in to_svg(nothing.figure_)


@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("layers", [1, 12])
def test_it_is_drawn_on_its_own_figure_or_on_given_axes(steps, layers):
    record = {f"layer {i}": [10.0**-i] * steps for i in range(layers)}
    mine = Figure().add_subplot()
    for display in (GradientNorms, UpdateRatios):
        assert "<svg" in to_svg(display.from_record(record).plot().figure_)
        assert display.from_record(record).plot(ax=mine).ax_ is mine


def test_a_record_may_be_a_callback_or_a_mapping_and_must_be_whole():
    net, kept = deep(nn.Tanh, 1), ParameterNorms(1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with kept.following(net, optimizer):
        net(torch.ones(2, 16)).sum().backward()
        optimizer.step()
    shown = GradientNorms.from_record(kept)
    np.testing.assert_array_equal(shown.norms, kept.gradients)
    assert shown.names == ["0", "2"]
    assert shown.steps.tolist() == [0]
    with pytest.raises(InvalidData, match=r"equally many numbers.*got \[1, 2\]"):
        GradientNorms.from_record({"a": [1.0], "b": [1.0, 2.0]})
    with pytest.raises(InvalidData, match="got no layer"):
        UpdateRatios.from_record({})
    with pytest.raises(ShapeMismatch, match=r"\(2, 1\).*got \(1, 2\)"):
        GradientNorms(np.ones((1, 2)), ["a"], np.arange(2))


def test_update_ratios_repeat_the_training_of_the_estimator_and_leave_it_alone(tmp_path):
    X, y = moons(100)
    training = Training(run=tmp_path / "run", checkpoint_every=3, optimizer="sgd", validation=0)
    model = MLPClassifier(hidden=(5,), epochs=4, lr=0.1, batch_size=50, training=training)
    model.fit(X, y)
    weights = [p.detach().clone() for p in model.module_.parameters()]
    shown = UpdateRatios.from_estimator(model, X, y)
    assert shown.steps.tolist() == list(range(8))
    assert shown.ratios.shape == (8, 2)
    assert model.training.callbacks == ()
    assert model.training.run == tmp_path / "run"
    assert all(torch.equal(a, b) for a, b in zip(weights, model.module_.parameters(), strict=True))
    larger = MLPClassifier(hidden=(5,), epochs=4, lr=1.0, batch_size=50, random_state=0)
    smaller = MLPClassifier(hidden=(5,), epochs=4, lr=1e-4, batch_size=50, random_state=0)
    high, low = (UpdateRatios.from_estimator(m, X, y).typical for m in (larger, smaller))
    assert all(high[name] > 0.01 > 1e-3 > low[name] for name in high)


def test_the_healthy_range_is_drawn_and_a_layer_of_zeros_has_no_typical_ratio():
    shown = UpdateRatios.from_record({"a": [1e-3, 1e-3], "b": [np.nan, np.nan]}).plot()
    assert any(line.get_ydata()[0] == 1e-3 for line in shown.ax_.lines)
    assert shown.typical["a"] == 1e-3
    assert np.isnan(shown.typical["b"])
    with pytest.raises(InvalidParameter, match="trained by gradients; got DummyClassifier"):
        UpdateRatios.from_estimator(DummyClassifier(), [[0]], [0])
