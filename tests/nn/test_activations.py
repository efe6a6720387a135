"""Activations: values, derivatives against finite differences, and names."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import nn as ours
from castalia.errors import InvalidParameter
from castalia.nn import ACTIVATIONS, Clipped, Cosine, PReLU, Sign, Softmax, Step, activation

# No kink of any activation lies within a finite difference of these.
Z = torch.linspace(-4, 4, 33, dtype=torch.float64) + 0.013


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_derivative_is_that_of_finite_differences(name):
    unit, h = activation(name).double(), 1e-6
    z = Z.clone().requires_grad_()
    (slope,) = torch.autograd.grad(unit(z).sum(), z)
    with torch.no_grad():
        assert_close(slope, (unit(Z + h) - unit(Z - h)) / (2 * h), rtol=1e-6, atol=1e-8)


def test_names_of_the_catalogue_are_torchs_own_where_torch_has_them():
    same = "Identity Sigmoid Tanh ReLU LeakyReLU PReLU ELU Softplus Softmax"
    assert all(getattr(ours, name) is getattr(nn, name) for name in same.split())
    assert ours.Swish is nn.SiLU


def test_the_sign_has_three_values_and_no_slope():
    z = torch.tensor([-2.0, -1e-30, 0.0, 1e-30, 5.0], requires_grad=True)
    out = Sign()(z)
    assert out.tolist() == [-1, -1, 0, 1, 1]
    out.sum().backward()
    assert z.grad.tolist() == [0] * 5


def test_the_step_is_one_from_zero_on_and_has_no_slope():
    z = torch.tensor([-2.0, -1e-30, 0.0, 1e-30, 5.0], requires_grad=True)
    out = Step()(z)
    assert out.tolist() == [0, 0, 1, 1, 1]
    out.sum().backward()
    assert z.grad.tolist() == [0] * 5


def test_a_learned_slope_receives_the_negative_part_as_its_gradient():
    unit, z = PReLU(), torch.tensor([-2.0, -0.5, 3.0])
    unit(z).sum().backward()
    assert unit.weight.grad.item() == pytest.approx(-2.5)  # sum of min(0, z)


@pytest.mark.parametrize("slope, same", [(0.0, torch.relu), (-1.0, torch.abs), (1.0, lambda z: z)])
def test_special_slopes_make_relu_the_absolute_value_and_the_identity(slope, same):
    unit = PReLU(init=slope).double()
    assert_close(unit(Z), same(Z))


def test_each_unit_can_learn_its_own_slope():
    unit = PReLU(2)
    unit(torch.tensor([[-1.0, 2.0], [-3.0, -5.0]])).sum().backward()
    assert unit.weight.grad.tolist() == [-4.0, -5.0]


def test_softmax_rows_sum_to_one_and_its_jacobian_is_full():
    z = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    p = Softmax(dim=-1)(z)
    assert p.sum().item() == pytest.approx(1)
    assert_close(p, z.exp() / z.exp().sum())
    jacobian = torch.autograd.functional.jacobian(Softmax(dim=-1), z)
    assert_close(jacobian, torch.diag(p) - torch.outer(p, p))
    assert Softmax(dim=-1)(torch.tensor([1e4, 0.0])).tolist() == [1.0, 0.0]


def test_the_clipped_unit_is_linear_inside_and_flat_outside():
    z = torch.tensor([-3.0, 0.25, 0.75, 7.0], requires_grad=True)
    out = Clipped()(z)
    assert out.tolist() == [0.0, 0.25, 0.75, 1.0]
    out.sum().backward()
    assert z.grad.tolist() == [0, 1, 1, 0]


def test_the_cosine_unit_is_the_cosine():
    assert_close(Cosine()(Z), torch.cos(Z))


def test_an_unknown_name_gets_a_suggestion_and_every_known_name():
    with pytest.raises(InvalidParameter, match=r"`identity`; got 'rellu'. Did you mean `relu`\?"):
        activation("rellu")
    with pytest.raises(InvalidParameter, match="got 'step'"):  # nothing could learn below it
        activation("step")
