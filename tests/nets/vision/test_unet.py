"""The encoder's maps stand beside the decoder's."""

import pytest
import torch

from castalia.errors import InvalidParameter
from castalia.nets.vision import UNet


def test_the_decoder_gets_the_encoders_maps_of_its_size():
    net, seen = UNet(3, 2, widths=(4, 8, 16)).eval(), {}
    for i, stage in enumerate(net.down):
        stage.register_forward_hook(lambda *a, i=i: seen.update({f"down{i}": a[2]}))
    for i, stage in enumerate(net.up):
        stage.register_forward_hook(lambda *a, i=i: seen.update({f"up{i}": a[1][0]}))
    net(torch.randn(1, 3, 16, 20))
    assert seen["up0"][:, :8].equal(seen["down1"])
    assert seen["up1"][:, :4].equal(seen["down0"])
    assert seen["down2"].shape == (1, 16, 4, 5)


def test_fine_detail_reaches_the_output_though_the_coarse_path_is_cut():
    net = UNet(1, 2, widths=(4, 8)).eval()
    with torch.no_grad():
        net.enlarge[0].weight.zero_()
    x = torch.randn(16, 1, 8, 8, requires_grad=True)
    net(x)[:, 0, 4, 4].sum().backward()
    assert x.grad[:, 0, 4, 4].any()  # of one image all units may be off


def test_number_of_parameters_is_that_of_the_formula():
    net = UNet(3, 5, widths=(4, 8), depth=2)
    convolutions = [(3, 4), (4, 4), (4, 8), (8, 8), (8, 4), (4, 4)]
    stages = sum(9 * a * b + 2 * b for a, b in convolutions)
    assert sum(p.numel() for p in net.parameters()) == stages + (8 * 4 * 4 + 4) + 5 * (4 + 1)


def test_widths_must_not_be_empty():
    with pytest.raises(InvalidParameter, match="`widths` must hold one size or more"):
        UNet(3, 2, widths=())
