"""Bounds and variances of random starts that the course prints."""

import pytest
from torch import nn

from castalia.nn import init


@pytest.mark.parametrize(
    "scheme, bound, variance",
    [("glorot", 0.122474, 0.005), ("fan_in_uniform", 0.057735, 1 / 900)],
)
def test_the_start_of_a_layer_from_300_to_100(scheme, bound, variance):
    weight = init(nn.Linear(300, 100), scheme, random_state=0).weight
    assert weight.abs().max().item() == pytest.approx(bound, rel=1e-3)
    assert weight.abs().max().item() <= bound + 1e-6
    assert weight.var().item() == pytest.approx(variance, rel=0.02)
