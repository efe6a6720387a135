"""Separable convolution, and the theorem that it is one convolution."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from castalia.nn import SeparableConv1d, SeparableConv2d

CASES = [
    (SeparableConv1d(4, 6, 3), (4, 20)),
    (SeparableConv1d(4, 6, 3, stride=2, padding=2, dilation=2, border="circular"), (4, 20)),
    (SeparableConv2d(3, 5, (3, 2), padding=1, bias=False), (3, 9, 8)),
    (SeparableConv2d(3, 5, 3, padding="same", border="reflect"), (3, 9, 8)),
    (SeparableConv2d(3, 1, 5, stride=(2, 1)), (3, 9, 8)),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_fused_it_is_one_convolution(number):
    layer, shape = CASES[number]
    layer, x = layer.double(), torch.randn(2, *shape, dtype=torch.float64)
    whole = layer.fused()
    assert type(whole) in (nn.Conv1d, nn.Conv2d)
    assert whole.groups == 1
    assert (whole(x) - layer(x)).abs().max() < 1e-12


def test_the_fused_kernel_is_the_product_of_mixing_and_filter():
    layer = SeparableConv2d(3, 5, 3)
    whole, depth, point = layer.fused().weight, layer.depthwise.weight, layer.pointwise.weight
    for o in range(5):
        for c in range(3):
            assert_close(whole[o, c], point[o, c, 0, 0] * depth[c, 0])


def test_it_has_cf_plus_oc_weights_instead_of_ocf():
    layer = SeparableConv2d(16, 32, 3, bias=False)
    assert sum(p.numel() for p in layer.parameters()) == 16 * 9 + 32 * 16
    assert layer.fused().weight.numel() == 32 * 16 * 9


def test_the_depthwise_part_filters_each_channel_alone():
    layer, x = SeparableConv1d(4, 6, 3).double(), torch.randn(2, 4, 9, dtype=torch.float64)
    weight = layer.depthwise.weight
    alone = [F.conv1d(x[:, c : c + 1], weight[c : c + 1]) for c in range(4)]
    assert_close(layer.depthwise(x), torch.cat(alone, dim=1))
    assert_close(layer.depthwise(x), F.conv1d(x, weight, groups=4))


def test_the_pointwise_part_is_a_dense_layer_at_each_position():
    layer, x = SeparableConv1d(4, 6, 3).double(), torch.randn(2, 4, 9, dtype=torch.float64)
    point = layer.pointwise
    dense = F.linear(x.transpose(1, 2), point.weight[:, :, 0], point.bias)
    assert_close(point(x), dense.transpose(1, 2))


def test_fusing_copies_and_keeps_device_and_number_format():
    layer = SeparableConv2d(2, 2, 3).double()
    whole = layer.fused()
    before = whole.weight.clone()
    with torch.no_grad():
        layer.depthwise.weight.zero_()
    assert whole.weight.dtype == torch.float64
    assert torch.equal(whole.weight, before)
