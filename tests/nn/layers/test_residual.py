"""Residual blocks."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import Residual, residual_block


@pytest.mark.parametrize("scale", [1.0, 0.3, 0.0])
def test_the_gradient_is_that_of_the_function_plus_the_scaled_identity(scale):
    torch.manual_seed(0)
    fn = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    x = torch.tensor([0.2, -1.0, 0.7], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian
    assert_close(Residual(fn, scale)(x), fn(x) + scale * x)
    both = jacobian(fn, x) + scale * torch.eye(3, dtype=torch.float64)
    assert_close(jacobian(Residual(fn, scale), x), both)


def test_a_function_that_changes_the_shape_is_refused_not_broadcast():
    with pytest.raises(ShapeMismatch, match=r"its input, \(2, 3\); got \(2, 1\)"):
        Residual(nn.Linear(3, 1))(torch.ones(2, 3))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("inputs, outputs, stride", [(3, 3, 1), (3, 5, 1), (3, 3, 2), (3, 6, 2)])
def test_a_block_projects_its_input_only_where_shapes_differ(version, inputs, outputs, stride):
    block = residual_block(inputs, outputs, stride=stride, version=version)
    x = torch.randn(2, inputs, 7, 8)
    assert block(x).shape == (2, outputs, -(-7 // stride), -(-8 // stride))
    assert (block.shortcut is None) == (inputs == outputs and stride == 1)


def test_zero_weights_leave_the_input_and_its_gradient():
    x = torch.randn(2, 3, 5, 5, requires_grad=True)
    for version in (1, 2):
        block = residual_block(3, 3, version=version).eval()
        for conv in (m for m in block.modules() if isinstance(m, nn.Conv2d)):
            nn.init.zeros_(conv.weight)
        out = block(x)
        assert_close(out, x if version == 2 else x.relu())  # version 1 ends with a ReLU
        (slope,) = torch.autograd.grad(out.sum(), x)
        assert_close(slope, torch.ones_like(x) if version == 2 else (x > 0).float())


def test_the_two_versions_differ_in_what_stands_after_the_sum():
    torch.manual_seed(0)
    x = torch.randn(4, 3, 6, 6)
    first, second = residual_block(3, 3), residual_block(3, 3, version=2)
    assert isinstance(first.after, nn.ReLU)
    assert second.after is None
    assert (first(x) >= 0).all()
    assert (second(x) < 0).any()
    assert_close(first(x), (first.fn(x) + x).relu())
    assert_close(second(x), second.fn(x) + x)
    kinds = [type(layer).__name__ for layer in second.fn]
    assert kinds == ["BatchNorm2d", "ReLU", "Conv2d"] * 2
    with pytest.raises(InvalidParameter, match="`version` must be 1 or 2; got 3"):
        residual_block(3, 3, version=3)


def test_a_stack_is_its_input_and_the_sum_of_its_changes_and_so_is_its_gradient():
    torch.manual_seed(0)
    fns = [nn.Sequential(nn.Linear(4, 4), nn.Tanh()).double() for _ in range(6)]
    states = [torch.randn(4, dtype=torch.float64, requires_grad=True)]
    for fn in fns:
        states.append(Residual(fn)(states[-1]))
    t, last = 2, states[-1]
    changes = sum(fn(x) for fn, x in zip(fns[t:], states[t:], strict=False))
    assert_close(last, states[t] + changes)
    cost = last.sin().sum()
    (by_last,) = torch.autograd.grad(cost, last, retain_graph=True)
    (by_state,) = torch.autograd.grad(cost, states[t], retain_graph=True)
    # dC/dx_t = dC/dx_T (1 + d/dx_t of the sum of the changes)
    (through,) = torch.autograd.grad(changes, states[t], by_last)
    assert_close(by_state, by_last + through)


@pytest.mark.parametrize("scale", [0.5, 0.9, 1.0])
def test_a_scaled_shortcut_lets_its_power_of_the_gradient_past(scale):
    depth = 20
    dead = [nn.Linear(1, 1).double() for _ in range(depth)]
    for layer in dead:
        nn.init.zeros_(layer.weight)
    stack = nn.Sequential(*(Residual(layer, scale) for layer in dead))
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(stack(x).sum(), x)
    assert slope.item() == pytest.approx(scale**depth, rel=1e-12)


def test_a_shortcut_of_another_shape_is_refused():
    with pytest.raises(ShapeMismatch, match=r"the shortcut, \(2, 3\); got \(2, 4\)"):
        Residual(nn.Linear(3, 4), shortcut=nn.Identity())(torch.ones(2, 3))
