"""The convolutional layers on either device, in half precision, channels last, and captured."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.nn import (
    GlobalPool,
    LocallyConnected2d,
    MultistepResidual,
    ODEBlock,
    SeparableConv2d,
    Unpool2d,
    residual_block,
)


class PoolAndBack(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.pair = nn.Conv2d(3, 3, 1), Unpool2d(2)

    def forward(self, x):
        y, positions = self.pair.pool(self.conv(x))
        return self.pair(y, positions)


def conv():
    return nn.Conv2d(3, 3, 3, padding=1)


LAYERS = {
    "local": lambda: LocallyConnected2d(3, 4, (9, 8), 3, padding=1),
    "separable": lambda: SeparableConv2d(3, 5, 3, padding=1),
    "global": lambda: nn.Sequential(conv(), GlobalPool("max")),
    "residual": lambda: residual_block(3, 6, stride=2),
    "multistep": lambda: MultistepResidual([conv() for _ in range(3)], k=0.1),
    "ode": lambda: ODEBlock(conv(), steps=2, method="rk4"),
    "unpooling": PoolAndBack,
}


def built(name):
    torch.manual_seed(0)
    return LAYERS[name]().eval(), torch.randn(4, 3, 9, 8)


@pytest.mark.parametrize("name", LAYERS)
def test_channels_last_and_half_precision_give_the_same_up_to_rounding(name):
    layer, x = built(name)
    expected = layer(x)
    layer, x = (part.to(memory_format=torch.channels_last) for part in (layer, x))
    assert_close(layer(x), expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(x)
    assert_close(out.float(), expected, atol=0.06, rtol=0.06)
    out.float().sum().backward()
    assert all(p.grad is not None for p in layer.parameters())


@pytest.mark.gpu
@pytest.mark.parametrize("name", LAYERS)
def test_a_gpu_gives_the_same_and_can_capture_the_step(name):
    layer, x = built(name)
    expected = layer(x)
    layer, x = layer.cuda(), x.cuda()
    assert_close(layer(x).cpu(), expected, atol=2e-3, rtol=2e-3)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            layer(x).sum().backward()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = layer(x)
        out.sum().backward()
    graph.replay()
    torch.cuda.synchronize()
    assert_close(out.cpu(), expected, atol=2e-3, rtol=2e-3)
