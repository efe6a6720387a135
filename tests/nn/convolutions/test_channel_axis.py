"""Channels first and last."""

import numpy as np
import pytest
import torch
from torch import nn

from castalia.errors import ShapeMismatch
from castalia.nn import channels_first, channels_last


@pytest.mark.parametrize("shape", [(2, 3, 7), (2, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_there_and_back_is_exact_for_arrays_and_tensors(shape):
    array = np.random.default_rng(0).normal(size=shape)
    tensor = torch.from_numpy(array)
    assert np.array_equal(channels_first(channels_last(array)), array)
    assert torch.equal(channels_first(channels_last(tensor)), tensor)
    assert channels_last(array).shape == (shape[0], *shape[2:], shape[1])
    assert np.array_equal(channels_last(tensor).numpy(), channels_last(array))


def test_a_feature_vector_is_a_pixel_and_a_slice_is_a_channel():
    maps = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5)
    last = channels_last(maps)
    assert torch.equal(last[1, 2, 3], maps[1, :, 2, 3])
    assert torch.equal(last[..., 1], maps[:, 1])


def test_a_layer_of_torch_takes_images_with_channels_last_after_conversion():
    image = np.zeros((1, 192, 256, 3), np.float32)
    out = nn.Conv2d(3, 5, 3, padding=1)(torch.from_numpy(channels_first(image)))
    assert channels_last(out).shape == (1, 192, 256, 5)


def test_a_table_has_no_positions():
    with pytest.raises(ShapeMismatch, match=r"got \(3, 4\)"):
        channels_first(np.zeros((3, 4)))
