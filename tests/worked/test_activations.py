"""Values, slopes and limits of the activations."""

import math

import pytest
import torch
from torch.testing import assert_close

from castalia.nn import activation

Z = torch.linspace(-6, 6, 121, dtype=torch.float64)


def slope(name, z):
    """Return the derivative of an activation at each point."""
    z = z.clone().requires_grad_()
    activation(name)(z).sum().backward()
    return z.grad


def test_the_identity_has_slope_one_everywhere():
    assert_close(activation("identity")(Z), Z)
    assert_close(slope("identity", Z), torch.ones_like(Z))


def test_the_slope_of_the_sigmoid_is_s_times_one_minus_s():
    s = activation("sigmoid")(Z)
    assert_close(s, 1 / (1 + torch.exp(-Z)))
    assert_close(slope("sigmoid", Z), s * (1 - s))


def test_the_sigmoid_is_finite_far_out():
    far = torch.tensor([-1000.0, 1000.0])
    assert activation("sigmoid")(far).tolist() == [0.0, 1.0]
    assert slope("sigmoid", far).tolist() == [0.0, 0.0]


def test_tanh_is_a_stretched_sigmoid():
    stretched = 2 * activation("sigmoid")(2 * Z) - 1
    assert_close(activation("tanh")(Z), stretched, atol=1e-12, rtol=0)
    assert_close(slope("tanh", Z), 1 - activation("tanh")(Z) ** 2)


def test_relu_cuts_at_zero_and_has_slope_zero_there():
    z = torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0])
    assert activation("relu")(z).tolist() == [0, 0, 0, 0.5, 2]
    assert slope("relu", z).tolist() == [0, 0, 0, 1, 1]


def test_leaky_relu_keeps_a_hundredth_of_the_negatives():
    z = torch.tensor([-2.0, 3.0], dtype=torch.float64)
    assert activation("leaky_relu")(z).tolist() == pytest.approx([-0.02, 3])
    assert slope("leaky_relu", z).tolist() == pytest.approx([0.01, 1])


def test_elu_is_continuous_at_zero_and_tends_to_minus_one():
    z = torch.tensor([-1e-9, 0.0, 1e-9, -50.0], dtype=torch.float64)
    assert activation("elu")(z).tolist() == pytest.approx([0, 0, 0, -1], abs=1e-8)
    negative = Z[Z < 0]
    assert_close(activation("elu")(negative), torch.exp(negative) - 1)


def test_swish_is_z_times_sigmoid_and_dips_to_minus_0_2785():
    assert_close(activation("swish")(Z), Z * torch.sigmoid(Z))
    fine = torch.linspace(-2, 0, 20_001, dtype=torch.float64)
    assert activation("swish")(fine).min().item() == pytest.approx(-0.27846, abs=1e-5)


def test_softplus_is_the_negative_log_of_a_sigmoid():
    assert_close(activation("softplus")(-Z), -torch.log(torch.sigmoid(Z)))
    assert_close(slope("softplus", Z), torch.sigmoid(Z))
    far = torch.tensor([-1000.0, 1000.0])
    assert activation("softplus")(far).tolist() == [0.0, 1000.0]
    assert activation("softplus")(torch.zeros(1)).item() == pytest.approx(math.log(2))
