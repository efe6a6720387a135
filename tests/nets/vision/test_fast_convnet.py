"""The network that is trained in seconds: what its first layer and its start promise."""

import torch
from torch import nn
from torch.testing import assert_close

from castalia.nets.vision import FastConvNet
from castalia.nets.vision.fast_convnet import NOISE, rate_factors


def patches(x, side):
    return (
        x.unfold(2, side, 1).unfold(3, side, 1).permute(1, 4, 5, 0, 2, 3).flatten(3).flatten(0, 2)
    )


def test_the_first_layer_gives_white_maps_and_the_same_negated():
    source = torch.Generator().manual_seed(0)
    smooth = torch.randn(30, 3, 18, 18, generator=source)
    x = nn.functional.avg_pool2d(smooth, 3, 1) * torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1)
    found = patches(x, 2)
    covariance = found @ found.mT / found.shape[1]
    net = FastConvNet(3, 10, widths=(4,), covariance=covariance.tolist())
    maps = net.features.whiten(x).transpose(0, 1).flatten(1)  # (24, places)
    white = maps @ maps.mT / maps.shape[1]
    shrunk = torch.linalg.eigvalsh(covariance)
    assert_close(white[:12, :12], torch.diag(shrunk / (shrunk + NOISE)), atol=2e-3, rtol=0)
    assert_close(maps[:12], -maps[12:])
    assert "features.whiten.weight" not in dict(net.named_parameters())


def test_filters_start_as_the_identity_and_the_scores_near_zero():
    net = FastConvNet(3, 10, widths=(32, 48)).eval()
    x = torch.rand(2, 32, 6, 6)
    assert_close(net.features.stage2.first.conv(x)[:, :32], x)
    assert net(torch.randn(8, 3, 16, 16)).abs().max() < 2


def test_a_shortcut_leads_around_the_later_convolutions():
    net = FastConvNet(3, 4, widths=(8,), convs=3, shortcut=True).eval()
    stage = net.features.stage1
    for name, layer in stage.others.named_children():
        if name.startswith("conv"):
            nn.init.zeros_(layer.weight)
    x = torch.randn(2, 24, 6, 6)
    assert_close(stage(x), nn.functional.gelu(stage.first(x)))


def test_rates_follow_the_width_of_the_scores():
    narrow, wide = (dict_of(FastConvNet(3, 4, widths=(4, w))) for w in (8, 16))
    assert narrow["features.stage1.first.conv.weight"] == 1
    assert wide["head.classes.weight"] == 2 * narrow["head.classes.weight"]
    assert wide["features.whiten.bias"] == 2 * narrow["features.whiten.bias"]
    assert "features.whiten.weight" not in wide


def dict_of(net):
    names = {id(p): name for name, p in net.named_parameters()}
    return {names[id(p)]: factor for p, factor in rate_factors(net)}
