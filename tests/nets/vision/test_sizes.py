"""Networks that see: as many weights as in the papers, scores of the right shape, clear errors."""

import pytest
import torch

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nets.vision import VGG, AlexNet, ConvNet, ConvNet1d, GoogLeNet, LeNet, ResNet


def weights(make):
    with torch.device("meta"):  # counted, not allocated
        return sum(p.numel() for p in make().parameters())


PUBLISHED = {
    "AlexNet in two towers": (lambda: AlexNet(3, 1000), 60_965_224),
    "AlexNet in one tower": (lambda: AlexNet(3, 1000, towers=1), 61_100_840),
    "VGG-11": (lambda: VGG(3, 1000, depth=11), 132_863_336),
    "VGG-13": (lambda: VGG(3, 1000, depth=13), 133_047_848),
    "VGG-16": (lambda: VGG(3, 1000), 138_357_544),
    "VGG-16 with batch norm": (lambda: VGG(3, 1000, batch_norm=True), 138_365_992),
    "VGG-19": (lambda: VGG(3, 1000, depth=19), 143_667_240),
    "GoogLeNet of the paper": (lambda: GoogLeNet(3, 1000), 6_998_552),
    "GoogLeNet with batch norm": (lambda: GoogLeNet(3, 1000, batch_norm=True), 6_624_904),
    "ResNet-18": (lambda: ResNet(3, 1000), 11_689_512),
    "ResNet-34": (lambda: ResNet(3, 1000, depth=34), 21_797_672),
    "ResNet-50": (lambda: ResNet(3, 1000, depth=50), 25_557_032),
    "ResNet-101": (lambda: ResNet(3, 1000, depth=101), 44_549_160),
    "ResNet-152": (lambda: ResNet(3, 1000, depth=152), 60_192_808),
    "ResNet-200": (lambda: ResNet(3, 1000, depth=200), 64_673_832),
    "LeNet-5": (lambda: LeNet(1, 10), 61_706),
    "ConvNet under 100k": (lambda: ConvNet(1, 10, widths=(32, 48, 56)), 97_594),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_number_of_weights_is_the_published_one(name):
    make, count = PUBLISHED[name]
    assert weights(make) == count


@pytest.mark.parametrize("depth", [20, 32, 44, 56, 110])
def test_residual_networks_for_small_images_have_the_weights_of_the_formula(depth):
    n = (depth - 2) // 6
    convs = 27 * 16  # the stem, on three channels
    for width in (16, 32, 64):
        first = 9 * width * width if width == 16 else 9 * (width // 2) * width
        convs += first + (2 * n - 1) * 9 * width * width
    norms = 2 * 16 + sum(2 * n * 2 * width for width in (16, 32, 64))
    assert weights(lambda: ResNet(3, 10, depth=depth)) == convs + norms + 65 * 10


def test_a_small_convolutional_network_has_the_weights_of_the_formula():
    convs = (9 * 2 * 4) + (9 * 4 * 4) + (9 * 4 * 8) + (9 * 8 * 8)
    assert weights(lambda: ConvNet(2, 3, widths=(4, 8))) == convs + 2 * (8 + 16) + 9 * 3


def test_a_recogniser_of_digits_with_large_filters_has_the_weights_as_computed():
    net = lambda: ConvNet(  # noqa: E731
        1, 10, widths=(64, 256), convs=1, kernel=9, batch_norm=False, hidden=(128,), size=(28, 28)
    )
    by_hand = (81 + 1) * 64 + (81 * 64 + 1) * 256 + (256 * 7 * 7 + 1) * 128 + 129 * 10
    assert weights(net) == by_hand


def test_strides_halve_maps_as_pools_do_with_the_same_weights_and_keep_odd_last_places():
    pooled, strided = (ConvNet(1, 5, widths=(4,) * 4, pooling=how) for how in ("max", "stride"))
    assert [w.shape for w in pooled.parameters()] == [w.shape for w in strided.parameters()]
    maps = [net.features(torch.zeros(1, 1, 28, 28)).shape[2:] for net in (pooled, strided)]
    assert maps == [(3, 3), (4, 4)]
    with pytest.raises(InvalidParameter, match="`pooling` must be 'max' or 'stride'; got 'mean'"):
        ConvNet(1, 5, pooling="mean")


NETS = {
    "ConvNet": (lambda size: ConvNet(3, 5, widths=(4, 8), size=size), 8),
    "ConvNet, dense": (lambda size: ConvNet(3, 5, widths=(4, 8), hidden=(6,), size=size), 8),
    "ConvNet, strides": (lambda size: ConvNet(3, 5, pooling="stride", size=size), 8),
    "ConvNet, strides, dense": (
        lambda s: ConvNet(3, 5, widths=(4, 8, 8), pooling="stride", hidden=(6,), size=s),
        8,
    ),
    "LeNet": (lambda size: LeNet(3, 5, size=size), 12),
    "AlexNet": (lambda size: AlexNet(3, 5, width=0.05, size=size), 63),
    "AlexNet, one tower": (lambda size: AlexNet(3, 5, width=0.05, towers=1, size=size), 63),
    "VGG": (lambda size: VGG(3, 5, depth=11, width=0.05, size=size), 32),
    "GoogLeNet": (lambda size: GoogLeNet(3, 5, width=0.05, size=size), 31),
    "GoogLeNet, normed": (lambda s: GoogLeNet(3, 5, width=0.05, batch_norm=True, size=s), 15),
    "ResNet-8": (lambda size: ResNet(3, 5, depth=8, width=4, size=size), 1),
    "ResNet-18, large stem": (lambda s: ResNet(3, 5, width=4, stem="imagenet", size=s), 1),
    "ResNet-50 v2": (lambda size: ResNet(3, 5, depth=50, width=2, variant="v2", size=size), 1),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("more", [(0, 0), (5, 2)])
def test_scores_have_one_column_a_class_and_every_weight_gets_a_gradient(name, more):
    make, least = NETS[name]
    size = (least + more[0] + 1, least + more[1] + 1)
    torch.manual_seed(0)
    net = make(size)
    out = net(torch.randn(3, 3, *size))
    assert out.shape == (3, 5)
    out.square().sum().backward()
    assert [k for k, p in net.named_parameters() if p.grad is None] == []


@pytest.mark.parametrize("name", NETS)
def test_channels_last_and_double_precision_give_the_same_scores(name):
    make, least = NETS[name]
    net = make((least + 3, least + 3)).double().eval()
    x = torch.randn(2, 3, least + 3, least + 3, dtype=torch.float64)
    torch.testing.assert_close(net(x.to(memory_format=torch.channels_last)), net(x))


@pytest.mark.parametrize("name", [name for name, (_, least) in NETS.items() if least > 8])
def test_images_smaller_than_the_strides_are_refused_when_the_network_is_built(name):
    make, least = NETS[name]
    rule = f"at least {least} pixels high and wide.*; got {least - 1} x {least + 9}"
    with pytest.raises(ShapeMismatch, match=rule):
        make((least - 1, least + 9))
    with pytest.raises(ShapeMismatch, match=f"at least {least} pixels"):
        make((least, least))(torch.zeros(1, 3, least - 1, least))
    assert make((least, least)).eval()(torch.zeros(1, 3, least, least)).shape == (1, 5)


def test_images_of_other_channels_are_refused_in_one_sentence():
    with pytest.raises(ShapeMismatch, match=r"ConvNet: x must be \(B, 3, H, W\); got \(2, 8, 8, 3"):
        ConvNet(3, 2)(torch.zeros(2, 8, 8, 3))


def test_signals_too_short_or_of_other_channels_are_refused():
    with pytest.raises(ShapeMismatch, match="signals must be at least 4 steps long.*; got 3"):
        ConvNet1d(2, 2)(torch.zeros(1, 2, 3))
    with pytest.raises(ShapeMismatch, match=r"x must be \(B, 2, T\); got \(1, 3, 9\)"):
        ConvNet1d(2, 2)(torch.zeros(1, 3, 9))


@pytest.mark.parametrize(
    "make, rule",
    [
        (lambda: ConvNet(1, 2, widths=()), "`widths` must name one stage or more"),
        (lambda: ConvNet(1, 2, kernel=4), "`kernel` must be odd.*; got 4"),
        (lambda: ConvNet(1, 2, hidden=(8,)), "`size` must be given with `hidden`"),
        (lambda: LeNet(1, 2, pooling="maxx"), "`pooling` must be .*Did you mean `max`"),
        (lambda: AlexNet(1, 2, towers=3), "`towers` must be 1 or 2; got 3"),
        (lambda: VGG(1, 2, depth=12), "`depth` must be .*; got 12"),
        (lambda: ResNet(1, 2, depth=21), r"6n \+ 2.*; got 21"),
        (lambda: ResNet(1, 2, variant="v3"), "`variant` must be 'v1' or 'v2'"),
        (lambda: ResNet(1, 2, stem="tiny"), "`stem` must be"),
    ],
)
def test_a_wrong_argument_is_named_with_its_rule(make, rule):
    with pytest.raises(InvalidParameter, match=rule):
        make()


def test_the_paper_connects_the_maps_of_lenet_by_its_table():
    net = LeNet(1, 10, pooling="trainable", activation="tanh", partial=True)
    layers = [*net.features.children(), *list(net.head.children())[:-1]]
    free = sum(p.numel() for layer in layers for p in layer.parameters())
    mask = net.features.c3.mask.expand_as(net.features.c3.weight)
    assert free - int((mask == 0).sum()) == 60_000  # the paper's count of trainable weights
    maps = torch.zeros(1, 6, 14, 14)
    maps[:, 3] = 1.0  # of the maps of S2, C3's first sees 0, 1 and 2
    with torch.no_grad():
        net.features.c3.bias.zero_()
    assert net.features.c3(maps)[0, 0].abs().max() == 0
    assert net.features.c3(maps)[0, 1].abs().max() > 0


def test_two_towers_do_not_see_each_other_before_they_meet():
    net = AlexNet(3, 5, width=0.1, size=(64, 64)).eval()
    assert [net.features.get_submodule(f"conv{i}").groups for i in range(1, 6)] == [1, 2, 1, 2, 2]
    assert [AlexNet(3, 5, width=0.1, towers=1).features.conv2.groups] == [1]


def test_the_last_code_is_what_the_scores_are_read_from():
    net, x = VGG(3, 5, depth=11, width=0.1, size=(32, 32)).eval(), torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(net.head.classes(net.encode(x)), net(x))


def test_the_scheme_of_the_start_is_chosen_by_name_and_the_seed_is_torchs():
    first, second = (torch.manual_seed(0) and ConvNet(1, 2, widths=(4,)) for _ in range(2))
    assert torch.equal(first.features.stage1[0].weight, second.features.stage1[0].weight)
    net = ConvNet(1, 2, widths=(64,), convs=2, initialisation="orthogonal")
    rows = net.features.stage1[3].weight.flatten(1)
    torch.testing.assert_close(rows @ rows.T, torch.eye(64), atol=1e-5, rtol=0)
