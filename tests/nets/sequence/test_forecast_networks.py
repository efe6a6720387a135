"""Networks that forecast: their level, their reach, and one network for all channels."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.nets.sequence import TCN, FlatWindow, ForecastNetwork, PatchEncoder


def linear(context):
    return lambda channels, outputs: FlatWindow(nn.Linear(channels * context, outputs))


@pytest.mark.parametrize("level", ["last", "window"])
def test_a_shift_of_the_series_shifts_the_forecast(level):
    net, x = ForecastNetwork(linear(6), 2, [0, 1], 3, level=level), torch.randn(4, 6, 2)

    def forecast(x):
        found = net(x)
        return found.values[..., 0] * found.scale + found.shift

    moved = x + torch.tensor([5.0, -3.0])
    assert_close(forecast(moved), forecast(x) + torch.tensor([5.0, -3.0]))


def test_a_shared_network_sees_each_channel_alone():
    net, x = ForecastNetwork(linear(6), 3, [0, 2], 4, values=2, shared=True), torch.randn(5, 6, 3)
    one = net(x).values
    other = x.clone()
    other[..., 2] += torch.randn(5, 6)
    assert_close(net(other).values[:, :, 0], one[:, :, 0])
    assert one.shape == (5, 4, 2, 2)
    swapped = ForecastNetwork(linear(6), 3, [2, 0], 4, values=2, shared=True)
    swapped.load_state_dict(net.state_dict())
    assert_close(swapped(x).values, one.flip(2))


def test_an_output_ignores_what_comes_after_it_and_what_is_out_of_reach():
    net, x = TCN(2, hidden=4, depth=3, kernel=2).eval(), torch.randn(1, 40, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(net(x)[:, 30].sum(), x)
    felt = gradient[0].abs().sum(dim=1).nonzero().flatten()
    assert felt.max() == 30
    assert felt.min() == 30 - net.reach + 1


def test_patches_cover_the_window_to_its_last_step():
    net, x = PatchEncoder(1, 21, 2, patch=8, stride=4, dim=8, heads=2).eval(), torch.randn(1, 21, 1)
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(net(x).sum(), x)
    assert bool((gradient[0] != 0).all())
