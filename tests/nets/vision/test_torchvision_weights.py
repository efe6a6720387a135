"""Weights of torchvision and timm: their names, in files made here and in theirs."""

import pickle
import re

import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from castalia.errors import CheckpointMismatch, DamagedFile, InvalidData, InvalidParameter
from castalia.nets.vision import VGG, AlexNet, ConvNet, GoogLeNet, ResNet
from castalia.nets.vision.torchvision_weights import load_weights, names, read_weights, save_weights

# Names as those libraries write them, of a tensor whose shape tells it from the others.
THEIRS = {
    "resnet18": (
        lambda **k: ResNet(3, 7, width=4, stem="imagenet", **k),
        {
            "conv1.weight": "features.stem.conv.weight",
            "bn1.running_var": "features.stem.norm.running_var",
            "layer1.0.conv1.weight": "features.stage1.0.residual.conv1.weight",
            "layer2.0.downsample.0.weight": "features.stage2.0.shortcut.conv.weight",
            "layer2.0.downsample.1.bias": "features.stage2.0.shortcut.norm.bias",
            "layer4.1.bn2.weight": "features.stage4.1.residual.norm2.weight",
            "fc.bias": "head.classes.bias",
        },
    ),
    "resnet50": (
        lambda **k: ResNet(3, 7, depth=50, width=4, stem="imagenet", **k),
        {
            "layer1.0.conv3.weight": "features.stage1.0.residual.conv3.weight",
            "layer1.0.downsample.1.running_mean": "features.stage1.0.shortcut.norm.running_mean",
            "layer3.5.bn3.weight": "features.stage3.5.residual.norm3.weight",
        },
    ),
    "vgg11": (
        lambda **k: VGG(3, 7, depth=11, width=0.05, **k),
        {
            "features.0.weight": "features.conv1_1.weight",
            "features.3.bias": "features.conv2_1.bias",
            "features.18.weight": "features.conv5_2.weight",
            "classifier.0.weight": "head.dense6.weight",
            "classifier.3.bias": "head.dense7.bias",
            "classifier.6.weight": "head.classes.weight",
        },
    ),
    "vgg16_bn": (
        lambda **k: VGG(3, 7, depth=16, width=0.05, batch_norm=True, **k),
        {
            "features.1.running_mean": "features.norm1_1.running_mean",
            "features.40.weight": "features.conv5_3.weight",
            "features.41.bias": "features.norm5_3.bias",
        },
    ),
    "alexnet": (
        lambda **k: AlexNet(3, 7, width=0.05, towers=1, **k),
        {
            "features.0.weight": "features.conv1.weight",
            "features.3.weight": "features.conv2.weight",
            "features.6.weight": "features.conv3.weight",
            "features.8.weight": "features.conv4.weight",
            "features.10.bias": "features.conv5.bias",
            "classifier.1.weight": "head.dense6.weight",
            "classifier.4.weight": "head.dense7.weight",
            "classifier.6.weight": "head.classes.weight",
        },
    ),
    "googlenet": (
        lambda **k: GoogLeNet(3, 7, width=0.05, batch_norm=True, **k),
        {
            "conv1.conv.weight": "features.conv1.conv.weight",
            "conv3.bn.running_var": "features.conv3.norm.running_var",
            "inception3a.branch1.conv.weight": "features.inception3a.branch1.conv.weight",
            "inception4e.branch2.1.bn.weight": "features.inception4e.branch2.1.norm.weight",
            "inception5b.branch4.1.conv.weight": "features.inception5b.branch4.1.conv.weight",
            "fc.weight": "head.classes.weight",
        },
    ),
}


def made(name, seed, **settings):
    torch.manual_seed(seed)
    net = THEIRS[name][0](**settings).eval()
    with torch.no_grad():  # fresh networks have the same norms
        for key, value in net.state_dict().items():
            if "running_" in key:
                value.uniform_(0.5, 1.5)
    return net


def same(one, other):
    pairs = zip(one.state_dict().items(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for (_, a), b in pairs)


@pytest.mark.parametrize("name", THEIRS)
def test_the_names_are_those_that_torchvision_writes(name):
    table = {theirs: ours for ours, theirs in names(made(name, 0)).items()}
    assert {key: table.get(key) for key in THEIRS[name][1]} == THEIRS[name][1]
    assert len(table) == len(made(name, 0).state_dict())  # no two tensors share a name


@pytest.mark.parametrize("naming", ["castalia", "torchvision", "timm"])
@pytest.mark.parametrize("name", THEIRS)
def test_a_file_of_any_naming_is_recognised(tmp_path, name, naming):
    first, second = made(name, 0), made(name, 1)
    if naming == "timm" and name in ("alexnet", "googlenet"):
        with pytest.raises(InvalidParameter, match="`naming` of .* must be .*; got 'timm'"):
            names(first, naming)
        return
    path = save_weights(first, tmp_path / "model.safetensors", naming)
    assert not same(first, second)
    assert same(first, load_weights(second, path))
    assert same(first, load_weights(made(name, 1), tmp_path))  # the folder of a hub


def test_timm_writes_the_dense_layers_of_vgg_as_convolutions(tmp_path):
    net = made("vgg11", 0)
    tensors = read_weights(save_weights(net, tmp_path / "vgg.safetensors", "timm"))
    assert tensors["pre_logits.fc1.weight"].shape == (205, 26, 7, 7)
    assert tensors["pre_logits.fc2.weight"].shape == (205, 205, 1, 1)
    assert_close(tensors["pre_logits.fc1.weight"].flatten(1), net.head.dense6.weight.detach())
    assert "head.fc.bias" in tensors


def test_auxiliary_heads_counters_and_wrappers_are_no_obstacle(tmp_path):
    first, second = made("googlenet", 0), made("googlenet", 1)
    name = names(first)
    theirs = {name[k]: v for k, v in first.state_dict().items() if "num_batches" not in k}
    theirs |= {"aux1.fc1.weight": torch.zeros(2, 2), "aux2.conv.bn.bias": torch.zeros(3)}
    save_file({f"module.{k}": v for k, v in theirs.items()}, tmp_path / "g.safetensors")
    assert same(first, load_weights(second, tmp_path / "g.safetensors"))


def test_half_precision_becomes_the_precision_of_the_network(tmp_path):
    first, second = made("resnet18", 0), made("resnet18", 1)
    name = names(first)
    half = {name[k]: v.half() if v.is_floating_point() else v
            for k, v in first.state_dict().items()}  # fmt: skip
    load_weights(second, half)
    assert second.head.classes.weight.dtype == torch.float32
    assert_close(second.head.classes.weight, first.head.classes.weight, atol=1e-3, rtol=1e-3)


def test_a_head_for_other_classes_stays_as_it_is():
    first = made("resnet18", 0)
    torch.manual_seed(1)
    second = ResNet(3, 9, width=4, stem="imagenet")
    head = second.head.classes.weight.clone()
    load_weights(second, first.state_dict())
    assert torch.equal(second.head.classes.weight, head)
    assert torch.equal(second.features.stem.conv.weight, first.features.stem.conv.weight)
    with pytest.raises(
        CheckpointMismatch, match=r"head.classes.weight` must be \(9, 32\), got \(7"
    ):
        load_weights(second, first.state_dict(), head=True)
    third = load_weights(made("resnet18", 2), first.state_dict(), head=False)
    assert not torch.equal(third.head.classes.weight, first.head.classes.weight)


def test_what_does_not_fit_is_named_in_one_sentence_and_nothing_is_changed():
    net, deeper = made("resnet18", 0), ResNet(3, 7, depth=34, width=4, stem="imagenet")
    name, before = names(deeper), {k: v.clone() for k, v in net.state_dict().items()}
    with pytest.raises(
        CheckpointMismatch, match="of this ResNet; .*layer1.2.* is not in it; .*more"
    ):
        load_weights(net, {name[k]: v for k, v in deeper.state_dict().items()})
    grey = ResNet(1, 7, width=4, stem="imagenet")
    with pytest.raises(
        CheckpointMismatch, match=r"conv.weight` must be \(4, 1, 7, 7\), got \(4, 3"
    ):
        load_weights(grey, net.state_dict())
    lost = {k: v for k, v in net.state_dict().items() if k != "features.stem.norm.bias"}
    with pytest.raises(CheckpointMismatch, match="`features.stem.norm.bias` is missing"):
        load_weights(net, lost)
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())


@pytest.mark.parametrize("name", ["resnet.pth", "pytorch_model.bin", "renamed.safetensors"])
def test_pickles_are_refused_whatever_they_are_called(tmp_path, name):
    torch.save({"w": torch.zeros(2)}, tmp_path / name)
    said = re.escape("save_file(torch.load(") + f"'{name}', weights_only=True"
    with pytest.raises(InvalidData, match=f"'{name}' is a pickle.*{said}"):
        read_weights(tmp_path / name)


def test_old_pickles_missing_and_damaged_files_are_refused(tmp_path):
    (tmp_path / "old").write_bytes(pickle.dumps({"w": 1}))
    with pytest.raises(InvalidData, match="'old' is a pickle"):
        read_weights(tmp_path / "old")
    with pytest.raises(InvalidData, match="must be a safetensors file; '.*nowhere' is none"):
        read_weights(tmp_path / "nowhere")
    whole = save_weights(ConvNet(1, 2, widths=(4,)), tmp_path / "net.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(whole.read_bytes()[:-10])
    with pytest.raises(DamagedFile, match="cut.safetensors` is truncated"):
        read_weights(tmp_path / "cut.safetensors")


# ---- with those libraries, where they are installed ----

TORCHVISION = {
    "alexnet": lambda: AlexNet(3, 1000, towers=1),
    "vgg11": lambda: VGG(3, 1000, depth=11),
    "vgg16_bn": lambda: VGG(3, 1000, depth=16, batch_norm=True),
    "googlenet": lambda: GoogLeNet(3, 1000, batch_norm=True),
    "resnet18": lambda: ResNet(3, 1000),
    "resnet50": lambda: ResNet(3, 1000, depth=50),
    "resnet152": lambda: ResNet(3, 1000, depth=152),
}
TIMM = {
    "vgg13": lambda: VGG(3, 1000, depth=13),
    "vgg19_bn": lambda: VGG(3, 1000, depth=19, batch_norm=True),
    "resnet34": lambda: ResNet(3, 1000, depth=34),
    "resnet101": lambda: ResNet(3, 1000, depth=101),
}


def scores_agree(theirs, ours, path):
    with torch.no_grad():
        for key, value in theirs.state_dict().items():
            if "running_" in key:
                value.uniform_(0.5, 1.5)
    save_file(theirs.state_dict(), path)
    theirs, ours = theirs.double().eval(), load_weights(ours, path).double().eval()
    x = torch.randn(2, 3, 224, 224, dtype=torch.float64)
    assert_close(ours(x), theirs(x))


@pytest.mark.gpu
@pytest.mark.parametrize("name", TORCHVISION)
def test_the_scores_are_those_of_torchvision(tmp_path, name):
    models = pytest.importorskip("torchvision.models")
    settings = {"aux_logits": True, "init_weights": False} if name == "googlenet" else {}
    theirs = models.get_model(name, weights=None, **settings)
    scores_agree(theirs, TORCHVISION[name](), tmp_path / "model.safetensors")


@pytest.mark.gpu
@pytest.mark.parametrize("name", TIMM)
def test_the_scores_are_those_of_timm(tmp_path, name):
    timm = pytest.importorskip("timm")
    scores_agree(timm.create_model(name), TIMM[name](), tmp_path / "model.safetensors")
