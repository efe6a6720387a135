"""Numbers on convolutions that the course prints."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from castalia.nets.vision import AlexNet
from castalia.nn import (
    Residual,
    SeparableConv1d,
    compare_connectivity,
    convolution_matrix,
    convolve,
    dense_to_conv,
    output_size,
    pad,
    receptive_field,
    summary,
)


def test_the_table_of_the_stack_on_192_by_256_pixels():
    net = nn.Sequential(
        nn.Conv2d(1, 5, 3, stride=1, padding=1),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(5, 10, 5),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(10, 20, 2, stride=2),
        nn.MaxPool2d(5, 2),
        nn.Flatten(),
        nn.Linear(2800, 6),
    )
    table = summary(net, (1, 192, 256))
    shown = [layer.cells()[1:5] for layer in table.layers]
    assert shown == [
        ("input", "192x256x1", "0", "0"),
        ("conv 3x3, 1->5, s1, p1", "192x256x5", "45", "5"),
        ("max pool 2, s2", "96x128x5", "0", "0"),
        ("conv 5x5, 5->10, s1, p0", "92x124x10", "1,250", "10"),
        ("max pool 2, s2", "46x62x10", "0", "0"),
        ("conv 2x2, 10->20, s2, p0", "23x31x20", "800", "20"),
        ("max pool 5, s2", "10x14x20", "0", "0"),
        ("Flatten", "2800", "0", "0"),
        ("dense 2800->6", "6", "16,800", "6"),
    ]
    assert table.parameters == 18_936
    lines = [" ".join(line.split()) for line in str(table).splitlines()[2:]]
    assert all(" ".join(cells) in line for cells, line in zip(shown, lines, strict=False))
    layers = [(3, 1), (2, 2), (5, 1), (2, 2), (2, 2), (5, 2)]
    assert [layer.field for layer in table.layers[1:7]] == [(r, r) for r in receptive_field(layers)]
    assert table.flops == 2 * sum(
        positions * weights
        for positions, weights in ((192 * 256, 45), (92 * 124, 1250), (23 * 31, 800), (1, 16_800))
    )


@pytest.mark.parametrize("f", [3, 5, 7])
def test_half_a_kernel_of_padding_keeps_32_positions(f):
    assert output_size(32, f, padding=(f - 1) // 2) == 32


def test_a_convolution_has_k_times_ffd_plus_one_parameters():
    for k, f, d in ((5, 3, 1), (10, 5, 5), (20, 2, 10), (64, 7, 3)):
        conv = nn.Conv2d(d, k, f)
        table = summary(conv, (d, 9, 9))
        assert table.parameters == k * (f * f * d + 1)
        assert table.parameters == sum(p.numel() for p in conv.parameters())


def test_output_sizes_of_the_notes():
    assert output_size(3, 2) == 2
    assert output_size(4, 2, 2) == 2
    assert [output_size(n, 3, 2, 1) for n in (5, 6, 7, 8)] == [3, 3, 4, 4]
    assert [output_size(n, 3, 3) for n in (6, 7, 8)] == [2, 2, 2]


def test_a_picture_of_4_by_4_in_a_border_of_zeros():
    picture = torch.arange(1.0, 17.0).view(1, 1, 4, 4)
    padded = pad(picture, [(1, 1), (1, 1)])[0, 0]
    assert padded.tolist() == [
        [0, 0, 0, 0, 0, 0],
        [0, 1, 2, 3, 4, 0],
        [0, 5, 6, 7, 8, 0],
        [0, 9, 10, 11, 12, 0],
        [0, 13, 14, 15, 16, 0],
        [0, 0, 0, 0, 0, 0],
    ]


def test_two_weights_find_edges_where_a_dense_matrix_needs_eight_thousand_million():
    found = compare_connectivity((320, 280), (2, 1))
    assert (found["convolution"].weights, found["convolution"].operations) == (2, 267_960)
    assert (found["dense"].weights, found["dense"].operations) == (8_003_072_000, 16_006_144_000)
    assert found["sparse"].weights == 178_640


def test_a_picture_of_224_by_224_has_so_many_inputs():
    with torch.device("meta"):
        net = nn.Sequential(nn.Flatten(), nn.Linear(150_528, 150_528, bias=False))
    table = summary(net, (3, 224, 224))
    assert table.layers[1].output == (150_528,)
    assert table.weights == 22_658_678_784


def test_a_kernel_on_a_3_by_3_picture_as_a_matrix_and_its_transpose():
    w = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]], dtype=torch.float64)
    matrix = convolution_matrix(w, (3, 3)).to_dense()
    assert matrix.tolist() == [
        [1, 2, 0, 3, 4, 0, 0, 0, 0],
        [0, 1, 2, 0, 3, 4, 0, 0, 0],
        [0, 0, 0, 1, 2, 0, 3, 4, 0],
        [0, 0, 0, 0, 1, 2, 0, 3, 4],
    ]
    x = torch.arange(1.0, 10.0, dtype=torch.float64)
    assert (matrix @ x).tolist() == [37, 47, 67, 77]
    assert (matrix @ x).tolist() == F.conv2d(x.view(1, 1, 3, 3), w).flatten().tolist()
    z = torch.arange(1.0, 5.0, dtype=torch.float64)
    spread = (matrix.T @ z).view(3, 3)
    assert spread.tolist() == [[1, 4, 4], [6, 20, 16], [9, 24, 16]]
    z = z.view(1, 1, 2, 2)
    assert_close(F.conv_transpose2d(z, w)[0, 0], spread)
    assert_close(convolve(z, w.flip(2, 3), padding=1, flip=False)[0, 0], spread)


def test_dilations_1_2_4_see_3_7_15():
    stack = nn.Sequential(*(nn.Conv2d(1, 1, 3, padding=d, dilation=d) for d in (1, 2, 4)))
    fields = [layer.field for layer in summary(stack, (1, 32, 32)).layers]
    assert fields == [(1, 1), (3, 3), (7, 7), (15, 15)]


def test_a_5_tap_kernel_with_two_zeros_is_a_dilated_one_of_3():  # WE-52
    x, taps = torch.randn(12, dtype=torch.float64), torch.tensor([2.0, -1.0, 3.0]).double()
    five = torch.tensor([2.0, 0.0, -1.0, 0.0, 3.0], dtype=torch.float64)
    for flip in (True, False):
        dilated = convolve(x, taps, dilation=2, flip=flip)
        assert dilated.shape == (8,)
        assert_close(convolve(x, five, flip=flip), dilated)
    by_hand = [2 * x[i] - x[i + 2] + 3 * x[i + 4] for i in range(8)]
    assert_close(convolve(x, taps, dilation=2, flip=False), torch.stack(by_hand))


def test_weights_of_the_example_of_two_layers_of_9_by_9():  # WE-53
    layers = nn.Conv2d(1, 64, 9, bias=False), nn.Conv2d(1, 256, 9, bias=False)
    assert [summary(conv, (1, 20, 20)).parameters for conv in layers] == [5184, 20_736]
    # the notes print 60,916
    assert summary(nn.Linear(256, 101, bias=False), (256,)).parameters == 25_856


def test_the_size_of_alexnet_in_two_towers():  # WE-54
    with torch.device("meta"):
        table = summary(AlexNet(3, 1000, towers=2), (3, 224, 224))
    assert table.parameters == 60_965_224
    assert table.flops == 2 * 724_406_816
    units = [layer.output for layer in table.layers if layer.kind.startswith(("conv", "dense"))]
    assert sum(math.prod(shape) for shape in units) == 659_272


def test_the_first_dense_layer_of_vgg_as_a_convolution():
    conv = dense_to_conv(nn.Linear(7 * 7 * 512, 4096, device="meta"), (7, 7))
    assert conv.weight.shape == (4096, 512, 7, 7)
    assert (conv.weight.numel(), conv.bias.numel()) == (102_760_448, 4096)


def test_depthwise_and_pointwise_have_36_weights_instead_of_72():
    layer = SeparableConv1d(4, 6, 3, bias=False).double()
    assert sum(p.numel() for p in layer.parameters()) == 36
    assert layer.fused().weight.numel() == 72
    x = torch.randn(2, 4, 9, dtype=torch.float64)
    assert_close(layer(x), layer.fused()(x), atol=1e-12, rtol=0)


def test_the_gradient_of_a_scaled_residual_is_that_of_f_plus_lambda():
    x = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(Residual(nn.Tanh(), 0.7)(x), x)
    assert slope.item() == pytest.approx(1 - torch.tanh(x).item() ** 2 + 0.7)


def test_a_convolution_follows_a_shift_and_not_a_scaling_or_a_rotation():  # WE-65
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 1, 16, 16, generator=generator, dtype=torch.float64)
    kernel = torch.randn(1, 1, 3, 3, generator=generator, dtype=torch.float64)

    def conv(x):
        return convolve(x, kernel)

    taps = kernel.flip(2, 3).flatten()
    by_hand = x.unfold(2, 3, 1).unfold(3, 3, 1).flatten(4) @ taps
    assert_close(conv(x), by_hand)
    shifted = conv(x.roll((2, 3), (2, 3)))[..., 2:, 3:]
    assert torch.equal(shifted, conv(x)[..., :-2, :-3])

    def twice(x):
        return x.repeat_interleave(2, 2).repeat_interleave(2, 3)

    scaled = conv(twice(x))[..., :28, :28] - twice(conv(x))
    turned = conv(torch.rot90(x, 1, (2, 3))) - torch.rot90(conv(x), 1, (2, 3))
    assert scaled.abs().max() > 1
    assert turned.abs().max() > 1
