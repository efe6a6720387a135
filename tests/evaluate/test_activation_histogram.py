"""Distributions of activations, dead and saturated units."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from torch import nn

from castalia import MLPClassifier
from castalia.errors import InvalidParameter
from castalia.evaluate import ActivationHistogram, to_svg
from castalia.nn import saturation
from castalia.testing.toys import moons

X = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))


def dense(unit, scale=1.0):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 20), unit(), nn.Linear(20, 20), unit())
    with torch.no_grad():
        for layer in net[::2]:
            layer.weight *= scale
    return net


def test_histograms_have_area_one_and_the_moments_of_the_activations():
    net = dense(nn.Tanh)
    shown = ActivationHistogram.from_network(net, X)
    np.testing.assert_allclose((shown.density * np.diff(shown.edges)).sum(axis=1), 1.0)
    out = net[:2](X)
    assert shown.names == ["1", "3"]
    assert shown.mean[0] == pytest.approx(out.mean().item(), abs=1e-6)
    assert shown.std[0] == pytest.approx(out.std(correction=0).item(), rel=1e-5)


def test_shares_without_slope_are_those_of_saturation():
    for net in (dense(nn.Tanh, 20.0), dense(nn.ReLU), dense(nn.GELU)):
        shown = ActivationHistogram.from_network(net, X)
        np.testing.assert_allclose(shown.flat, list(saturation(net, X).values()), atol=1e-6)
    assert ActivationHistogram.from_network(dense(nn.Sigmoid, 100.0), X).flat[0] > 0.9


@pytest.mark.parametrize("inplace", [False, True])
def test_planted_dead_units_are_counted(inplace):
    net = dense(lambda: nn.ReLU(inplace=inplace))
    with torch.no_grad():
        net[0].bias[:3] = -1e3
    shown = ActivationHistogram.from_network(net, X)
    assert shown.dead.tolist()[0] == 3
    assert shown.units.tolist() == [20, 20]
    plain = ActivationHistogram.from_network(dense(nn.ReLU), X)
    assert plain.dead[0] == 0


def test_channels_are_the_units_of_convolutions_and_features_those_of_sequences():
    torch.manual_seed(0)
    images = nn.Sequential(nn.Conv2d(1, 5, 3), nn.BatchNorm2d(5), nn.ReLU())
    with torch.no_grad():
        images[1].bias[1] = -1e3
    found = ActivationHistogram.from_network(images, torch.randn(4, 1, 8, 8))
    assert (found.dead.tolist(), found.units.tolist()) == ([1], [5])
    series = nn.Sequential(nn.Conv1d(2, 7, 3), nn.ReLU())
    assert ActivationHistogram.from_network(series, torch.randn(4, 2, 30)).units.tolist() == [7]
    words = nn.Sequential(nn.Linear(2, 9), nn.ReLU())
    assert ActivationHistogram.from_network(words, torch.randn(4, 30, 2)).units.tolist() == [9]


def test_activations_called_as_functions_leave_the_layers_and_constant_units_are_dead():
    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 4)

        def forward(self, x):
            return torch.relu(self.layer(x))

    net = Functional()
    with torch.no_grad():
        net.layer.weight[0] = 0
    shown = ActivationHistogram.from_network(net, X)
    assert shown.names == ["layer"]
    assert np.isnan(shown.flat[0])
    assert shown.dead.tolist() == [1]


def test_a_layer_called_twice_is_one_and_names_can_be_chosen():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.unit = nn.Linear(6, 6), nn.ReLU()

        def forward(self, x):
            return self.unit(self.layer(self.unit(self.layer(x))))

    net = Twice()
    shown = ActivationHistogram.from_network(net, X)
    assert shown.names == ["unit"]
    once = torch.relu(net.layer(X))
    both = torch.cat([once, torch.relu(net.layer(once))])
    assert shown.mean[0] == pytest.approx(both.mean().item(), rel=1e-5)
    assert ActivationHistogram.from_network(net, X, layers=["layer"]).names == ["layer"]
    with pytest.raises(InvalidParameter, match=r"got 'layr'. Did you mean `layer`\?"):
        ActivationHistogram.from_network(net, X, layers=["layr"])
    with pytest.raises(InvalidParameter, match="`bins` must be at least 2; got 1"):
        ActivationHistogram.from_network(net, X, bins=1)


def test_the_network_is_left_as_it_was():
    net = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout())
    before = {name: value.clone() for name, value in net.state_dict().items()}
    torch.manual_seed(3)
    state = torch.get_rng_state()
    ActivationHistogram.from_network(net, X)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert net.training
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_a_compiled_network_can_be_looked_at():
    net = dense(nn.ReLU)
    expected = ActivationHistogram.from_network(net, X)
    net.compile(backend="eager")
    np.testing.assert_allclose(ActivationHistogram.from_network(net, X).density, expected.density)


def test_values_that_are_not_numbers_do_not_stop_it():
    net = dense(nn.ReLU)
    x = X.clone()
    x[0] = np.nan
    shown = ActivationHistogram.from_network(net, x)
    assert np.isfinite(shown.density).all()
    nothing = ActivationHistogram.from_network(net, torch.full((3, 6), np.nan))
    assert "<svg" in to_svg(nothing.plot().figure_)


def test_an_estimator_is_looked_at_and_dead_units_are_written_beside_the_ridge():
    data, y = moons(100)
    model = MLPClassifier(hidden=(8, 8), epochs=2, random_state=0).fit(data, y)
    shown = ActivationHistogram.from_estimator(model, data)
    assert shown.units.tolist() == [8, 8]
    shown.dead = np.array([0, 2])
    mine = Figure().add_subplot()
    assert shown.plot(ax=mine).ax_ is mine
    svg = to_svg(shown.plot().figure_)
    assert "2 of 8 dead" in svg
    assert svg.count("dead") == 1
