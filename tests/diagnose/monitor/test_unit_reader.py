"""Statistics of activations against direct computation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from castalia.diagnose.monitor.graph_summary import read
from castalia.diagnose.record import Look


def units_of(net, x, loss=None):
    out = net(x)
    look = Look(0)
    names = {id(p): name for name, p in net.named_parameters()}
    read((out.square().mean() if loss is None else loss(out)), names).fill(look)
    return look.units


ACTIVATIONS = {
    "relu": nn.ReLU(),
    "relu in place": nn.ReLU(inplace=True),
    "leaky_relu": nn.LeakyReLU(0.3),
    "leaky_relu in place": nn.LeakyReLU(0.3, inplace=True),
    "elu": nn.ELU(0.7),
    "elu in place": nn.ELU(0.7, inplace=True),
    "elu, scaled": nn.SELU(),
    "celu": nn.CELU(1.3),
    "gelu": nn.GELU(),
    "gelu, tanh": nn.GELU(approximate="tanh"),
    "silu": nn.SiLU(),
    "softplus": nn.Softplus(beta=2.0),
    "hardtanh": nn.Hardtanh(-0.5, 0.7),
    "hardsigmoid": nn.Hardsigmoid(),
    "hardswish": nn.Hardswish(),
    "mish": nn.Mish(),
    "tanh": nn.Tanh(),
    "sigmoid": nn.Sigmoid(),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_mean_spread_and_activity_are_those_of_the_results(name):
    torch.manual_seed(1)
    activation = ACTIVATIONS[name]
    net = nn.Sequential(nn.Linear(4, 16), activation, nn.Linear(16, 1))
    x = 3 * torch.randn(50, 4)
    (units,) = units_of(net, x)
    with torch.no_grad():
        h = net[:2](x)
    assert units.layer == "0"
    assert units.kind == name.split(",")[0].split(" ")[0]
    assert units.mean == pytest.approx(h.mean().item(), rel=1e-4, abs=1e-6)
    assert units.std == pytest.approx(h.std(correction=0).item(), rel=1e-4)
    np.testing.assert_allclose(units.active, (h != 0).float().mean(0), rtol=1e-6)


@pytest.mark.parametrize(
    "function",
    [F.relu, torch.relu, lambda h: h.clamp(min=0)],
    ids=["functional", "torch", "clamp"],
)
def test_functions_count_as_modules_do(function):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 16), nn.Linear(16, 1)

        def forward(self, x):
            return self.b(function(self.a(x)))

    net, x = Net(), torch.randn(50, 4)
    (units,) = units_of(net, x)
    assert (units.layer, units.kind) == ("a", "relu")
    np.testing.assert_allclose(units.active, (net.a(x) > 0).float().mean(0), rtol=1e-6)


def test_dead_and_saturated_units_are_told_apart():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    with torch.no_grad():
        net[0].bias.copy_(torch.tensor([-100.0, 100.0, 100.0]))
        net[2].weight.zero_()
        net[2].bias.copy_(torch.tensor([0.0, 9.0, -9.0]))
    relu, tanh = units_of(net, torch.randn(20, 2))
    assert relu.active.tolist() == [0, 1, 1]
    assert relu.saturated.size == 0
    assert tanh.saturated.tolist() == [0, 1, 1]


def test_channels_of_a_convolution_are_its_units():
    net = nn.Sequential(
        nn.Conv2d(2, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.Flatten(), nn.Linear(80, 1)
    )
    x = torch.randn(7, 2, 6, 6)
    (units,) = units_of(net, x)
    h = net[:3](x)
    np.testing.assert_allclose(units.active, (h > 0).float().mean((0, 2, 3)).numpy(), rtol=1e-5)


def test_features_of_a_sequence_are_its_units():
    net = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 1))
    x = torch.randn(4, 9, 3)
    (units,) = units_of(net, x)
    np.testing.assert_allclose(
        units.active, (net[:2](x) > 0).float().mean((0, 1)).numpy(), rtol=1e-5
    )


def test_calls_of_a_recurrent_cell_are_averaged_and_gates_marked():
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate, self.new, self.head = nn.Linear(8, 5), nn.Linear(8, 5), nn.Linear(5, 1)

        def forward(self, x):
            self.seen, h = [], torch.zeros(len(x), 5)
            for t in range(x.shape[1]):
                both = torch.cat([x[:, t], h], 1)
                self.seen.append(torch.tanh(self.new(both)))
                h = torch.sigmoid(self.gate(both)) * h + self.seen[-1]
            return self.head(h)

    net = Cell()
    found = {(u.layer, u.kind): u for u in units_of(net, torch.randn(6, 4, 3))}
    tanh = found["new", "tanh"]
    assert tanh.calls == 4
    assert not tanh.gate
    assert tanh.mean == pytest.approx(torch.stack(net.seen).mean().item(), abs=1e-6)
    assert found["gate", "sigmoid"].gate


def test_the_output_activation_is_no_unit():
    net = nn.Sequential(nn.Linear(3, 1), nn.Sigmoid())
    assert (
        units_of(net, torch.rand(5, 3), lambda p: F.binary_cross_entropy(p, torch.ones(5, 1))) == []
    )


def test_an_activation_overwritten_since_is_left_out():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 16), nn.Linear(16, 1)

        def forward(self, x):
            h = torch.relu(self.a(x))
            self.b(h)
            return self.b(h.mul_(2.0))

    net = Net()
    assert units_of(net, torch.randn(5, 4)) == []


def test_a_huge_activation_is_thinned_by_rows_and_units(monkeypatch):
    from castalia.diagnose.monitor import unit_reader as module

    monkeypatch.setattr(module, "MOST_NUMBERS", 640)
    monkeypatch.setattr(module, "MOST_UNITS", 16)
    net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))
    x = torch.randn(50, 4)
    (units,) = units_of(net, x)
    h = net[:2](x[:10])[:, ::4]
    np.testing.assert_allclose(units.active, (h > 0).float().mean(0).numpy(), rtol=1e-6)
