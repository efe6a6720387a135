"""Modules get their own tensors back, and the caller's mode does not matter."""

import pytest
import torch
from torch import nn

from castalia.autodiff import check_gradients, gradient, hessian, trace


class Twice(nn.Module):
    """One layer under two names."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        self.b = self.a

    def forward(self, x):
        return self.b(self.a(x)).square().sum()


@pytest.mark.parametrize("tool", [trace, lambda net, x: gradient(lambda n, v: n(v), net, x)])
def test_a_layer_that_is_used_under_two_names_keeps_its_own_tensors(tool):
    net, x = Twice(), torch.randn(4, 3)
    before = [*net.parameters(), *net.buffers()]
    values = [t.detach().clone() for t in before]
    tool(net, x)
    after = [*net.parameters(), *net.buffers()]
    assert all(a is b for a, b in zip(after, before, strict=True))
    torch.testing.assert_close([t.detach() for t in after], values, rtol=0, atol=0)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_derivatives_do_not_depend_on_the_mode_they_are_asked_in(mode):
    def cube(x):
        return (x**3).sum()

    with mode():
        x = torch.tensor([1.0, 2.0])
        graph = trace(cube, x)
        found = [graph.bprop()["x"], graph.gradient().fprop(x), gradient(cube, x)]
        second, check = hessian(cube, x), check_gradients(cube, x)
    for each in found:
        assert each.tolist() == [3.0, 12.0]
    assert second.diagonal().tolist() == [6.0, 12.0]
    assert check
