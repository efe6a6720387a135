"""The multi-layer perceptron."""

import pytest
import torch
from torch import nn

from castalia.errors import InvalidParameter
from castalia.nets.dense import MLP
from castalia.nn import ACTIVATIONS, activation
from castalia.objectives import BinaryCrossEntropy, CrossEntropy, SquaredError
from castalia.protocols import Batch


def size(net):
    return sum(p.numel() for p in net.parameters())


def test_the_parameter_count_of_20_64_64_10_is_6154():
    assert size(MLP(20, 10, hidden=(64, 64))) == 20 * 64 + 64 + 64 * 64 + 64 + 64 * 10 + 10 == 6154


@pytest.mark.parametrize("hidden", [(), (5,), (7, 3, 2)])
def test_the_parameter_count_follows_the_formula(hidden):
    widths = [4, *hidden, 3]
    expected = sum(a * b + b for a, b in zip(widths, widths[1:], strict=False))
    assert size(MLP(4, 3, hidden=hidden)) == expected


def test_it_is_the_composition_written_out():
    net, x = MLP(3, 2, hidden=(4,), activation="tanh").double(), torch.randn(5, 3).double()
    first, second = net.layers[0], net.layers[2]
    by_hand = torch.tanh(x @ first.weight.T + first.bias) @ second.weight.T + second.bias
    torch.testing.assert_close(net(x), by_hand, rtol=0, atol=1e-12)


def test_without_hidden_layers_it_is_affine():
    net = MLP(3, 1, hidden=()).double()
    a, b = torch.randn(2, 1, 3).double()
    torch.testing.assert_close(net(a + b) + net(torch.zeros(1, 3).double()), net(a) + net(b))


def test_dropout_acts_in_training_only():
    net, x = MLP(3, 1, hidden=(50,), dropout=0.5), torch.randn(1, 3)
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))


def test_categories_are_embedded():
    torch.manual_seed(0)  # without one, all four units may be dead
    net = MLP(3, 1, hidden=(4,), categories=(5,))
    x = torch.tensor([[0.1, 0.2, 0.0], [0.1, 0.2, 4.0]])
    one, other = net(x)
    assert not torch.equal(one, other)
    assert size(net) > size(MLP(2, 1, hidden=(4,)))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_has_a_gradient(name):
    x = torch.linspace(-2, 2, 9, requires_grad=True)
    activation(name)(x).sum().backward()
    assert bool(x.grad.isfinite().all())
    assert float(x.grad.abs().sum()) > 0


def test_an_unknown_activation_gets_a_suggestion():
    with pytest.raises(InvalidParameter, match="got 'rlu'. Did you mean `relu`"):
        MLP(2, 1, activation="rlu")


def test_every_parameter_gets_a_gradient():
    net = MLP(4, 2, hidden=(6, 6), categories=(3,))
    x = torch.cat([torch.randn(32, 3), torch.randint(0, 3, (32, 1)).float()], dim=1)
    net(x).square().sum().backward()
    assert all(float(p.grad.abs().sum()) > 0 for p in net.parameters())
    assert isinstance(net, nn.Module)


OBJECTIVES = {
    "squared": (SquaredError(), torch.randn(12, 3, dtype=torch.float64)),
    "classes": (CrossEntropy(), torch.arange(12) % 3),
    "smoothed": (CrossEntropy(label_smoothing=0.1), torch.arange(12) % 3),
    "others": (CrossEntropy(label_smoothing=0.1, convention="others"), torch.arange(12) % 3),
    "labels": (BinaryCrossEntropy(), (torch.arange(36).reshape(12, 3) % 2).double()),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize(
    "shape", [((), "relu"), ((6,), "relu"), ((6, 5), "tanh"), ((4, 4, 4), "sigmoid")]
)
def test_back_propagation_written_out_equals_autograd(shape, name, weighted):
    torch.manual_seed(0)
    net = MLP(4, 3, hidden=shape[0], activation=shape[1]).double()
    objective, y = OBJECTIVES[name]
    weight = torch.rand(12, dtype=torch.float64) if weighted else None
    batch = Batch(torch.randn(12, 4, dtype=torch.float64), y, weight)
    expected = objective.terms(net, batch, "train")["loss"]
    gradients = torch.autograd.grad(expected, list(net.parameters()))
    assert net.can_backprop()
    loss = net.backprop(batch.x, lambda out: objective.loss_gradient(out, batch))
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-12, atol=1e-12)
    for parameter, gradient in zip(net.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "settings", [{"dropout": 0.5}, {"activation": "gelu"}, {"categories": [3]}]
)
def test_networks_it_does_not_cover_leave_back_propagation_to_autograd(settings):
    assert not MLP(4, 3, **settings).can_backprop()


def test_layers_that_are_not_plain_linear_ones_leave_it_to_autograd():
    normed = MLP(4, 3)
    torch.nn.utils.parametrizations.weight_norm(normed.layers[0])
    unbiased = MLP(4, 3)
    unbiased.layers[2] = nn.Linear(64, 64, bias=False)
    assert not normed.can_backprop()
    assert not unbiased.can_backprop()
