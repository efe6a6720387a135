"""DRAW's steps as they are compiled, without the compiler: the same numbers and gradients."""

import pytest
import torch
from torch.testing import assert_close

from castalia.nets.generative import DRAWNetwork
from castalia.nets.generative.draw_window import product
from castalia.nn import uncompiled


@pytest.fixture
def calls(monkeypatch):
    """Options of every call of something compiled; the compiler does nothing."""
    found = []

    def compiled(part, **options):
        return lambda *given: found.append(options) or part(*given)

    monkeypatch.setattr(torch, "compile", compiled)
    return found


def pair():
    torch.manual_seed(0)
    net = DRAWNetwork(2, (8, 6), code=3, steps=4, hidden=8, window=3)
    x, noise = torch.rand(5, 2, 8, 6), torch.randn(5, 4, 3)
    return net, x, noise


def passed(net, x, noise):
    """Return what comes of a pass, and the gradients of all its outputs."""
    x, noise = x.clone().requires_grad_(), noise.clone().requires_grad_()
    found = net(x, noise)
    scales = torch.linspace(0.5, 1.5, len(found))
    loss = sum(scale * each.square().sum() for scale, each in zip(scales, found, strict=True))
    return found, torch.autograd.grad(loss, [x, noise, *net.parameters()])


def test_compiled_steps_have_the_numbers_and_gradients_of_plain_ones(calls):
    net, x, noise = pair()
    plain = passed(net, x, noise)
    net.compile(mode="default")
    found = passed(net, x, noise)
    assert calls == [{"mode": "default"}] * 20  # four steps of two cells and three others
    for one, other in zip(found[0] + found[1], plain[0] + plain[1], strict=True):
        assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_outputs_that_no_loss_uses_need_no_gradient(calls):
    net, x, noise = pair()
    net.compile()
    net(x, noise).mean.sum().backward()
    assert net.encoder.weight_hh.grad.abs().sum() > 0
    with torch.no_grad():
        assert not net(x, noise).canvas.requires_grad


def test_bf16_does_not_reach_the_windows_of_a_compiled_network(calls):
    net, x, noise = pair()
    net.compile()
    plain = net(x, noise)
    with torch.autocast("cpu", torch.bfloat16):
        found = net(x, noise)
    for one, other in zip(found, plain, strict=True):
        assert_close(one, other, atol=0, rtol=0)
    count = len(calls)
    with uncompiled(net):
        net(x)
    assert len(calls) == count


def test_products_of_a_compiled_step_are_sums_of_the_same_value(monkeypatch):
    torch.manual_seed(0)
    a, b = torch.randn(3, 1, 5, 7), torch.randn(3, 2, 7, 4)
    plain = product(a, b)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.setattr(torch.Tensor, "__matmul__", None)
    assert_close(product(a, b), plain)
