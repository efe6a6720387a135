"""Costs of shared, sparse and dense connections."""

import pytest
import torch

from castalia.errors import ShapeMismatch
from castalia.nn import LocallyConnected2d, compare_connectivity, convolution_matrix


@pytest.mark.parametrize("size, kernel", [((7, 6), (2, 1)), ((9, 9), (3, 3)), ((12,), (5,))])
def test_the_counts_are_those_of_the_matrices_themselves(size, kernel):
    found = compare_connectivity(size, kernel)
    matrix = convolution_matrix(torch.ones(1, 1, *kernel), size)
    assert matrix.values().numel() == found["sparse"].weights
    assert matrix.shape[0] * matrix.shape[1] == found["dense"].weights
    entries = (matrix.to_dense() != 0).sum(dim=1)  # a product each, and a sum between two
    assert int((2 * entries - 1).sum()) == found["sparse"].operations
    assert found["convolution"].operations == found["sparse"].operations


def test_a_locally_connected_layer_stores_as_much_as_the_sparse_matrix():
    layer = LocallyConnected2d(1, 1, (7, 6), (3, 2), bias=False)
    assert layer.weight.numel() == compare_connectivity((7, 6), (3, 2))["sparse"].weights


def test_sizes_and_kernels_have_as_many_axes():
    with pytest.raises(ShapeMismatch, match=r"got \(5, 5\) and \(2,\)"):
        compare_connectivity((5, 5), (2,))
