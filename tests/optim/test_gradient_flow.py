"""Gradient descent as Euler's method on the gradient flow."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import ShapeMismatch, SolverFailed
from castalia.optim import gradient_flow

double = {"dtype": torch.float64}
H = torch.tensor([[3.0, 1.0], [1.0, 2.0]], **double)
W0 = torch.tensor([1.0, -2.0], **double)


def bowl(w):
    return 0.5 * w @ H @ w


def test_the_flow_of_a_quadratic_is_the_matrix_exponential():
    t = torch.linspace(0, 2, 9, **double)
    exact = torch.stack([torch.linalg.matrix_exp(-H * s) @ W0 for s in t])
    assert_close(gradient_flow(bowl, W0, t).flow, exact, rtol=0, atol=1e-6)


def test_descent_tends_to_the_flow_in_proportion_to_its_step():
    t = torch.tensor([0.0, 1.0], **double)
    exact = torch.linalg.matrix_exp(-H) @ W0

    def distance(h):
        return float((gradient_flow(bowl, W0, t, h=h).descent[-1] - exact).norm())

    assert distance(0.001) < 2e-3
    assert distance(0.002) / distance(0.001) == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("factor, decays", [(0.98, True), (1.02, False)])
def test_descent_is_stable_below_two_over_the_largest_eigenvalue(factor, decays):
    h = factor * 2 / float(torch.linalg.eigvalsh(H)[-1])
    path = gradient_flow(bowl, W0, torch.arange(201, **double) * h, h=h)
    assert (float(path.descent[-1].norm()) < 0.1) is decays
    assert (float(path.descent[-1].norm()) > 10) is not decays
    assert float(path.flow[-1].norm()) < 1e-3  # the flow always decays


def test_descent_equals_sgd_on_a_network():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    x, y = torch.randn(16, 3, **double), torch.randn(16, 1, **double)
    w0 = {name: p.detach().clone() for name, p in net.named_parameters()}

    def loss(w):
        return (torch.func.functional_call(net, w, x) - y).square().mean()

    path = gradient_flow(loss, w0, [0.0, 0.5], h=0.1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        loss(dict(net.named_parameters())).backward()
        optimizer.step()
    for name, p in net.named_parameters():
        assert_close(path.descent[name][-1], p.detach())
    assert loss({n: w[-1] for n, w in path.flow.items()}) < loss(w0)


def test_without_a_step_only_the_flow_is_followed():
    assert gradient_flow(bowl, W0, [0.0, 1.0]).descent is None


def test_a_loss_that_is_no_number_is_refused():
    with pytest.raises(ShapeMismatch, match=r"`loss\(w\)` must be one number; got shape \(2,\)"):
        gradient_flow(lambda w: w, W0, [0.0, 1.0])


def test_a_loss_without_a_minimum_is_reported_with_its_time():
    with pytest.raises(SolverFailed, match=r"blows up"):
        gradient_flow(lambda w: -(w**4).sum(), W0, [0.0, 5.0])
