"""What the segmentation networks share."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from castalia.nets.vision import FCN, DilatedNet, SegNet, UNet
from castalia.nets.vision.segmentation_stages import BilinearUp, pad_to_multiple

SMALL = {
    "fcn32": lambda: FCN(3, 4, stride=32, widths=(4, 4, 8, 8, 8), depths=(1,) * 5, hidden=8),
    "fcn8": lambda: FCN(3, 4, stride=8, widths=(4, 4, 8, 8, 8), depths=(1,) * 5, hidden=8),
    "segnet": lambda: SegNet(3, 4, widths=(4, 4, 8), depths=(1, 2, 2)),
    "unet": lambda: UNet(3, 4, widths=(4, 8, 8), dropout=0.1),
    "unet_flat": lambda: UNet(3, 4, widths=(4,)),
    "dilated": lambda: DilatedNet(3, 4, widths=(4, 4, 8, 8), stride=4, hidden=8),
    "dilated_full": lambda: DilatedNet(3, 4, widths=(4, 8), stride=1, hidden=8),
}
every_network = pytest.mark.parametrize("name", SMALL)


@every_network
@pytest.mark.parametrize("size", [(32, 32), (37, 50), (1, 1), (18, 3)], ids="{0[0]}x{0[1]}".format)
def test_output_size_is_input_size(name, size):
    assert SMALL[name]()(torch.zeros(2, 3, *size)).shape == (2, 4, *size)


@every_network
def test_one_small_image_can_be_trained_on(name):
    net = SMALL[name]().train()
    net(torch.randn(1, 3, 8, 8)).square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


@every_network
def test_memory_format_and_precision_change_little(name):
    torch.manual_seed(0)
    net, x = SMALL[name]().eval(), torch.randn(2, 3, 20, 28)
    expected = net(x)
    assert_close(net.double()(x.double()).float(), expected, rtol=0, atol=1e-4)
    net = net.float().to(memory_format=torch.channels_last)
    assert_close(net(x.contiguous(memory_format=torch.channels_last)), expected, rtol=0, atol=1e-4)
    with torch.autocast("cpu", torch.bfloat16):
        assert_close(net(x).float(), expected, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("factor", [2, 4, 8, 32])
def test_upsampling_begins_as_bilinear_interpolation(factor):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 5, 6)
    found = BilinearUp(3, factor)(x)
    expected = F.interpolate(x, scale_factor=float(factor), mode="bilinear", align_corners=False)
    edge = factor // 2  # torch repeats the border, a transposed convolution fades to 0
    inner = (..., slice(edge, -edge), slice(edge, -edge))
    assert found.shape == expected.shape
    assert_close(found[inner], expected[inner])


def test_padding_keeps_the_image_and_adds_zeros():
    x = torch.ones(1, 1, 3, 9)
    padded = pad_to_multiple(x, 4)
    assert padded.shape == (1, 1, 8, 12)  # two cells at least
    assert padded[..., :3, :9].equal(x)
    assert padded.sum() == x.sum()
