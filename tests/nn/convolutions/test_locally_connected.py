"""Locally connected layers."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import LocallyConnected1d, LocallyConnected2d

CASES = [
    (LocallyConnected1d(2, 3, 9, 4, stride=2, padding=1), nn.Conv1d(2, 3, 4, 2, 1)),
    (LocallyConnected1d(2, 3, 9, 4, bias=False), nn.Conv1d(2, 3, 4, bias=False)),
    (LocallyConnected2d(2, 3, 7, 3, padding=1), nn.Conv2d(2, 3, 3, padding=1)),
    (
        LocallyConnected2d(2, 3, (7, 8), (3, 2), stride=(2, 1), padding=(0, 1)),
        nn.Conv2d(2, 3, (3, 2), (2, 1), (0, 1)),
    ),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_with_one_kernel_everywhere_it_is_the_convolution(number):
    local, conv = (layer.double() for layer in CASES[number])
    x = torch.randn(5, 2, *local.size, dtype=torch.float64)
    assert not torch.allclose(local(x), conv(x))
    local.tie(conv)
    assert_close(local(x), conv(x))


@pytest.mark.parametrize("number", range(len(CASES)))
def test_it_has_a_kernel_for_every_position(number):
    local, conv = CASES[number]
    places = conv(torch.zeros(1, 2, *local.size, dtype=conv.weight.dtype))[0, 0].numel()
    count = sum(p.numel() for p in conv.parameters())
    assert sum(p.numel() for p in local.parameters()) == places * count


def test_every_output_uses_its_own_weights_on_its_own_window():
    torch.manual_seed(0)
    local = LocallyConnected2d(2, 3, 5, 3, stride=2)
    x = torch.randn(1, 2, 5, 5)
    for i in range(2):
        for j in range(2):
            window = x[0, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].flatten()
            expected = local.weight[2 * i + j] @ window + local.bias[:, 2 * i + j]
            assert_close(local(x)[0, :, i, j], expected)


def test_the_same_pattern_at_two_places_gives_two_answers():
    torch.manual_seed(0)
    local, conv = LocallyConnected1d(1, 1, 8, 3), nn.Conv1d(1, 1, 3)
    x = torch.tensor([[[1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0, 0.0]]])
    assert_close(conv(x)[..., 0], conv(x)[..., 4])
    assert not torch.allclose(local(x)[..., 0], local(x)[..., 4])


def test_weights_start_as_those_of_torchs_convolution():
    torch.manual_seed(0)
    local = LocallyConnected2d(4, 8, 20, 3)
    assert local.weight.abs().max() <= 1 / 6  # 1 / sqrt(36)
    assert local.weight.std().item() == pytest.approx(1 / 6 / 3**0.5, rel=0.01)


def test_another_size_and_another_convolution_are_refused():
    with pytest.raises(ShapeMismatch, match=r"must be \(B, 1, 8, 6\).*got \(2, 1, 6, 8\)"):
        LocallyConnected2d(1, 2, (8, 6), 3)(torch.zeros(2, 1, 6, 8))
    with pytest.raises(ShapeMismatch, match="2 filters of 9 taps and a bias; got Conv2d"):
        LocallyConnected2d(1, 2, 8, 3).tie(nn.Conv2d(1, 2, 5))
    with pytest.raises(InvalidParameter, match="one number or two"):
        LocallyConnected2d(1, 2, (8, 6, 4), 3)
