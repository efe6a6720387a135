"""Small networks whose outputs or sizes the course prints."""

import torch
from torch.testing import assert_close

from castalia.nets.dense import MLP
from castalia.nn import activation


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


def test_tanh_is_a_stretched_sigmoid():
    z = torch.linspace(-20, 20, 401, dtype=torch.float64)
    assert_close(activation("tanh")(z), 2 * activation("sigmoid")(2 * z) - 1)
