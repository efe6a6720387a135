"""Freezing by depth, new heads, and rates that fall with depth."""

import copy
import pickle

import pytest
import torch
from torch import nn

from castalia.errors import InvalidParameter
from castalia.nets.transfer import freeze, parts, rate_scales, replace_head, unfreeze
from castalia.nets.vision import VGG, ConvNet, ResNet


def resnet(variant="v1"):
    torch.manual_seed(0)
    return ResNet(3, 4, depth=8, width=4, variant=variant)


def trained(net):
    return [name for name, p in net.named_parameters() if p.requires_grad]


def step(net, steps=2):
    """Train a little, as any loop would."""
    optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
    net.train()
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(6, 3, 8, 8)).square().mean().backward()
        optimizer.step()
    return net


def test_the_parts_are_the_layers_with_weights_in_order():
    stages = [f"features.stage{i}" for i in (1, 2, 3)]
    assert [name for name, _ in parts(resnet())] == ["features.stem", *stages, "head.classes"]
    assert [name for name, _ in parts(resnet("v2"))] == ["features.stem", *stages, "head.classes"]
    vgg = [name for name, _ in parts(VGG(3, 4, depth=11, width=0.05, batch_norm=True))]
    assert vgg[:2] == ["features.conv1_1", "features.conv2_1"]
    assert vgg[-3:] == ["head.dense6", "head.dense7", "head.classes"]
    assert len(vgg) == 11  # the depth of the network


@pytest.mark.parametrize("upto", [3, -2, "features.stage2"])
def test_frozen_layers_keep_every_bit_with_their_statistics(upto):
    net = freeze(resnet(), upto)
    before = copy.deepcopy(net.state_dict())
    step(net)
    frozen = ("features.stem", "features.stage1", "features.stage2")
    changed = {k for k, v in net.state_dict().items() if not torch.equal(v, before[k])}
    assert changed == {k for k in before if not k.startswith(frozen)}
    assert all(name.startswith(("features.stage3", "head")) for name in trained(net))


def test_a_frozen_part_computes_in_training_what_it_computes_otherwise():
    net, x = freeze(resnet(), -1), torch.randn(4, 3, 8, 8)
    step(net)
    assert torch.equal(net.train()(x), net.eval()(x))


def test_unfreezing_by_depth_trains_the_last_parts_again():
    net = unfreeze(freeze(resnet(), 5), 2)
    assert {name.rsplit(".", 1)[0].split(".")[1] for name in trained(net)} == {"stage3", "classes"}
    before = copy.deepcopy(net.state_dict())
    step(net)
    changed = {
        k.split(".")[1] for k, v in net.state_dict().items() if not torch.equal(v, before[k])
    }
    assert changed == {"stage3", "classes"}
    assert len(trained(unfreeze(net))) == len(list(net.parameters()))
    assert not any(module._forward_pre_hooks for module in net.modules())


def test_a_frozen_network_can_be_copied_and_pickled():
    net = freeze(resnet(), 2)
    for made in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        before = made.features.stem.norm.running_mean.clone()
        step(made)
        assert torch.equal(made.features.stem.norm.running_mean, before)


def test_a_new_head_keeps_everything_below_it():
    net = resnet()
    before = copy.deepcopy(net.features.state_dict())
    replace_head(net, 9)
    assert net.eval()(torch.zeros(2, 3, 8, 8)).shape == (2, 9)
    assert all(torch.equal(v, before[k]) for k, v in net.features.state_dict().items())
    with pytest.raises(InvalidParameter, match="must end in a linear layer; ReLU has none"):
        replace_head(nn.ReLU(), 2)


def test_rates_fall_with_the_distance_from_the_scores():
    net = freeze(ConvNet(1, 3, widths=(4, 5, 6)), 1)
    found = {id(p): factor for p, factor in rate_scales(net, 0.5)}
    by_name = {k: found.get(id(p)) for k, p in net.named_parameters()}
    assert by_name["features.stage1.0.weight"] is None  # frozen
    assert by_name["features.stage2.0.weight"] == 0.25
    assert by_name["features.stage3.4.bias"] == 0.5
    assert by_name["head.classes.weight"] == 1.0


@pytest.mark.parametrize(
    "act, rule",
    [
        (lambda net: freeze(net, 6), "`upto` must be between -5 and 5.*; got 6"),
        (lambda net: freeze(net, "features.stage9"), "Did you mean `features.stage"),
        (lambda net: unfreeze(net, 6), "`depth` must be 0 to 5.*; got 6"),
    ],
)
def test_a_depth_the_network_does_not_have_is_named(act, rule):
    with pytest.raises(InvalidParameter, match=rule):
        act(resnet())


@pytest.mark.parametrize("change", [lambda m: freeze(m, 1), unfreeze, lambda m: replace_head(m, 3)])
def test_an_estimator_in_place_of_its_network_is_told(change):
    with pytest.raises(InvalidParameter, match="`module_` of a fitted estimator; got object"):
        change(object())


@pytest.mark.parametrize("classes", [0, 2.5, None])
def test_a_number_of_classes_that_cannot_be_is_told(classes):
    with pytest.raises(InvalidParameter, match=f"at least 1; got {classes}"):
        replace_head(nn.Sequential(nn.Linear(2, 3)), classes)
