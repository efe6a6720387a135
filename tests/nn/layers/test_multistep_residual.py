"""Linear multi-step stacks."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import MultistepResidual, Residual


def blocks(depth=4, dim=3):
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(dim, dim), nn.Tanh()).double() for _ in range(depth)]


def test_with_k_zero_it_is_a_residual_network():
    fns, x = blocks(), torch.randn(5, 3, dtype=torch.float64)
    assert_close(MultistepResidual(fns)(x), nn.Sequential(*map(Residual, fns))(x))


def test_it_is_its_equation():
    fns, x = blocks(), torch.randn(5, 3, dtype=torch.float64)
    stack = MultistepResidual(fns).double()
    with torch.no_grad():
        stack.k.copy_(torch.tensor([0.3, -0.2, 0.7]))
    states = [x, x + fns[0](x)]
    for t, k in ((1, 0.3), (2, -0.2), (3, 0.7)):
        states.append((1 - k) * states[t] + k * states[t - 1] + fns[t](states[t]))
    assert_close(stack(x), states[-1])


def test_every_k_has_a_gradient():
    stack = MultistepResidual(blocks(), k=0.1).double()
    x = torch.randn(2, 3, dtype=torch.float64)
    stack(x).square().sum().backward()
    assert (stack.k.grad != 0).all()
    before = torch.full((3,), 0.1, dtype=torch.float64)

    def loss(k):
        return torch.func.functional_call(stack, {"k": k}, (x,)).square().sum()

    assert torch.autograd.gradcheck(loss, (before.requires_grad_(),))


def test_with_one_field_it_solves_the_equation_slowed_by_one_plus_k():
    # X' = -X / (1 + k), to the end of n steps of size 1 / n
    k, n = 0.5, 400

    class Field(nn.Module):
        def forward(self, x):
            return -x / n

    stack = MultistepResidual([Field()] * n, k=k).double()
    found = stack(torch.ones(1, dtype=torch.float64)).item()
    assert found == pytest.approx(torch.e ** (-1 / (1 + k)), rel=2e-3)


def test_no_block_and_a_block_that_changes_the_shape_are_refused():
    with pytest.raises(InvalidParameter, match="must hold a module; got none"):
        MultistepResidual([])
    with pytest.raises(ShapeMismatch, match=r"block 1 must keep .*\(2, 3\); got \(2, 1\)"):
        MultistepResidual([nn.Linear(3, 3), nn.Linear(3, 1)])(torch.ones(2, 3))
