"""Residual blocks as steps of a differential equation."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import odeint
from castalia.errors import InvalidParameter
from castalia.nn import ODEBlock, Residual


def field():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3)).double()


def start():
    return torch.tensor([[0.5, -1.0, 0.2]], dtype=torch.float64)


def errors(method, counts):
    """Return the distance from the solution after one unit of time, for each number of steps."""
    fn = field()
    with torch.no_grad():
        exact = odeint(lambda t, x: fn(x), start(), [0.0, 1.0], rtol=1e-12, atol=1e-12)[-1]
        return [
            (ODEBlock(fn, steps=n, method=method, iterations=40)(start()) - exact).norm().item()
            for n in counts
        ]


def test_one_step_of_euler_is_a_residual_block():
    fn = field()
    assert torch.equal(ODEBlock(fn)(start()), Residual(fn)(start()))


def test_residual_blocks_with_small_steps_tend_to_the_solution_in_proportion_to_the_step():
    found = errors("euler", (10, 20, 40, 80, 640))
    ratios = np.array(found[:3]) / found[1:4]
    assert ratios == pytest.approx(2, rel=0.1)
    assert found[-1] < 2e-3


@pytest.mark.parametrize("method, order", [("euler", 1), ("backward_euler", 1), ("rk4", 4)])
def test_the_error_falls_as_the_power_of_the_step(method, order):
    counts = np.array([8, 16, 32, 64])
    slope = np.polyfit(np.log(1 / counts), np.log(errors(method, counts)), 1)[0]
    assert slope == pytest.approx(order, abs=0.12)


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_steps_and_gradients_are_those_of_the_solver(method):
    fn, block = field(), ODEBlock(None, steps=5, time=0.7, method=method)
    block.fn = fn
    times = torch.linspace(0, 0.7, 6, dtype=torch.float64)
    found = []
    for solve in (
        block,
        lambda x: odeint(lambda t, y: fn(y), x, times, method, adjoint=False)[-1],
    ):
        fn.zero_grad()
        out = solve(start())
        out.square().sum().backward()
        found.append((out.detach(), fn[0].weight.grad.clone()))
    assert_close(found[0], found[1])


def test_backward_euler_solves_its_equation():
    fn = nn.Linear(1, 1, bias=False).double()
    nn.init.constant_(fn.weight, -0.9)
    x = torch.ones(1, 1, dtype=torch.float64)
    z = ODEBlock(fn, method="backward_euler", iterations=400)(x)
    assert_close(z, x + fn(z))
    assert z.item() == pytest.approx(1 / 1.9)


def test_mistakes_are_named():
    with pytest.raises(InvalidParameter, match="`rk4`; got 'rk5'. Did you mean `rk4`"):
        ODEBlock(nn.Identity(), method="rk5")
    with pytest.raises(InvalidParameter, match="at least 1; got 0 and 10"):
        ODEBlock(nn.Identity(), steps=0)
