"""Sizes of convolutions: against torch, over a grid."""

from itertools import product

import pytest
import torch
from torch import nn

from castalia.errors import InvalidParameter
from castalia.nn import output_size, receptive_field, transposed_size

GRID = list(product(range(1, 12), (1, 2, 3, 5), (1, 2, 3), (0, 1, 2), (1, 2)))


def test_the_output_size_is_that_of_torch_over_a_grid():
    for n, f, s, p, d in GRID:
        if n + 2 * p < d * (f - 1) + 1:
            with pytest.raises(InvalidParameter):
                output_size(n, f, s, p, d)
            continue
        conv = nn.Conv1d(1, 1, f, s, p, d, device="meta")
        out = conv(torch.empty(1, 1, n, device="meta"))
        assert output_size(n, f, s, p, d) == out.shape[2], (n, f, s, p, d)


def test_the_size_of_a_pooling_is_that_of_torch():
    for n, f, s in product(range(3, 12), (2, 3), (1, 2, 3)):
        pool = nn.MaxPool2d(f, s)(torch.zeros(1, 1, n, n + 1))
        assert tuple(pool.shape[2:]) == (output_size(n, f, s), output_size(n + 1, f, s))


@pytest.mark.parametrize("stride", [2, 3])
def test_sizes_up_to_the_next_multiple_of_the_stride_give_one_output_size(stride):
    for f, p in product((2, 3, 4), (0, 1)):
        n = f + 4 * stride - 2 * p  # n + 2p - f is a multiple of the stride
        same = {output_size(m, f, stride, p) for m in range(n, n + stride)}
        assert same == {5}
        assert output_size(n - 1, f, stride, p) == 4
        assert output_size(n + stride, f, stride, p) == 6


def test_the_size_of_a_transposed_convolution_is_that_of_torch():
    for n, f, s, p, d in GRID:
        extra = s - 1
        if (n - 1) * s - 2 * p + d * (f - 1) + 1 + extra < 1:
            continue
        conv = nn.ConvTranspose1d(1, 1, f, s, p, extra, dilation=d, device="meta")
        if extra < max(s, d):
            out = conv(torch.empty(1, 1, n, device="meta"))
            assert transposed_size(n, f, s, p, d, extra) == out.shape[2]


def test_a_transposed_size_is_the_smallest_that_the_convolution_brings_back():
    for n, f, s, p in product(range(2, 6), (2, 3), (1, 2, 3), (0, 1)):
        back = transposed_size(n, f, s, p)
        if back >= 1 and back + 2 * p >= f:
            assert output_size(back, f, s, p) == n
            assert {output_size(back + more, f, s, p) for more in range(s)} == {n}


def test_receptive_fields_grow_with_strides_before_and_dilations():
    assert receptive_field([(3, 1, 1), (3, 1, 2), (3, 1, 4)]) == [3, 7, 15]
    assert receptive_field([(7, 2), (3, 2), (3,), (3,)]) == [7, 11, 19, 27]  # a ResNet's stem
    assert receptive_field([(3, 1)] * 10) == list(range(3, 23, 2))


@pytest.mark.parametrize("layers", [[(3,), (3, 2), (2, 2), (3, 1, 2)], [(5, 3), (3, 1, 3), (2,)]])
def test_the_formula_is_the_support_of_an_impulse_gradient(layers):
    torch.manual_seed(0)
    full = [(*layer, 1, 1)[:3] for layer in layers]
    stack = nn.Sequential(*(nn.Conv1d(1, 1, f, s, dilation=d) for f, s, d in full))
    x = torch.randn(1, 1, 100, requires_grad=True)
    out = stack(x)
    out[0, 0, out.shape[2] // 2].backward()
    seen = x.grad[0, 0].nonzero()
    assert int(seen.max() - seen.min()) + 1 == receptive_field(layers)[-1]


def test_a_window_that_does_not_fit_is_refused_with_the_padding_it_needs():
    with pytest.raises(InvalidParameter, match="of 4 positions; got a window of 7. Pad by 2"):
        output_size(4, 7)
    with pytest.raises(InvalidParameter, match="`stride` must be at least 1; got 0"):
        output_size(4, 2, 0)
