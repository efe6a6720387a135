"""Convolutions over blocks of pixels against plain ones."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from castalia.nets.vision import ResNet
from castalia.nn.convolutions import block_convolution
from castalia.nn.convolutions.block_convolution import BlockConv2d, convolve_blocks


@pytest.mark.parametrize("kernel", [1, 3, 5, 7, 9])
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_numbers_and_gradients_are_those_of_a_plain_convolution(kernel, channels, layout):
    torch.manual_seed(0)
    x = torch.randn(2, channels, 12, 10, dtype=torch.float64).contiguous(memory_format=layout)
    weight = torch.randn(5, channels, kernel, kernel, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(5, dtype=torch.float64)
    x.requires_grad_()
    found = convolve_blocks(x, weight, bias)
    plain = F.conv2d(x, weight, bias, stride=2, padding=kernel // 2)
    assert_close(found, plain)
    assert found.is_contiguous(memory_format=torch.channels_last)
    seed = torch.randn_like(plain)
    slopes = [torch.autograd.grad(out, (x, weight), seed) for out in (found, plain)]
    assert_close(*slopes)


def test_a_network_is_the_same_function_by_blocks(monkeypatch):
    torch.manual_seed(0)
    net = ResNet(3, 10, stem="imagenet", width=8).double().eval()
    x = torch.randn(2, 3, 66, 64, dtype=torch.float64)
    plain, odd = net(x), net(x[:, :, :65])
    used = []
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.setattr(
        block_convolution, "convolve_blocks", lambda *args: used.append(1) or convolve_blocks(*args)
    )
    assert net(x).equal(plain)  # on a CPU nothing changes
    assert not used
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    assert_close(net(x), plain)
    assert len(used) == 1
    assert net(x[:, :, :65]).equal(odd)  # half a block would be left
    assert len(used) == 1
    for other in ({"padding": 2}, {"dilation": 2}, {"padding_mode": "reflect"}, {"stride": 1}):
        settings = {"padding": 3, "stride": 2} | other
        net.features.stem.conv = BlockConv2d(3, 8, 7, **settings).double()
        net(x)
        assert len(used) == 1, other


@pytest.mark.gpu
@pytest.mark.filterwarnings(  # of the compiler's own
    "ignore::DeprecationWarning", "ignore:TensorFloat32 tensor cores:UserWarning"
)
def test_a_compiled_network_gives_the_scores_of_a_plain_one():
    torch.manual_seed(0)
    net = ResNet(3, 10, stem="imagenet").double().cuda().eval()  # no TF32 between the two
    x = torch.randn(4, 3, 96, 96, device="cuda", dtype=torch.float64)
    with torch.no_grad():
        plain = net(x)
        net.compile()
        assert_close(net(x), plain, rtol=1e-6, atol=1e-8)
