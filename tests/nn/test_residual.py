"""Residual blocks."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import ShapeMismatch
from castalia.nn import Residual


@pytest.mark.parametrize("scale", [1.0, 0.3, 0.0])
def test_the_gradient_is_that_of_the_function_plus_the_scaled_identity(scale):
    torch.manual_seed(0)
    fn = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    x = torch.tensor([0.2, -1.0, 0.7], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian
    assert_close(Residual(fn, scale)(x), fn(x) + scale * x)
    both = jacobian(fn, x) + scale * torch.eye(3, dtype=torch.float64)
    assert_close(jacobian(Residual(fn, scale), x), both)


def test_a_function_that_changes_the_shape_is_refused_not_broadcast():
    with pytest.raises(ShapeMismatch, match=r"its input, \(2, 3\); got \(2, 1\)"):
        Residual(nn.Linear(3, 1))(torch.ones(2, 3))
