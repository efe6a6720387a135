"""Scores of coarse and fine maps, added."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.vision import FCN

WIDTHS = (4, 4, 8, 8, 8)


def test_finer_variants_add_the_scores_of_pool4_and_pool3():
    torch.manual_seed(0)
    net = FCN(3, 2, stride=8, widths=WIDTHS, depths=(1,) * 5, hidden=8).eval()
    x, pooled = torch.randn(1, 3, 64, 64), []
    h = x
    for stage in net.stages:
        h = stage(h)
        pooled.append(h)
    sixteen = net.enlarge[0](net.score(net.dense(h))) + net.finer[0](pooled[3])
    eight = net.enlarge[1](sixteen) + net.finer[1](pooled[2])
    assert sixteen.shape[2:] == (4, 4)
    assert eight.shape[2:] == (8, 8)
    assert_close(net(x), net.up(eight))


@pytest.mark.parametrize("stride, finer", [(32, []), (16, [8]), (8, [8, 8])])
def test_number_of_parameters_is_that_of_the_formula(stride, finer):
    net = FCN(3, 5, stride=stride, widths=WIDTHS, depths=(2, 1, 1, 1, 1), hidden=6)
    convolutions = [(3, 4), (4, 4), (4, 4), (4, 8), (8, 8), (8, 8), (8, 6)]
    stages = sum(9 * a * b + 2 * b for a, b in convolutions) + 6 * 6 + 2 * 6
    scores = 5 * (6 + 1) + sum(5 * (width + 1) + 5 * 4**2 for width in finer)
    assert sum(p.numel() for p in net.parameters()) == stages + scores + 5 * (2 * stride) ** 2


def test_published_stages_are_those_of_vgg16():
    with torch.device("meta"):
        net = FCN(3, 21)
    kernels = [m for m in net.stages.modules() if isinstance(m, nn.Conv2d)]
    assert sum(m.weight.numel() for m in kernels) == 14_710_464  # VGG-16 less biases and dense part


def test_a_wrong_stride_or_number_of_stages_is_named():
    with pytest.raises(InvalidParameter, match="`stride` must be 32, 16 or 8; got 4"):
        FCN(3, 2, stride=4)
    with pytest.raises(InvalidParameter, match=r"five stages; got \(8, 8\)"):
        FCN(3, 2, widths=(8, 8))
