"""Experiments of the course on local models, conditioning, saddles and products of Jacobians."""

import math

import pytest
import torch
from torch.testing import assert_close

from castalia.autodiff import (
    condition_number,
    critical_point,
    gradient,
    hessian_spectrum,
    hvp,
    jacobian,
)


def draw(*shape, number=0):
    source = torch.Generator().manual_seed(number)
    return torch.randn(shape, generator=source, dtype=torch.float64)


def bowl(x):
    return torch.log(torch.cosh(x).sum()) + (x[0] * x[1]).sin()


@pytest.mark.parametrize("order", [1, 2])
def test_the_error_of_a_taylor_model_falls_with_one_order_more(order):
    x, d = draw(3), draw(3, number=1)
    d = d / d.norm()
    g, curvature = gradient(bowl, x) @ d, hvp(bowl, x, v=d) @ d
    sizes = torch.tensor([0.1, 0.05, 0.025, 0.0125], dtype=torch.float64)
    models = bowl(x) + sizes * g + (order == 2) * sizes**2 / 2 * curvature
    errors = (torch.stack([bowl(x + s * d) for s in sizes]) - models).abs()
    slopes = errors.log().diff() / sizes.log().diff()
    assert slopes.tolist() == pytest.approx([order + 1] * 3, abs=0.1)


def steps_of_descent(kappa):
    """Count steps of gradient descent, rate 1/L, until the error is a thousandth."""
    scales = torch.tensor([1.0, kappa], dtype=torch.float64)
    cost = lambda x: (scales * x**2).sum() / 2  # noqa: E731
    assert condition_number(cost, torch.ones(2).double()) == pytest.approx(kappa)
    x, count = torch.ones(2).double(), 0
    while x.norm() > 1e-3:
        x, count = x - gradient(cost, x) / kappa, count + 1
    return count


def test_gradient_descent_takes_steps_in_proportion_to_the_condition_number():
    assert condition_number(torch.diag(torch.tensor([1.0, 100.0]))) == pytest.approx(100)
    counts = [steps_of_descent(kappa) for kappa in (20.0, 40.0, 80.0)]
    assert counts[1] / counts[0] == pytest.approx(2, rel=0.05)
    assert counts[2] / counts[1] == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize("number", range(10))
def test_the_sign_of_the_change_of_a_step_is_that_of_the_model(number):
    root = draw(4, 4, number=number)
    a = root @ root.T + 0.1 * torch.eye(4).double()
    cost = lambda x: x @ a @ x / 2  # noqa: E731
    x = draw(4, number=number + 100)
    g = gradient(cost, x)
    curved = g @ hvp(cost, x, v=g)
    limit = 2 * (g @ g) / curved  # from here on a step along -g raises the cost
    for eps in (0.5 * limit, 0.99 * limit, 1.01 * limit, 2 * limit):
        predicted = eps**2 / 2 * curved - eps * (g @ g)
        change = cost(x - eps * g) - cost(x)
        assert change.sign() == predicted.sign() == (1 if eps > limit else -1)


def test_minima_become_rare_among_critical_points_as_dimensions_grow():
    shares = []
    for n in range(1, 7):
        a = draw(40_000, n, n, number=n)
        values = torch.linalg.eigvalsh((a + a.transpose(1, 2)) / 2)
        shares.append((values > 0).all(1).double().mean().item())
        for matrix, value in zip(a[:10], values[:10], strict=True):
            kind = critical_point(lambda x, m=matrix: x @ m @ x / 2, torch.zeros(n).double())
            assert (kind == "minimum") == bool((value > 0).all())
    assert shares[0] == pytest.approx(0.5, abs=0.01)
    assert shares[1] == pytest.approx((2 - math.sqrt(2)) / 4, abs=0.01)  # exact for the GOE
    assert shares[3] < 0.01 * shares[0]
    assert shares[5] < 0.001 * shares[0]


def chain(depth, weight, slope):
    """h -> phi(W h), ``depth`` times, with phi'(0) = slope."""

    def run(h):
        for _ in range(depth):
            h = torch.tanh(slope * (weight @ h))
        return h

    return run


@pytest.mark.parametrize("sigma, slope", [(0.8, 1.0), (1.2, 1.0), (1.5, 0.25), (5.0, 0.25)])
def test_the_product_of_jacobians_decays_or_explodes_at_its_rate(sigma, slope):
    weight = sigma * torch.linalg.qr(draw(6, 6)).Q
    depths = torch.arange(2, 21, 3)
    start = torch.zeros(6).double()
    found = [jacobian(chain(int(d), weight, slope), start) for d in depths]
    logs = torch.stack([torch.linalg.matrix_norm(j, 2).log() for j in found])
    rate = torch.linalg.lstsq(
        torch.stack([depths.double(), torch.ones(len(depths)).double()], 1), logs[:, None]
    ).solution[0, 0]
    assert rate.item() == pytest.approx(math.log(sigma * slope), rel=0.1)


def test_the_gradient_finds_the_stationary_points_of_a_cubic():
    cost = lambda x: (x**3 - 3 * x).sum()  # noqa: E731
    grid = torch.linspace(-2, 2, 9, dtype=torch.float64)
    kinds = {x.item(): critical_point(cost, x[None]) for x in grid}
    found = {x: kind for x, kind in kinds.items() if kind != "not critical"}
    assert found == {-1.0: "maximum", 1.0: "minimum"}
    assert_close(gradient(cost, grid), 3 * grid**2 - 3)


def test_the_top_of_a_spectrum_is_where_the_gradient_of_the_rayleigh_quotient_is_zero():
    a = draw(5, 5)
    a = a + a.T
    found = hessian_spectrum(lambda x: x @ a @ x / 2, torch.zeros(5).double(), k=5, vectors=True)
    quotient = lambda x: (x @ a @ x) / (x @ x)  # noqa: E731
    for value, vector in zip(found.largest, found.largest_vectors, strict=True):
        assert quotient(vector).item() == pytest.approx(value.item())
        assert gradient(quotient, vector).abs().max() < 1e-10
