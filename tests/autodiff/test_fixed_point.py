"""Fixed points and their gradients."""

import math

import pytest
import torch
from torch.testing import assert_close

from castalia.autodiff import fixed_point
from castalia.errors import InvalidParameter, SolverFailed

double = {"dtype": torch.float64}


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), **double)


def layer(z, w):
    matrix, bias = w
    return torch.tanh(z @ matrix.T + bias)


def small_layer():
    matrix = random(4, 4)
    return 0.5 * matrix / torch.linalg.matrix_norm(matrix, 2), random(4, seed=3)


def test_a_contraction_converges_geometrically_to_one_point():
    w = small_layer()
    found = fixed_point(layer, torch.zeros(4, **double), w, tolerance=1e-12)
    from_afar = fixed_point(layer, 100 * random(4), w, tolerance=1e-12)
    assert_close(found.z, from_afar.z, rtol=0, atol=1e-11)
    assert_close(found.z, layer(found.z, w), rtol=0, atol=1e-11)
    ratios = [b / a for a, b in zip(found.changes, found.changes[1:], strict=False) if a > 1e-12]
    assert max(ratios) <= 0.5 + 1e-6  # tanh is 1-Lipschitz and |W| = 0.5


def test_the_gradient_of_a_fixed_point_equals_that_of_the_unrolled_iteration():
    w = tuple(x.requires_grad_() for x in small_layer())
    found = fixed_point(layer, torch.zeros(4, **double), w, tolerance=1e-13)
    implicit = torch.autograd.grad(found.z.square().sum(), w)
    z = torch.zeros(4, **double)
    for _ in range(80):
        z = layer(z, w)
    for ours, unrolled in zip(implicit, torch.autograd.grad(z.square().sum(), w), strict=True):
        assert_close(ours, unrolled, rtol=1e-8, atol=1e-10)


def test_the_fixed_point_of_the_cosine_is_the_known_number():
    w = torch.tensor(1.0, requires_grad=True, **double)
    found = fixed_point(
        lambda z, w: w * torch.cos(z), torch.tensor(0.0, **double), w, tolerance=1e-12
    )
    assert found.z.item() == pytest.approx(0.739085133215, abs=1e-10)
    (by,) = torch.autograd.grad(found.z, w)
    assert float(by) == pytest.approx(0.739085133 / (1 + math.sin(0.739085133)), abs=1e-8)


@pytest.mark.parametrize("factor", [1.0, 3.0], ids=["drifts", "explodes"])
def test_a_map_that_is_no_contraction_is_reported(factor):
    with pytest.raises(SolverFailed, match=r"`f` must be a contraction"):
        fixed_point(lambda z, w: w * z + 1, torch.ones(2), torch.tensor(factor), tolerance=1e-9)


def test_an_iteration_without_steps_is_refused():
    with pytest.raises(InvalidParameter, match=r"`max_steps` must be at least 1; got 0"):
        fixed_point(lambda z, w: w * z, torch.ones(2), torch.tensor(0.5), max_steps=0)


def test_acceleration_saves_most_steps_of_a_slow_contraction_and_ends_at_the_same_point():
    basis = torch.linalg.qr(
        torch.randn(12, 12, generator=torch.Generator().manual_seed(0)).double()
    )[0]
    matrix = basis * torch.linspace(0.1, 0.98, 12).double() @ basis.T
    w = torch.ones(12).double().requires_grad_()

    def f(z, w):
        return matrix @ z + w

    start = torch.zeros(12).double()
    plain, fast = (
        fixed_point(f, start, w, tolerance=1e-10, max_steps=2000, acceleration=m) for m in (0, 5)
    )
    assert len(fast.changes) < len(plain.changes) / 5
    assert_close(fast.z, torch.linalg.solve(torch.eye(12).double() - matrix, w), atol=1e-7, rtol=0)
    (slope,) = torch.autograd.grad(fast.z.sum(), w)
    assert_close(
        slope, torch.linalg.solve(torch.eye(12).double() - matrix.T, torch.ones(12).double())
    )
