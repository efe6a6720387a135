"""The machine's equations against sums over every state (WE-35: 4 visible, 3 hidden units)."""

import math

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.generative.restricted_boltzmann_network import (
    RestrictedBoltzmannNetwork,
    binary_states,
)


@pytest.fixture
def net():
    torch.manual_seed(0)
    machine = RestrictedBoltzmannNetwork(4, 3).double()
    with torch.no_grad():
        for parameter in machine.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return machine


def joint(net):
    """P(v, h) of all states, (16, 8), from the energy of the notes written out."""
    V, H = binary_states(4).double(), binary_states(3).double()
    W, b, c = net.weight, net.visible_bias, net.hidden_bias
    energy = -(V @ b)[:, None] - (H @ c)[None] - torch.einsum("vi,ij,hj->vh", V, W, H)
    return V, H, -energy


def test_the_energy_and_log_z_are_those_of_the_notes(net):
    V, H, log_p = joint(net)
    found = torch.stack([net.energy(V, h.expand(16, 3)) for h in H], dim=1)
    assert_close(found, -log_p, rtol=0, atol=1e-12)
    assert_close(net.log_z(), log_p.flatten().logsumexp(0), rtol=0, atol=1e-12)
    wide = RestrictedBoltzmannNetwork(3, 4).double()  # summed over the visible layer
    with torch.no_grad():
        wide.weight.copy_(net.weight.T)
        wide.visible_bias.copy_(net.hidden_bias)
        wide.hidden_bias.copy_(net.visible_bias)
    assert_close(wide.log_z(), net.log_z(), rtol=0, atol=1e-12)


def test_conditionals_equal_enumeration(net):
    V, H, log_p = joint(net)
    p = log_p.exp()
    assert_close(net(V), (p / p.sum(1, keepdim=True)) @ H, rtol=0, atol=1e-12)
    assert_close(net.reconstruct(H), (p / p.sum(0)).T @ V, rtol=0, atol=1e-12)


def test_the_free_energy_is_that_of_the_sum_over_hidden_states(net):
    V, _, log_p = joint(net)
    p = (-net.free_energy(V) - net.log_z()).exp()
    assert_close(p, log_p.exp().sum(1) / log_p.exp().sum(), rtol=0, atol=1e-12)
    assert float(p.sum().detach()) == pytest.approx(1, abs=1e-12)


def log_likelihood(net, v):
    return (-net.free_energy(v)).mean() - net.log_z()


def test_the_gradient_is_data_less_model_and_equals_finite_differences(net):
    v = binary_states(4).double()[[0, 3, 3, 9, 14]]
    found = net.likelihood_gradient(v)
    for name, parameter in net.named_parameters():
        for at in range(parameter.numel()):
            values = []
            for step in (1e-6, -1e-6):
                with torch.no_grad():
                    parameter.view(-1)[at] += step
                    values.append(float(log_likelihood(net, v)))
                    parameter.view(-1)[at] -= step
            slope = (values[0] - values[1]) / 2e-6
            assert float(found[name].view(-1)[at].detach()) == pytest.approx(slope, abs=1e-8)
        (auto,) = torch.autograd.grad(log_likelihood(net, v), parameter)
        assert_close(auto, found[name].detach(), rtol=0, atol=1e-12)


def test_block_gibbs_draws_from_the_joint(net):
    V, _, log_p = joint(net)
    v, g = torch.zeros(40_000, 4).double(), torch.Generator().manual_seed(0)
    for _ in range(30):
        v = net.gibbs(v, g)
    code = (v.long() * torch.tensor([8, 4, 2, 1])).sum(1)
    found = torch.bincount(code, minlength=16).double() / len(v)
    assert (found - log_p.flatten().softmax(0).view(16, 8).sum(1)).abs().max() < 0.01


def test_normal_visible_units_integrate_to_the_same_z():
    torch.manual_seed(1)
    machine = RestrictedBoltzmannNetwork(1, 3, gaussian=True).double()
    with torch.no_grad():
        for parameter in machine.parameters():
            parameter.copy_(torch.randn_like(parameter))
    v = torch.linspace(-25, 25, 200_001).double()[:, None]
    p = (-machine.free_energy(v)).exp().detach()
    assert float(torch.trapezoid(p, v[:, 0]).log()) == pytest.approx(
        float(machine.log_z().detach()), abs=1e-9
    )
    h = binary_states(3).double()
    mean = machine.visible_bias + h @ machine.weight.T
    assert_close(machine.reconstruct(h), mean)
    drawn = machine.draw_visible(h[3:4].expand(50_000, 3), torch.Generator().manual_seed(0))
    assert float(drawn.mean().detach()) == pytest.approx(float(mean[3].detach()), abs=0.02)
    assert float(drawn.var().detach()) == pytest.approx(1, abs=0.02)
    assert math.isfinite(float(machine.energy(v[:1], h[:1]).detach()))


def test_what_is_too_large_to_sum_is_refused():
    with pytest.raises(InvalidParameter, match="up to 20 units.*annealed importance"):
        RestrictedBoltzmannNetwork(30, 25).log_z()
    with pytest.raises(InvalidParameter, match="at most 20 units of 0 or 1; got 30"):
        RestrictedBoltzmannNetwork(30, 5).likelihood_gradient(torch.zeros(1, 30))
