"""Residual blocks: what they are without their residual, with two steps, and without shortcuts."""

import pytest
import torch
from torch.testing import assert_close

from castalia.nets.vision import ResNet
from castalia.nets.vision.resnet import Block, Pad


def block(variant="v1", scale=1.0, inputs=4, stride=1, width=4, project=True, multistep=False):
    layers = [(3, width, stride), (3, width, 1)]
    made = Block(inputs, layers, variant=variant, scale=scale, project=project, multistep=multistep)
    return made.double().eval()


def silenced(made):
    """Set to zero what the residual ends with."""
    with torch.no_grad():
        made.residual[-1].weight.zero_()
    return made


@pytest.mark.parametrize("variant", ["v1", "v2"])
def test_a_block_whose_residual_is_zero_is_the_identity(variant):
    x = torch.rand(2, 4, 5, 5, dtype=torch.float64)  # not negative: v1 rectifies
    assert_close(silenced(block(variant))(x), x)
    assert_close(silenced(block(variant, scale=0.5))(x), 0.5 * x)


def test_the_first_variant_rectifies_the_sum_and_the_second_leaves_it_alone():
    x = torch.randn(2, 4, 5, 5, dtype=torch.float64)
    assert_close(silenced(block("v1"))(x), x.relu())
    assert_close(silenced(block("v2"))(x), x)


def test_a_block_adds_its_residual_to_the_scaled_input():
    made, x = block("v2", scale=0.3), torch.randn(2, 4, 5, 5, dtype=torch.float64)
    assert_close(made(x), made.residual(made.before(x).relu()) + 0.3 * x)


@pytest.mark.parametrize("variant", ["v1", "v2"])
def test_zero_init_starts_every_block_as_its_shortcut(variant):
    net = ResNet(3, 5, depth=14, variant=variant, zero_init=True).eval()
    x = torch.rand(1, 16, 8, 8)
    assert_close(net.features.stage1(x), x)


def test_a_shortcut_without_weights_takes_every_other_pixel_and_adds_zeros():
    x = torch.randn(1, 2, 4, 4)
    out = Pad(3, 2)(x)
    assert_close(out[:, :2], x[:, :, ::2, ::2])
    assert out.shape == (1, 5, 2, 2)
    assert out[:, 2:].abs().max() == 0


def test_a_two_step_block_mixes_the_last_two_states_by_its_k():
    made = silenced(block("v2", multistep=True))
    with torch.no_grad():
        made.k.fill_(0.25)
    x, before = torch.randn(2, 1, 4, 3, 3, dtype=torch.float64)
    assert_close(made.step(x, before)[0], 0.75 * x + 0.25 * before)


@pytest.mark.parametrize("variant", ["v1", "v2"])
def test_a_multistep_network_begins_as_the_ordinary_one_and_learns_its_k(variant):
    torch.manual_seed(0)
    plain = ResNet(3, 4, depth=14, variant=variant).eval()
    torch.manual_seed(0)
    twice = ResNet(3, 4, depth=14, variant=variant, multistep=True).eval()
    x = torch.randn(2, 3, 16, 16)
    assert_close(twice(x), plain(x))
    twice(x).square().sum().backward()
    ks = {name: p for name, p in twice.named_parameters() if name.endswith(".k")}
    assert list(ks) == [f"features.stage{i}.1.k" for i in (1, 2, 3)]
    assert all(k.grad.abs() > 0 for k in ks.values())


def test_a_plain_network_has_the_same_layers_without_shortcuts():
    plain, residual = (ResNet(3, 4, depth=20, shortcut=s) for s in (False, True))
    count = [sum(p.numel() for p in net.parameters()) for net in (plain, residual)]
    assert count[0] == count[1]  # at this kind of depth shortcuts have no weights
    made, x = block(scale=None), torch.randn(2, 4, 5, 5, dtype=torch.float64)
    assert_close(made(x), made.residual(x).relu())


def test_small_images_keep_their_resolution_in_the_stem():
    small, large = (ResNet(3, 4, width=4, size=(side, side)) for side in (64, 65))
    assert small.features.stem(torch.zeros(1, 3, 64, 64)).shape[2:] == (64, 64)
    assert large.features.stem(torch.zeros(1, 3, 65, 65)).shape[2:] == (17, 17)
