"""Pooling that remembers, and unpooling."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import Unpool2d


def image(*shape):
    return torch.rand(2, 3, *shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("size", [(8, 6), (7, 9)])
@pytest.mark.parametrize("kernel, stride, padding", [(2, None, 0), (3, 3, 1), (2, 3, 0), (3, 2, 1)])
def test_pooling_what_was_unpooled_gives_the_values_back(size, kernel, stride, padding):
    pair, x = Unpool2d(kernel, stride, padding), image(*size)
    y, positions = pair.pool(x)
    back = pair(y, positions)
    assert back.shape == x.shape
    assert torch.equal(pair.pool(back)[0], y)
    assert torch.equal(y, nn.MaxPool2d(kernel, stride, padding)(x))


@pytest.mark.parametrize("size", [(8, 6), (7, 9)])
def test_values_stand_where_the_maxima_were_and_zeros_elsewhere(size):
    pair, x = Unpool2d(2), image(*size)
    y, positions = pair.pool(x)
    back = pair(-y, positions)
    placed = back != 0
    assert torch.equal(back[placed], -x[placed])
    assert placed.sum() == y.numel()
    assert torch.equal(back, nn.MaxUnpool2d(2)(-y, positions.places, output_size=size))


def test_a_place_that_won_two_windows_is_given_the_larger_value():
    pair = Unpool2d(3, 1)
    x = torch.zeros(1, 1, 3, 4)
    x[0, 0, 1, 1] = 1.0
    _, positions = pair.pool(x)
    out = pair(torch.tensor([[[[-5.0, -2.0]]]]), positions)
    assert out[0, 0, 1, 1] == -2
    assert out.count_nonzero() == 1


@pytest.mark.parametrize("stride", [1, 2])
def test_gradients_go_back_to_the_values(stride):
    pair = Unpool2d(2, stride)
    y, positions = pair.pool(image(4, 4).double())
    y = torch.rand_like(y).requires_grad_()  # without ties
    assert torch.autograd.gradcheck(lambda y: pair(y, positions), (y,))


def test_values_of_another_shape_are_refused():
    pair = Unpool2d()
    _, positions = pair.pool(image(6, 6))
    with pytest.raises(ShapeMismatch, match=r"their positions, \(2, 3, 3, 3\); got \(2, 3, 6, 6\)"):
        pair(image(6, 6), positions)
    with pytest.raises(InvalidParameter, match="at least 1; got 0 and None"):
        Unpool2d(0)


def test_half_precision_keeps_its_format():
    pair = Unpool2d()
    y, positions = pair.pool(image(6, 6).bfloat16())
    assert_close(pair(y, positions).sum(), y.sum())
    assert pair(y, positions).dtype == torch.bfloat16
