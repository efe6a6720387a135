"""Convolution as a matrix, and its transpose."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from castalia.errors import ShapeMismatch
from castalia.nn import convolution_matrix, convolve

SETTINGS = [(1, 0, 1), (2, 0, 1), (1, 1, 1), (2, 1, 1), (1, 2, 2), (3, 2, 2)]


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("stride, padding, dilation", SETTINGS)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_matrix_computes_the_convolution(axes, stride, padding, dilation):
    size, layer = (7, 6, 5)[:axes], (F.conv1d, F.conv2d, F.conv3d)[axes - 1]
    weight, x = draw(2, 3, *(3, 2, 3)[:axes]), draw(3, *size)
    matrix = convolution_matrix(weight, size, stride=stride, padding=padding, dilation=dilation)
    expected = layer(x, weight, stride=stride, padding=padding, dilation=dilation)
    assert matrix.is_sparse
    assert_close((matrix @ x.flatten()).view_as(expected), expected)


@pytest.mark.parametrize("stride, padding, dilation", SETTINGS)
def test_its_transpose_is_the_transposed_convolution(stride, padding, dilation):
    size, weight = (7, 7), draw(2, 3, 3, 3)
    settings = {"stride": stride, "padding": padding, "dilation": dilation}
    matrix = convolution_matrix(weight, size, **settings)
    z = F.conv2d(draw(3, *size), weight, **settings)
    span = dilation * 2 + 1
    extra = [(n + 2 * padding - span) % stride for n in size]
    expected = F.conv_transpose2d(z, weight, output_padding=extra, **settings)
    assert_close((matrix.T @ z.flatten()).view_as(expected), expected)


def test_the_transpose_is_the_adjoint_and_not_the_inverse():
    weight, x, z = draw(1, 1, 2, 2), draw(9), draw(4)
    matrix = convolution_matrix(weight, (3, 3))
    assert_close((matrix @ x) @ z, x @ (matrix.T @ z))
    back = matrix.T.to_dense() @ matrix.to_dense()
    assert torch.linalg.matrix_rank(back) == 4  # of 9: what the kernel lost does not come back
    assert not torch.allclose(back @ x, x)


def test_a_transposed_convolution_is_a_convolution_of_the_padded_input_with_the_flipped_kernel():
    weight, z = draw(1, 1, 3, 2), draw(1, 1, 4, 5)
    matrix = convolution_matrix(weight, (6, 6))
    by_matrix = (matrix.T @ z.flatten()).view(1, 1, 6, 6)
    padded = F.pad(z, (1, 1, 2, 2))  # by f - 1 on each side
    assert_close(F.conv2d(padded, weight.flip(2, 3)), by_matrix)
    assert_close(convolve(z, weight, padding="full"), by_matrix)


def test_each_row_holds_the_kernel_once_and_rows_are_shifts_of_one_another():
    weight = draw(1, 1, 3)
    matrix = convolution_matrix(weight, (8,)).to_dense()
    for row, line in enumerate(matrix):
        assert_close(line, F.pad(weight[0, 0], (row, 5 - row)))


def test_gradients_reach_the_weights():
    weight, x = draw(2, 1, 2, 2).requires_grad_(), draw(1, 1, 4, 4)
    out = torch.sparse.mm(convolution_matrix(weight, (4, 4)), x.view(-1, 1))
    (found,) = torch.autograd.grad(out.square().sum(), weight)
    (expected,) = torch.autograd.grad(F.conv2d(x, weight).square().sum(), weight)
    assert_close(found, expected)


def test_a_size_with_other_axes_is_refused():
    with pytest.raises(ShapeMismatch, match=r"got \(3,\) for a weight \(1, 1, 2, 2\)"):
        convolution_matrix(draw(1, 1, 2, 2), (3,))
