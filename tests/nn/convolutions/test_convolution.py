"""Convolution and cross-correlation: against NumPy, SciPy and torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import ndimage, signal
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import convolve, pad


def draw(*shape):
    return torch.from_numpy(np.random.default_rng(sum(shape)).normal(size=shape))


@pytest.mark.parametrize("n, f", [(9, 3), (9, 4), (6, 6), (5, 1)])
@pytest.mark.parametrize("padding", ["valid", "same", "full"])
def test_discrete_convolution_is_that_of_numpy(n, f, padding):
    x, kernel = draw(n), draw(f)
    expected = np.convolve(x.numpy(), kernel.numpy(), padding)
    assert_close(convolve(x, kernel, padding=padding), torch.from_numpy(expected))


def test_convolution_commutes_and_is_associative_and_correlation_is_neither():
    a, b, c = draw(7), draw(4), draw(3)

    def full(x, y, flip=True):
        return convolve(x, y, padding="full", flip=flip)

    assert_close(full(a, b), full(b, a))
    assert_close(full(full(a, b), c), full(a, full(b, c)))
    assert not torch.allclose(full(a, b, False), full(b, a, False))
    assert_close(full(a, b, False), full(b, a, False).flip(0))


@pytest.mark.parametrize("shape", [(3, 3), (2, 3), (1, 4)])
@pytest.mark.parametrize("padding", ["valid", "same", "full"])
def test_two_dimensional_convolution_is_that_of_scipy(shape, padding):
    x, kernel = draw(8, 7), draw(*shape)
    expected = signal.convolve2d(x.numpy(), kernel.numpy(), padding)
    assert_close(convolve(x, kernel, padding=padding), torch.from_numpy(expected))


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize("padding", [0, 2, "same"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_without_flipping_it_is_torchs_layer_and_flipped_the_layer_of_the_flipped_kernel(
    padding, dilation
):
    x, kernel = draw(2, 3, 9, 8), draw(4, 3, 3, 2)
    given = {"padding": padding, "dilation": dilation}
    correlation = F.conv2d(x, kernel, **given)
    assert_close(convolve(x, kernel, flip=False, **given), correlation)
    flipped = kernel.flip(2, 3)
    if padding != "same":  # an even kernel has no middle, and its mirror the other one
        assert_close(convolve(x, flipped, **given), correlation)
    mirrored = convolve(x.flip(2, 3), kernel, **given).flip(2, 3)
    assert_close(convolve(x, kernel, flip=False, **given), mirrored)


def test_cross_correlation_is_its_sum():
    x, kernel = draw(5, 6), draw(2, 3)
    sums = [
        [sum(kernel[a, b] * x[i + a, j + b] for a in range(2) for b in range(3)) for j in range(4)]
        for i in range(4)
    ]
    assert_close(convolve(x, kernel, flip=False), torch.tensor(sums, dtype=torch.float64))


def test_convolution_is_its_sum_with_the_kernel_running_backwards():
    x, kernel = draw(5, 6), draw(2, 3)
    sums = [
        [
            sum(kernel[a, b] * x[i - a, j - b] for a in range(2) for b in range(3))
            for j in range(2, 6)
        ]
        for i in range(1, 5)
    ]
    assert_close(convolve(x, kernel), torch.tensor(sums, dtype=torch.float64))


def test_the_convolution_of_two_gaussians_has_their_summed_variance():
    step = 0.01
    t = torch.arange(-20, 20 + step / 2, step, dtype=torch.float64)

    def gaussian(t, variance):
        return torch.exp(-(t**2) / (2 * variance)) / (2 * torch.pi * variance) ** 0.5

    # The integral over a of x(a) w(t - a), as a sum
    found = convolve(gaussian(t, 1.5), gaussian(t, 2.5), padding="same") * step
    assert_close(found, gaussian(t, 4.0), atol=1e-12, rtol=0)


def test_a_kernel_that_is_a_density_averages_and_another_need_not():
    x = draw(30)
    mean = convolve(x, torch.full((5,), 0.2, dtype=torch.float64))
    assert_close(mean, x.unfold(0, 5, 1).mean(dim=1))
    differences = convolve(x, torch.tensor([1.0, -1.0], dtype=torch.float64))
    assert_close(differences, x.diff())


def test_a_layer_of_several_channels_sums_over_taps_and_channels_in_one_dimension():
    conv = nn.Conv1d(3, 4, 5).double()
    x = draw(2, 3, 11)
    by_hand = torch.stack(
        [
            torch.stack(
                [(conv.weight[k] * x[:, :, r : r + 5]).sum(dim=(1, 2)) for r in range(7)], 1
            )
            for k in range(4)
        ],
        dim=1,
    )
    assert_close(convolve(x, conv.weight, flip=False), by_hand)
    assert_close(conv(x), by_hand + conv.bias[:, None])


def test_each_filter_of_a_layer_spans_all_channels_and_gives_one_map():
    conv, x = nn.Conv2d(3, 4, (3, 2), bias=False).double(), draw(2, 3, 6, 7)
    maps = [
        sum(convolve(x[0, c], kernel[c], flip=False) for c in range(3)) for kernel in conv.weight
    ]
    assert conv(x).shape == (2, 4, 4, 6)
    assert_close(conv(x)[0], torch.stack(maps))
    assert_close(convolve(x, conv.weight, flip=False), conv(x))


@pytest.mark.parametrize("stride", [2, 3])
def test_a_stride_keeps_every_so_manieth_position(stride):
    x, kernel = draw(1, 2, 11, 10), draw(3, 2, 3, 3)
    dense = convolve(x, kernel, padding=1)
    assert_close(convolve(x, kernel, padding=1, stride=stride), dense[..., ::stride, ::stride])


def test_a_dilated_kernel_is_one_with_zeros_between_its_taps():
    x, kernel = draw(1, 1, 20), draw(1, 1, 3)
    stuffed = torch.zeros(1, 1, 5, dtype=torch.float64)
    stuffed[..., ::2] = kernel
    assert_close(convolve(x, kernel, dilation=2), convolve(x, stuffed))
    assert convolve(x, kernel, dilation=2).shape == (1, 1, 16)


@pytest.mark.parametrize("f", [1, 2, 3, 6])
def test_valid_padding_leaves_n_minus_f_plus_one_positions(f):
    assert convolve(draw(9), draw(f)).shape == (10 - f,)
    assert nn.Conv1d(1, 1, f, padding="valid")(torch.zeros(1, 1, 9)).shape[2] == 10 - f


@pytest.mark.parametrize("f", [1, 3, 5, 7])
def test_same_padding_of_half_the_kernel_keeps_the_size(f):
    x = draw(1, 1, 9, 32)
    assert convolve(x, draw(1, 1, f, f), padding="same").shape == x.shape
    named = convolve(x, draw(1, 1, f, f), padding="same")
    assert_close(named, convolve(x, draw(1, 1, f, f), padding=(f - 1) // 2))


@pytest.mark.parametrize(
    "border, mode",
    [("zeros", "constant"), ("replicate", "nearest"), ("reflect", "mirror"), ("circular", "wrap")],
)
def test_borders_are_those_of_scipy_and_of_torchs_layers(border, mode):
    x, kernel = draw(1, 1, 7, 8), draw(1, 1, 3, 5)
    found = convolve(x, kernel, padding="same", border=border)
    expected = ndimage.convolve(x[0, 0].numpy(), kernel[0, 0].numpy(), mode=mode)
    assert_close(found[0, 0], torch.from_numpy(expected))
    conv = nn.Conv2d(1, 1, (3, 5), padding="same", padding_mode=border, bias=False).double()
    correlation = convolve(x, conv.weight, padding="same", border=border, flip=False)
    assert_close(correlation, conv(x))


def test_replication_repeats_the_outer_rows_and_columns():
    x = draw(1, 2, 3, 4)
    found = pad(x, [(1, 2), (3, 1)], "replicate")
    assert_close(found, F.pad(x, (3, 1, 1, 2), mode="replicate"))
    assert_close(found[..., 0, 3:-1], x[..., 0, :])
    assert_close(found[..., -1, 3:-1], x[..., -1, :])
    assert_close(found[..., 1:-2, 0], x[..., :, 0])


def test_a_number_as_a_border_is_what_the_border_holds():
    found = pad(torch.ones(1, 1, 2), [(1, 2)], 7.5)
    assert found.tolist() == [[[7.5, 1, 1, 7.5, 7.5]]]


def test_one_kernel_at_all_positions_has_the_sum_of_their_gradients():
    x, kernel = draw(1, 1, 8), draw(1, 1, 3).requires_grad_()
    upstream = draw(1, 1, 6)
    convolve(x, kernel, flip=False).backward(upstream)
    windows = x[0, 0].unfold(0, 3, 1)  # (6, 3)
    assert_close(kernel.grad[0, 0], (upstream[0, 0, :, None] * windows).sum(dim=0))
    # A copy of the kernel at every position, each with its own gradient
    copies = kernel.detach()[0, 0].expand(6, 3).clone().requires_grad_()
    ((copies * windows).sum(dim=1) * upstream[0, 0]).sum().backward()
    assert_close(kernel.grad[0, 0], copies.grad.sum(dim=0))


def test_mistakes_are_named():
    with pytest.raises(InvalidParameter, match="`reflect` or `circular`; got 'mirrored'"):
        convolve(draw(4), draw(2), padding=1, border="mirrored")
    with pytest.raises(InvalidParameter, match="got 'vallid'. Did you mean `valid`"):
        convolve(draw(4), draw(2), padding="vallid")
    with pytest.raises(ShapeMismatch, match=r"got \(1, 1, 4\) and \(2,\)"):
        convolve(draw(1, 1, 4), draw(2))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_it_works_along_one_to_three_axes_in_single_precision(axes):
    x, kernel = draw(2, 3, *[6] * axes).float(), draw(4, 3, *[3] * axes).float()
    layer = (F.conv1d, F.conv2d, F.conv3d)[axes - 1]
    assert_close(convolve(x, kernel, flip=False), layer(x, kernel))
