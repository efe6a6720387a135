"""WE-37: the exact ensemble of a softmax regression with five inputs, and the misprinted root."""

import torch
from torch.testing import assert_close

from castalia.nn import geometric_ensemble

PRINTED = torch.tensor([0.185744, 0.119888, 0.694368], dtype=torch.float64)


def softmax_regression():
    """A random one whose scaled weights give the printed probabilities."""
    source = torch.Generator().manual_seed(0)
    weight = torch.randn(3, 5, dtype=torch.float64, generator=source)
    x = torch.randn(1, 5, dtype=torch.float64, generator=source)
    return weight, PRINTED.log() - (x @ weight.T)[0] / 2, x


def test_the_32nd_root_equals_halved_weights():
    weight, bias, x = softmax_regression()
    found = geometric_ensemble(weight, bias, x)
    halved = torch.softmax(x @ weight.T / 2 + bias, dim=1)
    assert_close(found, halved, rtol=0, atol=1e-12)
    assert_close(found, geometric_ensemble(weight, bias, x, root=2**5), rtol=0, atol=1e-12)
    assert_close(found[0], PRINTED / PRINTED.sum(), rtol=0, atol=1e-12)


def test_a_fifth_root_is_far_too_sure():
    found = geometric_ensemble(*softmax_regression(), root=5)
    expected = torch.tensor([[0.000216, 0.000013, 0.999771]], dtype=torch.float64)
    assert_close(found, expected, rtol=0, atol=1e-6)
