"""Convolutions as products: the same numbers, and the same second derivatives of many tasks."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.models.meta import maml
from castalia.models.meta.convolution_products import ConvolutionProducts
from castalia.models.meta.maml import EpisodeLoss
from castalia.nets.vision import ConvNet
from castalia.objectives import CrossEntropy
from castalia.protocols import Batch


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"padding": 1},
        {"padding": (0, 2), "bias": False},
        {"stride": 2, "padding": 1},
        {"groups": 2},
        {"padding": "same"},
    ],
    ids=str,
)
def test_a_layer_gives_what_it_gives_outside(settings):
    torch.manual_seed(0)
    layer, x = nn.Conv2d(2, 4, (3, 1), **settings).double(), torch.randn(3, 2, 7, 6).double()
    with ConvolutionProducts():
        found = layer(x)
    assert_close(found, layer(x))


def test_a_meta_step_has_the_gradients_of_plain_convolutions(monkeypatch):
    torch.manual_seed(0)
    net = ConvNet(1, 2, widths=(3, 3), convs=1, batch_norm="own")
    x = torch.rand(4, 3, 1, 8, 8)

    def gradients():
        net.zero_grad()
        torch.manual_seed(1)
        loss = EpisodeLoss(CrossEntropy(), 1, 0.4, 2, ways=2, queries=2)
        loss.terms(net, Batch(x), "train")["loss"].backward()
        return torch.cat([p.grad.flatten() for p in net.parameters()])

    found = gradients()
    monkeypatch.setattr(maml, "faster_convolutions", lambda x: nullcontext())
    assert_close(found, gradients(), atol=1e-5, rtol=1e-5)
