"""Small networks whose outputs or sizes the course prints."""

import pytest
import torch
from torch.testing import assert_close

from castalia.nets.dense import MLP
from castalia.nn import activation
from castalia.utils.seeds import seed_scope


def test_two_hidden_units_compute_exclusive_or():
    net = MLP(2, 1, hidden=(2,), activation="relu")
    first, relu, second = net.layers
    weights = [(first.weight, [[1, 1], [1, 1]]), (first.bias, [0, -1])]
    weights += [(second.weight, [[1, -2]]), (second.bias, [0])]
    for parameter, value in weights:
        parameter.data = torch.tensor(value, dtype=torch.float32)
    x = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    assert relu(first(x)).tolist() == [[0, 0], [1, 0], [1, 0], [2, 1]]
    assert net(x).flatten().tolist() == [0, 1, 1, 0]


def test_a_network_of_twenty_inputs_and_two_layers_of_64_has_6154_parameters():
    net = MLP(20, 10, hidden=(64, 64))
    sizes = [sum(p.numel() for p in layer.parameters()) for layer in net.layers]
    assert [size for size in sizes if size] == [1344, 4160, 650]


def test_a_neuron_is_the_activation_of_a_weighted_sum():
    net, x = MLP(3, 1, hidden=()).double(), torch.linspace(-1, 1, 15, dtype=torch.float64)
    (neuron,) = net.layers
    outputs = activation("tanh")(net(x.reshape(5, 3)))
    for row, output in zip(x.reshape(5, 3), outputs, strict=True):
        z = sum(w * v for w, v in zip(neuron.weight[0], row, strict=True)) + neuron.bias
        assert_close(output, torch.tanh(z))


def test_a_hidden_layer_is_an_affine_map_and_an_activation():
    net, x = MLP(4, 2, hidden=(5,), activation="sigmoid"), torch.ones(3, 4)
    first, act, last = net.layers
    hidden = torch.sigmoid(x @ first.weight.T + first.bias)
    assert_close(act(first(x)), hidden)
    assert_close(net(x), hidden @ last.weight.T + last.bias)


def test_a_stack_of_linear_layers_is_one_linear_map():
    net, x = MLP(4, 2, hidden=(8, 6), activation="identity").double(), torch.eye(4).double()
    first, second, third = (layer for layer in net.layers if hasattr(layer, "weight"))
    zero = net(torch.zeros(1, 4).double())
    assert_close(net(x) - zero, (third.weight @ second.weight @ first.weight).T)


def test_weights_start_uniform_in_one_over_the_root_of_the_fan_in():
    with seed_scope(0):
        weight = MLP(300, 100, hidden=()).layers[0].weight
    assert weight.abs().max().item() <= 0.057735027  # 1 / sqrt(300)
    assert weight.var().item() == pytest.approx(1 / 900, rel=0.02)
