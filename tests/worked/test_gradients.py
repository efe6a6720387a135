"""Costs and gradients worked out by hand, for a line, a neuron and a small network."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.nets.dense import MLP
from castalia.objectives import SquaredError
from castalia.optim import build_optimizer
from castalia.protocols import Batch

LINE = Batch(
    torch.tensor([[1.0], [2.0], [3.0]]).double(), torch.tensor([[1.0], [2.0], [3.0]]).double()
)


def line(slope):
    """h(x) = slope x."""
    net = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(net.weight, slope)
    return net


def half_cost(net, batch):
    """J = 1/(2m) sum (h(x) - y)^2: half of the squared error, which is a mean."""
    return SquaredError().terms(net, batch, "train")["loss"] / 2


@pytest.mark.parametrize("slope, cost", [(1, 0), (0.5, 7 / 12), (0, 7 / 3), (-0.5, 21 / 4)])
def test_the_cost_of_a_line_through_the_origin(slope, cost):
    assert half_cost(line(slope), LINE).item() == pytest.approx(cost, abs=1e-12)


def test_gradient_descent_on_that_cost_takes_the_steps_computed_by_hand():
    net = line(0.0)
    optimizer = build_optimizer("sgd", net.parameters(), lr=0.1)
    slopes, gradients = [], []
    for _ in range(5):
        optimizer.zero_grad()
        half_cost(net, LINE).backward()
        gradients.append(net.weight.grad.item())
        optimizer.step()
        slopes.append(net.weight.item())
    assert gradients[0] == pytest.approx(-14 / 3)
    assert slopes == pytest.approx([0.466667, 0.715556, 0.848296, 0.919091, 0.956849], abs=5e-7)
    errors = [1.0, *(1 - slope for slope in slopes)]
    ratios = [after / before for before, after in zip(errors, errors[1:], strict=False)]
    assert ratios == pytest.approx([8 / 15] * 5)


@pytest.mark.parametrize("capture", [False, True])
def test_a_step_is_the_rate_times_its_factor_times_the_gradient_and_a_matrix_s_decay(capture):
    net = torch.nn.Linear(1, 2)
    net.weight.data, net.bias.data = torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, -1.0])
    parts, settings = [*net.parameters()], {"lr": 0.1, "weight_decay": 0.2, "capture": capture}
    optimizer = build_optimizer("sgd", parts, lr_scale=[1.0, 0.5], **settings)
    net.weight.grad, net.bias.grad = torch.tensor([[4.0], [-6.0]]), torch.tensor([2.0, 8.0])
    optimizer.step()
    # 1 - 0.1 (4 + 0.2 * 1), 2 - 0.1 (-6 + 0.2 * 2); a bias does not decay, at half the rate
    assert net.weight.flatten().tolist() == pytest.approx([0.58, 2.56])
    assert net.bias.tolist() == pytest.approx([2.9, -1.4])
    assert [type(group["lr"]) for group in optimizer.param_groups] == [
        torch.Tensor if capture else float
    ] * 2


@pytest.fixture
def draw():
    """Return a function that draws the same numbers in every run."""
    source = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randn(*shape, generator=source, dtype=torch.float64)


def test_the_gradient_of_a_linear_unit(draw):
    x, t = draw(6, 3), draw(6, 1)
    unit = nn.Linear(3, 1, bias=False).double()
    half_cost(unit, Batch(x, t)).backward()
    out = unit(x).detach()
    assert_close(unit.weight.grad, -((t - out) * x).mean(0, keepdim=True))


def test_the_gradient_of_a_sigmoid_unit(draw):
    x, t = draw(6, 3), draw(6, 1)
    unit = nn.Sequential(nn.Linear(3, 1, bias=False), nn.Sigmoid()).double()
    half_cost(unit, Batch(x, t)).backward()
    out = unit(x).detach()
    assert_close(unit[0].weight.grad, -((t - out) * out * (1 - out) * x).mean(0, keepdim=True))


def test_the_gradients_of_a_network_with_one_hidden_layer(draw):
    x, t = draw(6, 3), draw(6, 2)  # N = 6 rows, d = 3 inputs, 4 hidden units, c = 2 outputs
    net = nn.Sequential(MLP(3, 2, hidden=(4,), activation="sigmoid"), nn.Sigmoid()).double()
    half_cost(net, Batch(x, t)).backward()  # 1/(2 c N) sum: the mean is over outputs too
    first, _, second = net[0].layers
    y = torch.sigmoid(first(x)).detach()
    z = net(x).detach()
    delta = (t - z) * z * (1 - z)  # (N, c)
    back = delta @ second.weight.detach() * y * (1 - y)  # (N, 4)
    assert_close(second.weight.grad, -(delta.T @ y) / 12)
    assert_close(first.weight.grad, -(back.T @ x) / 12)
