"""Batch normalisation with the statistics of all the data."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidData
from castalia.nn import recompute_batch_norm

SOURCE = torch.Generator().manual_seed(0)


def normalised_net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 4), nn.BatchNorm1d(4)
        ).double()
        for layer in (net[1], net[4]):
            layer.eps = 1e-30  # no epsilon, as far as torch allows
            nn.init.normal_(layer.weight)
            nn.init.normal_(layer.bias)
    return net


def test_outputs_over_all_data_have_bias_as_mean_and_weight_as_deviation():
    net = normalised_net()
    x = 5 * torch.randn(101, 3, generator=SOURCE, dtype=torch.float64) + 2
    recompute_batch_norm(net.eval(), x.split(16))
    for end in (2, 5):  # behind the first and behind the second normalisation
        layer, out = net[end - 1], net[:end](x)
        assert_close(out.mean(0), layer.bias)
        assert_close(out.std(0, correction=0), layer.weight.abs())


def test_it_does_not_depend_on_how_the_data_are_cut():
    x = torch.randn(60, 3, generator=SOURCE, dtype=torch.float64)
    one = recompute_batch_norm(normalised_net(), [x])
    many = recompute_batch_norm(normalised_net(), [x[:7], x[7:8], x[8:]])
    for mine, other in zip(one.buffers(), many.buffers(), strict=True):
        assert_close(mine, other)


def test_images_are_normalised_by_channel():
    net = nn.Sequential(nn.BatchNorm2d(3))
    x = torch.randn(6, 3, 4, 5, generator=SOURCE)
    recompute_batch_norm(net, [x[:2], x[2:]])
    assert_close(net[0].running_mean, x.mean((0, 2, 3)))
    assert_close(net[0].running_var, x.var((0, 2, 3), correction=0))


def test_modes_and_weights_stay_as_they_are():
    net = normalised_net().train()
    net[4].eval()
    before = [p.clone() for p in net.parameters()]
    recompute_batch_norm(net, [torch.randn(8, 3, dtype=torch.float64)])
    assert [m.training for m in net.modules()] == [True] * 5 + [False]
    assert all(map(torch.equal, before, net.parameters()))


def test_no_batches_is_an_error():
    with pytest.raises(InvalidData, match="must hold at least one batch"):
        recompute_batch_norm(normalised_net(), [])
