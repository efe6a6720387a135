"""Maxout units."""

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nn import Maxout


def unit(weights, biases):
    """Return one maxout unit with these pieces."""
    layer = Maxout(1, 1, pieces=len(weights)).double()
    with torch.no_grad():
        layer.affine.weight.copy_(torch.tensor(weights, dtype=torch.float64)[:, None])
        layer.affine.bias.copy_(torch.tensor(biases, dtype=torch.float64))
    return layer


X = torch.linspace(-2, 2, 161, dtype=torch.float64)[:, None]


@pytest.mark.parametrize(
    "slopes, same",
    [((1.0, 0.0), torch.relu), ((1.0, -1.0), torch.abs), ((1.0, 1.0), lambda x: x)],
)
def test_two_pieces_make_relu_the_absolute_value_or_a_line(slopes, same):
    assert_close(unit(slopes, (0.0, 0.0))(X), same(X))


def test_tangents_fit_a_convex_function():
    places = torch.linspace(-2, 2, 9, dtype=torch.float64)
    tangents = unit((2 * places).tolist(), (-places.square()).tolist())  # of x^2
    gap = X.square() - tangents(X)
    assert gap.min() >= -1e-12
    assert gap.max().item() == pytest.approx(0.0625)  # (spacing / 2)^2


def test_a_unit_is_convex_and_every_unit_has_its_own_pieces():
    layer = Maxout(3, 5, pieces=4)
    source = torch.Generator().manual_seed(0)
    a, b = (torch.randn(50, 3, generator=source) for _ in range(2))
    assert (layer((a + b) / 2) <= (layer(a) + layer(b)) / 2 + 1e-6).all()
    by_hand = layer.affine(a).reshape(50, 5, 4).max(dim=2).values
    assert_close(layer(a), by_hand)
    assert layer(a[:, None, :]).shape == (50, 1, 5)


def test_the_number_of_pieces_is_checked():
    with pytest.raises(InvalidParameter, match="`pieces` must be at least 1; got 0"):
        Maxout(2, 2, pieces=0)
