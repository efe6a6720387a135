"""Hessian-free optimization, its linear solver and its damping."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.optim import HessianFree, build_optimizer
from castalia.optim.levenberg_marquardt import adjust_damping
from castalia.optim.truncated import truncated_solve


def spd(n=8, condition=30.0):
    torch.manual_seed(0)
    turn, _ = torch.linalg.qr(torch.randn(n, n, dtype=torch.float64))
    return turn @ torch.linspace(1, condition, n, dtype=torch.float64).diag() @ turn.T


def test_the_solver_solves_in_as_many_products_as_dimensions():
    A, b = spd(), torch.ones(8, dtype=torch.float64)
    found = truncated_solve(lambda v: A @ v, b, torch.zeros_like(b), progress=0.0, most=8)
    assert_close(found.iterates[-1], torch.linalg.solve(A, b))
    assert found.products == 8
    for x, phi in zip(found.iterates, found.values, strict=True):
        assert phi == pytest.approx(float(0.5 * x @ A @ x - b @ x))


def test_a_start_at_the_solution_costs_few_products():
    A, b = spd(), torch.ones(8, dtype=torch.float64)
    x = torch.linalg.solve(A, b)
    assert truncated_solve(lambda v: A @ v, b, x, progress=0.0).products <= 3


def test_it_stops_when_progress_stalls():
    curvatures = torch.logspace(0, 4, 200, dtype=torch.float64)
    b = torch.ones(200, dtype=torch.float64)
    counts = [
        truncated_solve(
            lambda v: curvatures * v, b, torch.zeros_like(b), progress=share, most=400
        ).products
        for share in (0.0, 5e-4, 5e-2)
    ]
    assert counts[0] > counts[1] > counts[2] > 10


def test_the_right_diagonal_makes_one_product_enough():
    curvatures = torch.logspace(0, 6, 50, dtype=torch.float64)
    b = torch.ones(50, dtype=torch.float64)
    found = truncated_solve(lambda v: curvatures * v, b, torch.zeros_like(b), scale=curvatures)
    assert found.products == 1
    assert_close(found.iterates[-1], b / curvatures)


def test_negative_curvature_stops_the_solver_downhill():
    curvatures, b = torch.tensor([1.0, -2.0]), torch.tensor([0.0, 1.0])
    found = truncated_solve(lambda v: curvatures * v, b, torch.zeros(2))
    assert found.indefinite
    assert_close(found.iterates[-1], torch.tensor([0.0, 0.5]))  # as far as |curvature| says


@pytest.mark.parametrize("ratio, damping", [(0.1, 1.5), (0.5, 1.0), (0.9, 1 / 1.5)])
def test_damping_follows_the_ratio_of_reductions(ratio, damping):
    assert adjust_damping(1.0, ratio) == pytest.approx(damping)


def test_a_failure_raises_the_damping():
    assert adjust_damping(1.0, float("nan")) > 1
    assert adjust_damping(1.0, -3.0) > 1


def test_one_step_solves_a_quadratic_when_nothing_is_truncated():
    A = spd()
    w = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    optimizer = HessianFree([w], damping=1e-12, progress=0.0)
    optimizer.step(lambda: 0.5 * w @ A @ w - w.sum())
    assert_close(A @ w.detach(), torch.ones(8, dtype=torch.float64))


def test_the_model_of_a_quadratic_is_trusted_more_and_more():
    A = spd()
    w = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    optimizer = HessianFree([w], damping=1.0)
    for _ in range(3):
        optimizer.step(lambda: 0.5 * w @ A @ w - w.sum())
    assert optimizer.memory["damping"] == pytest.approx(1.5**-3)


def test_by_the_hessian_it_leaves_a_saddle_downhill():
    w = torch.tensor([0.5, 1e-3], dtype=torch.float64, requires_grad=True)
    optimizer = HessianFree([w])
    for _ in range(40):
        loss = optimizer.step(lambda: w[0] ** 2 - w[1] ** 2 + 0.25 * w[1] ** 4)
    assert loss == pytest.approx(-1.0, abs=1e-6)  # both minima lie at w1 = +-sqrt 2


def test_the_diagonal_preconditioner_serves_a_badly_scaled_problem():
    curvatures = torch.logspace(-2, 2, 40, dtype=torch.float64)
    evaluations = []
    for kind in (None, "diagonal"):
        w = torch.ones(40, dtype=torch.float64, requires_grad=True)
        optimizer = HessianFree([w], damping=1e-8, preconditioner=kind)
        while float((curvatures * w.detach() ** 2).sum()) > 1e-8:
            optimizer.step(lambda w=w: 0.5 * (curvatures * w * w).sum())
        evaluations.append(optimizer.evaluations)
    assert evaluations[1] < evaluations[0] / 2


def test_an_ill_conditioned_net_is_fitted_in_fewer_outer_steps_than_descent():
    torch.manual_seed(0)
    x = torch.randn(60, 4, dtype=torch.float64) * torch.tensor([1.0, 5.0, 0.1, 0.02])
    y = torch.tanh(x @ torch.tensor([[1.0], [0.2], [10.0], [50.0]], dtype=torch.float64))
    reached = {}
    for kind, rates in (("hessian_free", [1.0]), ("momentum", [0.01, 0.03, 0.1])):
        for rate in rates:
            torch.manual_seed(1)
            net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)).double()
            optimizer = build_optimizer(kind, net.parameters(), lr=rate)
            by_outputs = kind == "hessian_free"

            def closure(net=net, optimizer=optimizer, by_outputs=by_outputs):
                if by_outputs:
                    return net(x), lambda out: (out - y).square().mean()
                optimizer.zero_grad()
                loss = (net(x) - y).square().mean()
                loss.backward()
                return loss.detach()

            for _ in range(15 if by_outputs else 150):
                optimizer.step(closure)
            with torch.no_grad():
                found = float((net(x) - y).square().mean())
            reached[kind] = min(found, reached.get(kind, found))
    assert reached["hessian_free"] < reached["momentum"]
