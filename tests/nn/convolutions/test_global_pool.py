"""Global pooling."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import GlobalPool


@pytest.mark.parametrize("shape", [(7,), (5, 6), (9, 4), (3, 4, 2)])
def test_it_gives_a_number_a_channel_for_any_size(shape):
    x = torch.randn(2, 5, *shape)
    assert_close(GlobalPool("mean")(x), x.flatten(2).mean(dim=2))
    assert_close(GlobalPool("max")(x), x.flatten(2).amax(dim=2))
    assert GlobalPool()(x).shape == (2, 5)


def test_one_network_takes_images_of_several_sizes():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), GlobalPool("max"), nn.Linear(4, 2))
    for size in ((5, 5), (8, 13), (40, 3)):
        assert net(torch.zeros(3, 1, *size)).shape == (3, 2)
    # A pattern is found wherever it is, in an image of any size
    small, large = torch.zeros(1, 1, 9, 9), torch.zeros(1, 1, 20, 30)
    small[..., 3:6, 3:6], large[..., 10:13, 20:23] = 1, 1
    assert_close(net(small), net(large))


def test_an_unknown_pooling_and_a_table_are_refused():
    with pytest.raises(InvalidParameter, match="`mean` or `max`; got 'men'. Did you mean `mean`"):
        GlobalPool("men")
    with pytest.raises(ShapeMismatch, match=r"got \(3, 4\)"):
        GlobalPool()(torch.zeros(3, 4))
