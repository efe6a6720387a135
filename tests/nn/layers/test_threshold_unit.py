"""McCulloch-Pitts units set by hand."""

import pytest
import torch

from castalia.nn import ThresholdUnit

PAIRS = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    "weight, threshold, expected",
    [
        ([1.0, 1.0], 2.0, [0, 0, 0, 1]),
        ([1.0, 1.0], 1.0, [0, 1, 1, 1]),
        ([-1.0, -1.0], 0.0, [1, 0, 0, 0]),
    ],
    ids=["and", "or", "nor"],
)
def test_hand_set_units_compute_boolean_functions(weight, threshold, expected):
    assert ThresholdUnit(weight, threshold)(PAIRS).tolist() == expected
    signed = ThresholdUnit(weight, threshold, signed=True)(PAIRS)
    assert signed.tolist() == [2 * value - 1 for value in expected]


def test_not_fires_for_zero_only():
    assert ThresholdUnit([-1.0], 0.0)(torch.tensor([[0.0], [1.0]])).tolist() == [1, 0]


def test_two_layers_compute_xor_and_no_single_unit_on_a_grid_does():
    hidden = ThresholdUnit([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0])  # or, and
    either = ThresholdUnit([1.0, -1.0], 1.0)  # or and not and
    xor = [0, 1, 1, 0]
    assert either(hidden(PAIRS)).tolist() == xor
    grid = torch.linspace(-2, 2, 17)
    single = torch.cartesian_prod(grid, grid, grid)  # a, b, threshold
    fires = single[:, :2] @ PAIRS.T >= single[:, 2:]
    assert not (fires == torch.tensor(xor, dtype=torch.bool)).all(dim=1).any()
