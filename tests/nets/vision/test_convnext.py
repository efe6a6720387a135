"""ConvNeXt and its weights in other libraries."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.vision import ConvNeXt
from castalia.nets.vision.torchvision_weights import load_weights, names, save_weights

SMALL = {"widths": (8, 16, 24, 32), "blocks": (1, 2, 1, 1)}
F = nn.functional


def test_the_tiny_network_has_the_weights_of_the_paper():
    with torch.device("meta"):
        net = ConvNeXt(3, 1000)
    assert sum(p.numel() for p in net.parameters()) == 28_589_128


def norm(x, weight, bias):
    return F.layer_norm(x.permute(0, 2, 3, 1), weight.shape, weight, bias, 1e-6).permute(0, 3, 1, 2)


def plain(state, x, blocks):
    """Write the equations of the paper out on torchvision's tensors."""

    def of(name):
        return state[f"{name}.weight"], state[f"{name}.bias"]

    h = norm(F.conv2d(x, *of("features.0.0"), stride=4), *of("features.0.1"))
    for i, count in enumerate(blocks):
        if i:
            at = f"features.{2 * i}"
            h = F.conv2d(norm(h, *of(f"{at}.0")), *of(f"{at}.1"), stride=2)
        for j in range(count):
            at = f"features.{2 * i + 1}.{j}"
            b = F.conv2d(h, *of(f"{at}.block.0"), padding=3, groups=h.shape[1])
            b = norm(b, *of(f"{at}.block.2")).permute(0, 2, 3, 1)
            b = F.linear(F.gelu(F.linear(b, *of(f"{at}.block.3"))), *of(f"{at}.block.5"))
            h = h + state[f"{at}.layer_scale"] * b.permute(0, 3, 1, 2)
    h = norm(h.mean(dim=(2, 3), keepdim=True), *of("classifier.0")).flatten(1)
    return F.linear(h, *of("classifier.2"))


def test_scores_are_those_of_the_written_out_network_on_torchvisions_names():
    source = torch.Generator().manual_seed(0)
    net = ConvNeXt(3, 5, **SMALL).eval()
    table = names(net)
    state = {
        table[k]: torch.randn(v.shape, generator=source) / 3 for k, v in net.state_dict().items()
    }
    load_weights(net, state)
    x = torch.randn(2, 3, 32, 32, generator=source)
    assert_close(net(x), plain(state, x, SMALL["blocks"]), atol=1e-5, rtol=1e-4)


def test_timms_factors_have_one_axis_and_come_back(tmp_path):
    net, again = (ConvNeXt(3, 5, **SMALL) for _ in range(2))
    path = save_weights(net, tmp_path / "weights.safetensors", "timm")
    load_weights(again, path)
    for name, value in net.state_dict().items():
        assert_close(again.state_dict()[name], value)


def test_stages_must_agree():
    with pytest.raises(InvalidParameter, match="`widths` and `blocks` must name the same stages"):
        ConvNeXt(3, 2, widths=(8, 16), blocks=(1,))


def test_scores_equal_torchvisions():
    models = pytest.importorskip("torchvision.models")
    theirs = models.convnext_tiny(num_classes=7).eval()
    for name, parameter in theirs.named_parameters():
        if name.endswith("layer_scale"):
            nn.init.ones_(parameter)
    ours = ConvNeXt(3, 7).eval()
    load_weights(ours, theirs.state_dict(), head=True)
    x = torch.randn(2, 3, 64, 64)
    assert_close(ours(x), theirs(x), atol=1e-4, rtol=1e-3)


def test_scores_equal_timms():
    timm = pytest.importorskip("timm")
    theirs = timm.models.ConvNeXt(depths=(1, 2, 1, 1), dims=(8, 16, 24, 32), num_classes=7).eval()
    for name, parameter in theirs.named_parameters():
        if name.endswith("gamma"):
            nn.init.ones_(parameter)
    ours = ConvNeXt(3, 7, **SMALL).eval()
    load_weights(ours, theirs.state_dict(), head=True)
    x = torch.randn(2, 3, 64, 64)
    assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-4)
