"""A classifier as a convolution gives, in every window, what it gives for the window alone."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.vision import (
    VGG,
    AlexNet,
    ConvNet,
    ConvNet1d,
    GoogLeNet,
    LeNet,
    ResNet,
    feature_stride,
    fully_convolutional,
)

# (network, window, stride)
NETWORKS = {
    "LeNet": (lambda: LeNet(1, 4), (28, 28), 4),
    "LeNet of 1998": (lambda: LeNet(1, 4, pooling="trainable", partial=True), (28, 28), 4),
    "ConvNet, dense": (lambda: ConvNet(1, 4, hidden=(8,), size=(16, 24)), (16, 24), 8),
    "ConvNet, averaged": (lambda: ConvNet(1, 4, widths=(4, 8)), (12, 20), 2),
    "VGG": (lambda: VGG(1, 4, depth=11, width=0.05, size=(64, 64)), (64, 64), 32),
    "VGG, cells overlap": (
        lambda: VGG(1, 4, depth=11, width=0.02, size=(256, 288)),
        (256, 288),
        32,
    ),
    "AlexNet": (lambda: AlexNet(1, 4, width=0.05, size=(64, 64)), (64, 64), 32),
    "GoogLeNet": (lambda: GoogLeNet(1, 4, width=0.05), (32, 32), 32),
    "ResNet": (lambda: ResNet(1, 4, depth=8, width=4), (20, 16), 4),
}


def made(name, seed=0):
    torch.manual_seed(seed)
    build, window, stride = NETWORKS[name]
    net = build()
    for module in net.modules():  # statistics of a training
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
    return net.eval(), window, stride


def unpadded(name):
    """Return a network without padding, its window and its stride."""
    torch.manual_seed(0)
    if name == "LeNet":  # the digits of 1998 have 32 pixels, their border is in the image
        net = LeNet(1, 5, size=(28, 28))
        net.features.c1.padding = (0, 0)
        return net.eval(), (32, 32), 4
    net = ConvNet(
        1, 5, widths=(6, 8, 8), convs=1, hidden=(8,) if name == "dense" else (), size=(24, 24)
    )
    for stage in (net.features.stage1, net.features.stage2, net.features.stage3):
        stage[0].padding = (0, 0)
    # 30 -> 28 -> 14 -> 12 -> 6 -> 4 (-> 2), 26 -> 24 -> 12 -> 10 -> 5 -> 3
    return (net.eval(), (38, 38), 8) if name == "dense" else (net.eval(), (26, 30), 4)


@pytest.mark.parametrize("name", ["LeNet", "dense", "averaged"])
def test_without_padding_every_entry_is_the_answer_for_its_crop(name):
    net, (height, width), stride = unpadded(name)
    x = torch.randn(2, 1, height + 3 * stride + 1, width + 2 * stride)
    with torch.no_grad():
        maps = fully_convolutional(net, (height, width))(x)
        assert maps.shape == (2, 5, 4, 3)
        for i in range(4):
            for j in range(3):
                top, left = i * stride, j * stride
                crop = x[:, :, top : top + height, left : left + width]
                assert_close(maps[:, :, i, j], net(crop), atol=1e-5, rtol=1e-5)
    assert feature_stride(net, (height, width)) == (stride, stride)


@pytest.mark.parametrize("name", NETWORKS)
def test_on_one_window_the_map_is_the_answer(name):
    net, window, stride = made(name)
    x = torch.randn(2, 1, *window)
    with torch.no_grad():
        maps = fully_convolutional(net, window)(x)
        assert maps.shape == (2, 4, 1, 1)
        assert_close(maps[:, :, 0, 0], net(x), atol=2e-5, rtol=1e-4)
    assert feature_stride(net, window) == (stride, stride)


@pytest.mark.parametrize("name", ["LeNet", "ConvNet, dense", "ConvNet, averaged", "ResNet"])
def test_with_padding_every_entry_is_the_head_on_its_part_of_the_maps(name):
    net, window, stride = made(name)
    x = torch.randn(1, 1, window[0] + 2 * stride, window[1] + 3 * stride)
    with torch.no_grad():
        maps, features = fully_convolutional(net, window)(x), net.features(x)
        height, width = net.features(x[:, :, : window[0], : window[1]]).shape[2:]
        for i in range(maps.shape[2]):
            for j in range(maps.shape[3]):
                part = features[:, :, i : i + height, j : j + width]
                assert_close(maps[:, :, i, j], net.head(part), atol=1e-5, rtol=1e-5)
    assert maps.shape[2:] == (3, 4)


@pytest.mark.parametrize("name", ["LeNet", "ConvNet, dense", "ConvNet, averaged"])
def test_with_padding_an_inner_window_cut_with_its_surroundings_gives_the_entry(name):
    net, (height, width), stride = made(name)
    margin = (
        3 * stride + (-3 * stride) % 8
    )  # wider than the receptive field reaches beyond a window
    x = torch.randn(1, 1, height + 2 * margin + 2 * stride, width + 2 * margin)
    slid = fully_convolutional(net, (height, width))
    with torch.no_grad():
        whole = slid(x)[:, :, (margin + 2 * stride) // stride, margin // stride]
        cut = x[:, :, 2 * stride : 2 * stride + height + 2 * margin]
        around = slid(cut)[:, :, margin // stride, margin // stride]
        bare = net(cut[:, :, margin : margin + height, margin : margin + width])
    assert_close(whole, around, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(whole, bare, atol=1e-3)  # zeros around the bare window do matter


def test_weights_are_copies_and_the_network_stays_as_it_was():
    net, window, _ = made("LeNet")
    slid = fully_convolutional(net.train(), window)
    with torch.no_grad():
        for parameter in slid.parameters():
            parameter.zero_()
    assert net.training
    assert not slid.training
    assert all(p.abs().sum() > 0 for p in net.head.parameters() if p.ndim > 1)


@pytest.mark.parametrize("net", [nn.Linear(2, 2), ConvNet1d(1, 2)], ids=["dense", "signals"])
def test_other_networks_are_refused_by_name(net):
    with pytest.raises(InvalidParameter, match=f"got {type(net).__name__}"):
        fully_convolutional(net, (8, 8))
