"""Real-time recurrent learning gives the gradient of back-propagation through time."""

import pytest
import torch
from torch.testing import assert_close

from castalia.autodiff import real_time_gradient
from castalia.errors import ShapeMismatch
from castalia.nn import Recurrent


def elman(p, h, x):
    return torch.tanh(p["U"] @ x + p["W"] @ h + p["b"])


def worked():
    """Return weights, inputs and targets of WE-80."""
    weights = {
        "U": [[0.5, -0.3], [0.2, 0.4]],
        "W": [[0.1, 0.2], [-0.3, 0.4]],
        "V": [[0.7, -0.6]],
        "b": [0.1, -0.1],
        "c": [0.05],
    }
    x = torch.tensor([[[1.0, 0.0], [0.5, -0.2], [0.0, 1.0]]], dtype=torch.float64)
    double = {name: torch.tensor(value, dtype=torch.float64) for name, value in weights.items()}
    return double, x, (1.0, -1.0, 1.0)


def test_the_gradient_is_that_of_the_worked_example():  # WE-80
    weights, x, y = worked()

    def loss(p, h, t):
        return (y[t] - torch.tanh(h @ p["V"].T + p["c"])).square().sum()

    found = real_time_gradient(elman, loss, weights, x, torch.zeros(1, 2).double())
    assert float(found.loss) == pytest.approx(3.8102267432, abs=1e-9)
    wanted = {
        "U": [[0.158316, -1.673485], [-0.150426, 1.549942]],
        "W": [[-0.215674, 0.383570], [-0.000955, -0.374449]],
        "V": [[0.856199, -0.763797]],
        "b": [-0.916676, 0.621089],
        "c": [-1.054354],
    }
    for name, value in wanted.items():
        assert_close(found.gradients[name], torch.tensor(value).double(), atol=1e-6, rtol=0)


def test_the_gradient_is_that_of_back_propagation_through_a_recurrent_layer():
    torch.manual_seed(0)
    net, x = Recurrent("elman", 3, 5).double(), torch.randn(4, 9, 3).double()
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    weights = {name: getattr(net.kernel, name).detach() for name in names}

    def step(p, h, x):
        of_x = p["weight_ih_l0"] @ x + p["bias_ih_l0"]
        return torch.tanh(of_x + p["weight_hh_l0"] @ h + p["bias_hh_l0"])

    def loss(p, h, t):
        return (h * (t + 1)).square().mean()

    states, _ = net(x)
    total = sum((states[:, t] * (t + 1)).square().mean() for t in range(9))
    total.backward()
    found = real_time_gradient(step, loss, weights, x, torch.zeros(4, 5).double())
    assert_close(found.loss, total.detach())
    for name in names:
        assert_close(found.gradients[name], getattr(net.kernel, name).grad, atol=1e-10, rtol=1e-8)


def test_a_stream_in_two_parts_is_the_stream_in_one():
    weights, x, _ = worked()
    core = {name: weights[name] for name in ("U", "W", "b")}

    def loss(p, h, t):
        return h.square().sum()

    zero = torch.zeros(1, 2).double()
    whole = real_time_gradient(elman, loss, core, x, zero)
    first = real_time_gradient(elman, loss, core, x[:, :2], zero)
    second = real_time_gradient(
        elman, loss, core, x[:, 2:], first.state, sensitivity=first.sensitivity
    )
    assert_close(first.loss + second.loss, whole.loss)
    for name in core:
        both = first.gradients[name] + second.gradients[name]
        assert_close(both, whole.gradients[name])
    assert whole.sensitivity.shape == (1, 2, 10)


def test_shapes_are_checked():
    with pytest.raises(ShapeMismatch, match=r"`inputs` must be \(B, T, D\)"):
        real_time_gradient(elman, lambda p, h, t: h.sum(), {}, torch.zeros(2, 3), torch.zeros(2, 1))
