"""The table of layers: sizes and counts against torch, receptive fields against gradients."""

import itertools

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import (
    GlobalPool,
    LocallyConnected1d,
    LocallyConnected2d,
    MultistepResidual,
    Residual,
    SeparableConv2d,
    influence,
    receptive_field,
    residual_block,
    summary,
)


class Branches(nn.Module):
    """Windows of 1, 3 and 5 and a pooling side by side, as in an inception block."""

    def __init__(self, inputs):
        super().__init__()
        self.branches = nn.ModuleList(
            [
                nn.Conv2d(inputs, 2, 1),
                nn.Conv2d(inputs, 2, 3, padding=1),
                nn.Sequential(nn.Conv2d(inputs, 2, 1), nn.Conv2d(2, 2, 5, padding=2)),
                nn.AvgPool2d(3, 1, padding=1),
            ]
        )

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], dim=1)


class Hourglass(nn.Module):
    """Down, up, and a skip from before to after, as in a U-Net."""

    def __init__(self, up):
        super().__init__()
        self.down = nn.Conv2d(1, 2, 3, padding=1)
        self.deep = nn.Conv2d(2, 2, 3, padding=1)
        self.up = up
        self.head = nn.Conv2d(4, 1, 3, padding=1)

    def forward(self, x):
        skip = self.down(x)
        low = nn.functional.avg_pool2d(skip, 2)
        return self.head(torch.cat([skip, self.up(self.deep(low))], dim=1))


class Attention(nn.Module):
    def forward(self, x):  # (B, C, T)
        return x @ torch.softmax(x.transpose(1, 2) @ x, dim=1)


class Cropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 5)

    def forward(self, x):
        return self.conv(x) + x[:, :, 2:-2, 1:-3]


PICTURES = {
    "stack": nn.Sequential(nn.Conv2d(1, 3, 3), nn.AvgPool2d(2), nn.Conv2d(3, 2, 3, stride=2)),
    "dilated": nn.Sequential(*(nn.Conv2d(1, 1, 3, padding=d, dilation=d) for d in (1, 2, 4))),
    "uneven": nn.Sequential(nn.Conv2d(1, 2, (3, 1), padding=(1, 0)), nn.Conv2d(2, 1, (1, 5))),
    "residual": nn.Sequential(residual_block(1, 3, stride=2, version=2), residual_block(3, 3)),
    "branches": nn.Sequential(Branches(1), nn.Conv2d(7, 1, 3, stride=2), Branches(1)),
    "separable": SeparableConv2d(1, 2, 5, padding="same", border="reflect"),
    "transposed": nn.Sequential(nn.Conv2d(1, 2, 3, stride=2), nn.ConvTranspose2d(2, 1, 3, 2)),
    "hourglass": Hourglass(nn.ConvTranspose2d(2, 2, 2, 2)),
    "nearest": Hourglass(nn.Upsample(scale_factor=2)),
    "bilinear": Hourglass(nn.Upsample(scale_factor=2, mode="bilinear")),
    "corners": Hourglass(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)),
    "local": nn.Sequential(LocallyConnected2d(1, 2, 23, 3, stride=2), nn.Conv2d(2, 1, 2)),
    "cropped": nn.Sequential(Cropped(), nn.AvgPool2d(3, 2)),
    "global": nn.Sequential(nn.Conv2d(1, 2, 3), GlobalPool("mean"), nn.Linear(2, 2)),
    "adaptive": nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d((3, 2))),
    "adaptive, then a window": nn.Sequential(
        nn.AdaptiveAvgPool2d(6), nn.Conv2d(1, 1, 3, padding=1)
    ),
    "dense": nn.Sequential(nn.AvgPool2d(5, 5), nn.Flatten(), nn.Linear(16, 2)),
    "flat and back": nn.Sequential(
        nn.Conv2d(1, 2, 2), nn.Flatten(2), nn.Unflatten(2, (22, 22)), nn.Conv2d(2, 1, 3)
    ),
}


def spans(mask):
    """Return the side lengths of the box around what is true."""
    found = [torch.where(mask.any(dim=1 - axis))[0] for axis in range(2)]
    return [int(at.max() - at.min()) + 1 for at in found]


def widest(net, size):
    """Return the largest support of a gradient, over outputs whose field is in the image."""
    net = net.double().eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.uniform_(0.5, 1.0)
    x = torch.rand(1, 1, size, size, dtype=torch.float64) + 0.1
    places = net(x).shape[2:]
    middle = [range(max(n // 2 - 3, 0), min(n // 2 + 3, n)) for n in places]  # six of each side
    at = list(itertools.product(*middle))
    found = [spans(influence(net, x, position) > 0) for position in at]
    return tuple(max(sides) for sides in zip(*found, strict=True))


@pytest.mark.parametrize("name", PICTURES)
def test_a_receptive_field_is_the_support_of_the_gradient(name):
    torch.manual_seed(0)
    size = 22 if name in ("hourglass", "nearest", "bilinear", "corners") else 23
    table = summary(PICTURES[name], (1, size, size))
    assert table.field == widest(PICTURES[name], size)


@pytest.mark.parametrize("name", PICTURES)
def test_sizes_counts_and_flops_are_those_of_a_real_pass(name):
    net = PICTURES[name].float().eval()
    size = 22 if name in ("hourglass", "nearest", "bilinear", "corners") else 23
    table = summary(net, (1, size, size))
    with FlopCounterMode(display=False) as counter:
        out = net(torch.zeros(1, 1, size, size))
    assert sorted(table.output) == sorted(out.shape[1:])
    assert table.flops == counter.get_total_flops()
    assert table.parameters == sum(p.numel() for p in net.parameters())


def test_the_field_of_a_deep_stack_may_be_wider_than_the_image():
    deep = nn.Sequential(*(nn.Conv1d(1, 1, 3, padding=2**i, dilation=2**i) for i in range(13)))
    table = summary(deep, (1, 50))
    assert [layer.field for layer in table.layers[1:]] == [(2 ** (i + 2) - 1,) for i in range(13)]


def test_attention_sees_every_position_and_a_dense_layer_only_its_own():
    dense = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    table = summary(dense, (9, 4), channels="last")
    assert table.layers[-1].output == (9, 2)
    assert table.layers[-1].field == (1,)
    assert summary(Attention(), (4, 9)).layers[-1].field == (9,)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert summary(encoder, (5, 8), channels="last").layers[-1].field == (5,)


def test_a_recurrent_layer_reports_its_weights_and_its_whole_sequence():
    table = summary(nn.LSTM(3, 4, batch_first=True), (7, 3), channels="last")
    row = table.layers[-1]
    assert (row.output, row.weights, row.biases) == ((7, 4), 4 * 4 * (3 + 4), 2 * 4 * 4)
    assert row.field == (7,)


def test_tokens_have_positions_and_no_channels():
    net = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10))
    table = summary(net, (6,), dtype=torch.long)
    assert [layer.output for layer in table.layers] == [(6,), (6, 4), (6, 10)]
    assert table.layers[-1].field == (1,)
    assert table.flops == 2 * 6 * 4 * 10


def test_an_operation_without_a_rule_makes_the_field_unknown_not_wrong():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.PixelShuffle(2), nn.Conv2d(1, 1, 3))
    fields = [layer.field for layer in summary(net, (1, 8, 8)).layers]
    assert fields == [(1, 1), (3, 3), None, None]
    assert "-" in str(summary(net, (1, 8, 8))).splitlines()[-3]


def test_shared_weights_count_once_and_unused_ones_are_found_elsewhere():
    shared = nn.Linear(3, 3)
    net = nn.Sequential(shared, nn.ReLU(), shared)
    net.spare = nn.ParameterList([nn.Parameter(torch.zeros(5))])
    net.forward = lambda x: shared(torch.relu(shared(x)))
    table = summary(net, (3,))
    assert [layer.weights for layer in table.layers] == [0, 9, 0, 5]
    assert table.parameters == 9 + 3 + 5
    assert table.flops == 2 * 2 * 9


def test_a_stack_with_weights_of_its_own_has_a_row_for_them():
    table = summary(MultistepResidual([nn.Linear(2, 2) for _ in range(3)]), (2,))
    assert table.layers[-1].kind == "MultistepResidual"
    assert table.layers[-1].weights == 2
    assert table.weights == 2 + 3 * 4


def test_the_network_is_left_as_it_was():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), Residual(nn.Dropout()))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    summary(net, (1, 8, 8))
    assert all(module.training for module in net.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_a_network_that_reads_numbers_is_run_on_zeros():
    class Reads(nn.Linear):
        def forward(self, x):
            return super().forward(x) * float(x.sum() + 1)

    assert summary(Reads(3, 2), (3,)).layers[-1].output == (2,)


def test_a_shape_that_the_network_does_not_take_is_named():
    with pytest.raises(ShapeMismatch, match=r"that Conv2d takes; got \(3, 8, 8\), and"):
        summary(nn.Conv2d(1, 2, 3), (3, 8, 8))


def test_local_connections_in_one_dimension_have_a_field_too():
    net = nn.Sequential(LocallyConnected1d(1, 2, 12, 3), nn.Conv1d(2, 1, 3))
    assert summary(net, (1, 12)).layers[-1].field == (5,)


def test_a_large_network_costs_no_memory():
    with torch.device("meta"):
        net = nn.Sequential(nn.Flatten(), nn.Linear(150_528, 150_528))
    assert summary(net, (3, 224, 224)).weights == 22_658_678_784


def test_fields_of_well_known_networks_are_the_published_ones():
    # 2019, Araujo, Norris, Sim, Computing receptive fields of convolutional neural networks
    vgg = []
    for convolutions in (2, 2, 3, 3, 3):
        vgg += [nn.Conv2d(1, 1, 3, padding=1) for _ in range(convolutions)] + [nn.MaxPool2d(2)]
    assert summary(nn.Sequential(*vgg), (1, 224, 224)).field == (212, 212)
    alexnet = [nn.Conv2d(1, 1, 11, 4), nn.MaxPool2d(3, 2), nn.Conv2d(1, 1, 5, padding=2)]
    alexnet += [nn.MaxPool2d(3, 2)] + [nn.Conv2d(1, 1, 3, padding=1) for _ in range(3)]
    assert summary(nn.Sequential(*alexnet, nn.MaxPool2d(3, 2)), (1, 224, 224)).field == (195, 195)


def test_the_field_of_a_deep_residual_network_is_that_of_its_longest_path():
    def bottleneck(stride):
        window = nn.Conv2d(1, 1, 3, stride, 1)
        skip = nn.Conv2d(1, 1, 1, stride) if stride > 1 else None
        layers = nn.Sequential(nn.Conv2d(1, 1, 1), window, nn.Conv2d(1, 1, 1))
        return Residual(layers, shortcut=skip)

    strides = [1] * 3 + [2, 1, 1, 1] + [2, 1, 1, 1, 1, 1] + [2, 1, 1]  # 50 layers
    stem = [nn.Conv2d(1, 1, 7, 2, 3), nn.MaxPool2d(3, 2, 1)]
    net = nn.Sequential(*stem, *map(bottleneck, strides))
    (*_, path) = receptive_field([(7, 2), (3, 2), *((3, stride) for stride in strides)])
    assert summary(net, (1, 224, 224)).field == (path, path)
    assert path > 224


def test_a_layer_that_is_not_there_gets_the_nearest_name():
    table = summary(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), (2,))
    with pytest.raises(InvalidParameter, match="must be `0` or `1`; got '2'"):
        table["2"]
