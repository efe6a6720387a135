"""Enumerated masks, and what their geometric mean is."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import all_masks, geometric_ensemble


def test_all_masks_are_different_and_every_unit_is_in_half_of_them():
    masks = all_masks(7)
    assert masks.shape == (128, 7)
    assert len({tuple(row) for row in masks.int().tolist()}) == 128
    assert masks.mean(dim=0).tolist() == [0.5] * 7


@settings(max_examples=30, deadline=None)
@given(
    inputs=st.integers(1, 8),
    classes=st.integers(2, 5),
    keep=st.floats(0.05, 1.0),
    seed=st.integers(0, 2**16),
)
def test_scaling_the_weights_equals_enumerating_every_mask(inputs, classes, keep, seed):
    source = torch.Generator().manual_seed(seed)
    weight = torch.randn(classes, inputs, dtype=torch.float64, generator=source)
    bias = torch.randn(classes, dtype=torch.float64, generator=source)
    x = 2 * torch.randn(3, inputs, dtype=torch.float64, generator=source)
    found = geometric_ensemble(weight, bias, x, keep=keep)
    assert_close(found, torch.softmax(keep * x @ weight.T + bias, dim=1), rtol=0, atol=1e-12)


def test_the_geometric_mean_is_the_root_of_the_product_renormalised():
    source = torch.Generator().manual_seed(0)
    weight = torch.randn(3, 10, dtype=torch.float64, generator=source) / 3
    bias = torch.randn(3, dtype=torch.float64, generator=source)
    x = torch.randn(1, 10, dtype=torch.float64, generator=source)
    members = torch.softmax((all_masks(10, like=x) * x) @ weight.T + bias, dim=1)  # (1024, 3)
    product = (members ** (1 / 1024)).prod(dim=0)
    found = geometric_ensemble(weight, bias, x)[0]
    assert_close(found, product / product.sum(), rtol=0, atol=1e-12)
    assert (found - members.mean(dim=0)).abs().max() > 1e-3  # the arithmetic mean is another


def test_masks_in_several_pieces_give_the_same():
    weight, bias, x = torch.ones(2, 13).double(), torch.zeros(2).double(), torch.ones(1, 13)
    weight[1] = -1
    found = geometric_ensemble(weight, bias, x.double())
    assert_close(found[0, 0], torch.sigmoid(torch.tensor(13.0)).double())


def test_errors_name_shapes_and_sizes():
    with pytest.raises(InvalidParameter, match=r"`units` must be between 0 and 20; got 21"):
        all_masks(21)
    with pytest.raises(ShapeMismatch, match=r"got \(2, 3\) and \(1, 4\)"):
        geometric_ensemble(torch.ones(2, 3), torch.ones(2), torch.ones(1, 4))
    with pytest.raises(InvalidParameter, match=r"geometric_ensemble: `keep`.*got 1.5"):
        geometric_ensemble(torch.ones(2, 3), torch.ones(2), torch.ones(1, 3), keep=1.5)
