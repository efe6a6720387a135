"""Saturated units, recorded activations and gradients of layers."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.dense import MLP
from castalia.nn import Maxout, layer_gradients, recording, saturation


def test_a_recording_holds_inputs_and_outputs_and_leaves_no_hook():
    net, x = MLP(3, 2, hidden=(4, 5), activation="tanh"), torch.ones(2, 3)
    with recording(net) as seen:
        net(x)
    assert [name for name, _, _ in seen] == ["layers.1", "layers.3"]
    assert_close(seen[0][1], net.layers[0](x))
    assert_close(seen[0][2], torch.tanh(net.layers[0](x)))
    assert not any(module._forward_hooks for module in net.modules())


def test_modules_can_be_named_and_a_wrong_name_is_answered():
    net = MLP(3, 2, hidden=(4,))
    with recording(net, ["layers.0"]) as seen:
        net(torch.ones(1, 3))
    assert [name for name, _, _ in seen] == ["layers.0"]
    with pytest.raises(InvalidParameter, match=r"got 'layer.0'. Did you mean `layers.0`\?"):
        recording(net, ["layer.0"]).__enter__()
    with pytest.raises(InvalidParameter, match="Linear has no activation module"):
        recording(nn.Linear(1, 1)).__enter__()


def test_hooks_go_when_the_network_fails():
    net = MLP(3, 2, hidden=(4,))
    with pytest.raises(RuntimeError), recording(net):
        net(torch.ones(1, 7))
    assert not any(module._forward_hooks for module in net.modules())


def test_a_compiled_network_is_refused():
    net = MLP(3, 2, hidden=(4,))
    net.compile(backend="eager")
    with pytest.raises(InvalidParameter, match=r"Set Training\(compile=False\)"):
        recording(net).__enter__()


def test_saturation_counts_units_without_slope():
    net = nn.Sequential(nn.ReLU(), nn.Flatten(), nn.Sigmoid())
    found = saturation(net, torch.tensor([[-1.0, 1.0, 20.0, 2.0]]))
    assert found == {"0": 0.25, "2": 0.25}  # relu at -1; sigmoid at 20
    assert saturation(nn.Sequential(nn.ReLU(), Maxout(1, 1)), torch.ones(1, 1)) == {"0": 0.0}


def test_saturation_of_units_that_work_in_place():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True))
    plain = nn.Sequential(net[0], nn.ReLU())
    x = torch.randn(20, 3)
    assert saturation(net, x) == {"1": saturation(plain, x)["1"]}


def test_gradients_of_layers_are_those_of_backward():
    net, x = MLP(3, 2, hidden=(4,)), torch.ones(2, 3)
    found = layer_gradients(net, net(x).square().sum())
    assert all(p.grad is None for p in net.parameters())
    net(x).square().sum().backward()
    assert list(found) == ["layers.0.weight", "layers.2.weight"]
    for name, gradient in found.items():
        assert_close(gradient, net.get_parameter(name).grad.flatten())
