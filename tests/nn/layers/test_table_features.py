import numpy as np
import torch
from sklearn.preprocessing import OneHotEncoder
from torch.testing import assert_close

from castalia.nn import TableFeatures, smooth_clip


def test_clipping_keeps_small_numbers_their_order_and_their_sign():
    z = torch.linspace(-50, 50, 1001, dtype=torch.float64)
    found = smooth_clip(z)
    assert (found.diff() > 0).all()
    assert (found.abs() < 3).all()
    assert_close(smooth_clip(-z), -found)
    assert_close(smooth_clip(z / 1e4), z / 1e4, rtol=1e-5, atol=0)


def test_the_pieces_of_a_number_add_up_to_it():
    cuts = [-1.0, -0.5, 0.25, 2.0]
    block, x = TableFeatures(1, (), [cuts]), torch.linspace(-1, 2, 31)[:, None]
    pieces = block(x)[:, 1:] * torch.tensor(cuts).diff()
    assert_close(cuts[0] + pieces.sum(dim=1), x[:, 0])
    assert_close(block(torch.tensor([[-9.0]]))[0, 1:], torch.zeros(3))
    assert_close(block(torch.tensor([[9.0]]))[0, 1:], torch.ones(3))


def test_codes_become_the_columns_of_scikit_learns_encoder():
    codes = np.array([[1, 2], [2, 0], [0, 1], [3, 2]])
    expected = OneHotEncoder(
        categories=[[1, 2, 3], [1, 2]], handle_unknown="ignore", sparse_output=False
    ).fit_transform(codes)
    found = TableFeatures(0, (4, 3))(torch.from_numpy(codes).float())
    np.testing.assert_array_equal(found.numpy(), expected)


def test_equal_quantiles_make_no_piece():
    block = TableFeatures(2, (), [[0.0, 0.0, 1.0, 1.0], [5.0, 5.0, 5.0, 5.0]])
    assert (block.pieces, block.width) == (1, 3)
