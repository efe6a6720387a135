"""Dense layers rewritten as convolutions."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import dense_to_conv


@pytest.mark.parametrize("spatial", [(6,), (3, 4), (2, 3, 2)])
def test_at_its_own_size_the_convolution_is_the_dense_layer(spatial):
    x = torch.randn(5, 2, *spatial, dtype=torch.float64)
    linear = nn.Linear(x[0].numel(), 7).double()
    conv = dense_to_conv(linear, spatial)
    assert_close(conv(x).flatten(1), linear(x.flatten(1)))
    assert conv.weight.dtype == torch.float64


def test_on_a_larger_map_it_answers_in_every_window():
    linear = nn.Linear(2 * 3 * 4, 5).double()
    conv = dense_to_conv(linear, (3, 4))
    x = torch.randn(1, 2, 6, 9, dtype=torch.float64)
    heat = conv(x)
    assert heat.shape == (1, 5, 4, 6)
    for i in range(4):
        for j in range(6):
            assert_close(heat[0, :, i, j], linear(x[0, :, i : i + 3, j : j + 4].flatten()))


def test_a_whole_head_slides_when_the_layers_after_become_one_by_one():
    first, second = nn.Linear(3 * 4 * 4, 8).double(), nn.Linear(8, 2, bias=False).double()
    dense = nn.Sequential(nn.Flatten(), first, nn.ReLU(), second)
    sliding = nn.Sequential(dense_to_conv(first, (4, 4)), nn.ReLU(), dense_to_conv(second, (1, 1)))
    x = torch.randn(2, 3, 6, 5, dtype=torch.float64)
    heat = sliding(x)
    assert heat.shape == (2, 2, 3, 2)
    assert_close(heat[:, :, 2, 1], dense(x[:, :, 2:6, 1:5]))


def test_one_by_one_is_a_dense_layer_at_each_pixel():
    linear, x = nn.Linear(6, 4).double(), torch.randn(2, 6, 3, 5, dtype=torch.float64)
    dense = linear(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    assert_close(dense_to_conv(linear, (1, 1))(x), dense)


def test_maps_that_do_not_fit_the_layer_are_refused():
    with pytest.raises(ShapeMismatch, match=r"times 49 positions of a map of \(7, 7\); got 100"):
        dense_to_conv(nn.Linear(100, 2), (7, 7))
    with pytest.raises(InvalidParameter, match=r"one to three positive sizes; got \(\)"):
        dense_to_conv(nn.Linear(100, 2), ())
