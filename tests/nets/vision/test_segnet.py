"""The decoder puts values back where the maxima were."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.vision import SegNet
from castalia.nets.vision.segnet import unpool


def test_unpooling_is_that_of_torch():
    x, places = F.max_pool2d(torch.randn(2, 3, 8, 12), 2, return_indices=True)
    assert_close(unpool(x, places), F.max_unpool2d(x, places, 2))
    last = x.contiguous(memory_format=torch.channels_last)
    assert_close(unpool(last, places), F.max_unpool2d(x, places, 2))


def test_the_decoder_uses_the_places_of_the_encoders_maxima():
    torch.manual_seed(0)
    net = SegNet(1, 2, widths=(4,), depths=(1,)).eval()
    seen = {}
    net.down[0].register_forward_hook(lambda *a: seen.update(encoded=a[2]))
    net.up[0].register_forward_hook(lambda *a: seen.update(unpooled=a[1][0]))
    net(torch.rand(1, 1, 8, 8))
    there = seen["unpooled"] != 0
    largest = F.max_pool2d(seen["encoded"], 2).repeat_interleave(2, 2).repeat_interleave(2, 3)
    assert there.sum() >= there.numel() // 8  # ReLU leaves some maxima at 0
    assert_close(seen["unpooled"][there], seen["encoded"][there])
    assert (seen["encoded"][there] == largest[there]).all()


def test_the_published_encoder_is_vgg16_and_the_decoder_its_mirror():
    with torch.device("meta"):
        net = SegNet(3, 12)

    def pairs(part):
        kernels = [m for m in part.modules() if isinstance(m, nn.Conv2d)]
        return [(m.in_channels, m.out_channels) for m in kernels]

    down = pairs(net.down)
    assert len(down) == 13
    assert pairs(net.up)[:-1] == [(b, a) for a, b in down[:0:-1]]


def test_every_stage_needs_a_depth():
    with pytest.raises(InvalidParameter, match=r"one entry a stage; got \(4, 8\) and \(2,\)"):
        SegNet(3, 2, widths=(4, 8), depths=(2,))
