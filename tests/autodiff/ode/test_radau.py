"""The implicit method against scipy's, closed forms and derivatives by differences."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import odeint, solve
from castalia.autodiff.ode import radau
from castalia.errors import SolverFailed

double = {"dtype": torch.float64}


class VanDerPol(nn.Module):
    def __init__(self, mu):
        super().__init__()
        self.mu = nn.Parameter(torch.tensor(mu, **double))

    def forward(self, t, y):  # (2,)
        return torch.stack([y[1], self.mu * (1 - y[0] ** 2) * y[1] - y[0]])


class Robertson(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = nn.Parameter(torch.tensor([0.04, 1e4, 3e7], **double))

    def forward(self, t, y):  # (3,)
        a, b, c = self.rates * torch.stack([y[0], y[1] * y[2], y[1] ** 2])
        return torch.stack([-a + b, a - b - c, c])


def van_der_pol(t, y):
    return [y[1], 1000 * (1 - y[0] ** 2) * y[1] - y[0]]


def robertson(t, y):
    a, b, c = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [-a + b, a - b - c, c]


# ---- solutions ----


def test_the_tableau_meets_the_order_conditions_of_collocation():
    for q in range(1, 4):  # sum_j a_ij c_j^(q-1) = c_i^q / q
        assert radau.A @ radau.NODES ** (q - 1) == pytest.approx(radau.NODES**q / q)
    for q in range(1, 6):  # the last row integrates polynomials of degree 4
        assert radau.A[-1] @ radau.NODES ** (q - 1) == pytest.approx(1 / q)


@pytest.mark.parametrize(
    "f, numbers, y0, t",
    [
        (VanDerPol(1000.0), van_der_pol, [2.0, 0.0], [0.0, 400.0, 806.0, 809.0]),
        (Robertson(), robertson, [1.0, 0.0, 0.0], [0.0, 0.4, 40.0, 4e3, 1e5]),
    ],
    ids=["van der Pol", "Robertson"],
)
def test_stiff_problems_equal_scipys(f, numbers, y0, t):
    with torch.no_grad():
        ours = solve(f, torch.tensor(y0, **double), t, "radau", rtol=1e-5, atol=1e-8)
    theirs = solve_ivp(numbers, (0, t[-1]), y0, "Radau", t, rtol=1e-8, atol=1e-12)
    assert_close(ours.y, torch.from_numpy(theirs.y.T.copy()), rtol=1e-3, atol=1e-7)
    assert ours.stats.steps < 400


def test_a_stiff_rate_takes_few_steps():
    f = lambda t, y: -1e6 * (y - t.cos())  # noqa: E731
    solution = solve(f, torch.zeros(1, **double), [0.0, 10.0], "radau")
    assert solution.stats.steps < 120
    assert float(solution.y[-1]) == pytest.approx(math.cos(10), abs=1e-5)


def test_halving_the_step_divides_the_error_by_thirty_two():
    def error(step):
        t = torch.arange(0, 1 + step / 2, step, **double)
        y = torch.tensor([1.0, 0.0], **double)
        for a, b in zip(t, t[1:], strict=False):  # each step on its own
            f = lambda t, y: torch.stack([y[1], -y[0]])  # noqa: E731
            y = solve(f, y, [a, b], "radau", step=step, rtol=0.05, atol=0.05).y[-1]
        return float((y - torch.tensor([math.cos(1), -math.sin(1)], **double)).norm())

    assert math.log2(error(0.5) / error(0.25)) == pytest.approx(5, abs=0.5)


def test_float32_states_keep_their_type():
    y = odeint(lambda t, y: -100 * y, torch.ones(2), [0.0, 1.0], "radau", rtol=1e-4)
    assert y.dtype == torch.float32
    assert_close(y[-1], torch.zeros(2), rtol=0, atol=1e-5)


def test_a_blow_up_is_reported():
    with pytest.raises(SolverFailed, match="at t = 1: the solution blows up"):
        odeint(lambda t, y: y**2, torch.ones(1, **double), [0.0, 2.0], "radau")


def test_a_slope_without_the_state_has_a_jacobian_of_zeros():
    y = odeint(lambda t, y: t.cos()[None], torch.zeros(1, **double), [0.0, 1.0], "radau")
    assert float(y[-1]) == pytest.approx(math.sin(1), abs=1e-6)


# ---- gradients ----


def end(rates, times, start):
    """The logarithms of what two substances have become, and the slope's parameters."""
    f = Robertson()
    f.rates.data = rates.detach().clone()
    y = odeint(f, start, times, "radau", rtol=1e-7, atol=1e-11)
    return y[1:, 1:].log().sum(), f.rates


def test_gradients_of_a_stiff_problem_equal_differences():
    rates, times = torch.tensor([0.04, 1e4, 3e7], **double), torch.tensor([0.0, 0.5, 2.0], **double)
    y0, when = torch.tensor([1.0, 0.0, 0.0], **double), times.clone().requires_grad_()
    value, parameters = end(rates, when, y0)
    by = torch.autograd.grad(value, [parameters, when])
    with torch.no_grad():
        for i in range(3):
            h = torch.zeros(3, **double)
            h[i] = 1e-2 * rates[i]
            by_rate = (end(rates + h, times, y0)[0] - end(rates - h, times, y0)[0]) / (2 * h[i])
            assert by[0][i].item() == pytest.approx(by_rate.item(), rel=1e-3)
        h = torch.tensor([0.0, 0.0, 1e-2], **double)
        by_time = (end(rates, times + h, y0)[0] - end(rates, times - h, y0)[0]) / 2e-2
    assert by[1][2].item() == pytest.approx(by_time.item(), rel=1e-3)


def test_gradients_equal_those_through_an_explicit_method():
    def by(method):
        f, y0 = VanDerPol(3.0), torch.tensor([1.0, 0.5], requires_grad=True, **double)
        y = odeint(f, y0, [0.0, 0.4, 1.0], method, adjoint=False, rtol=1e-8, atol=1e-10)
        return torch.autograd.grad(y.square().sum(), [y0, f.mu])

    for a, b in zip(by("radau"), by("dopri5"), strict=True):
        assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_steps_are_kept_without_the_graph_of_the_slope():
    y0 = torch.zeros(30, requires_grad=True, **double)
    saved = []
    weights = torch.randn(30, 30, generator=torch.Generator().manual_seed(0), **double)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x) or x, lambda x: x):
        y = solve(lambda t, y: (weights @ y + t).sin() - 50 * y, y0, [0.0, 1.0], "radau")
    kept = sum(x.numel() for x in saved if x.shape != weights.shape)
    assert kept < 30 * 20 * (y.stats.steps + 1)


def test_an_event_of_a_stiff_problem_has_a_gradient():
    rate = torch.tensor(500.0, requires_grad=True, **double)
    f = lambda t, y: torch.stack([-y[0], rate * (y[0] - y[1])])  # noqa: E731
    t, _ = odeint(
        f, torch.ones(2, **double), [0.0, 5.0], "radau", event=lambda t, y: y[1] - 0.5, rtol=1e-9
    )
    factor = 500 / 499  # y1 = r/(r-1) exp(-t) without the fast part
    assert t[-1].item() == pytest.approx(math.log(2 * factor), abs=1e-6)
    (by,) = torch.autograd.grad(t[-1], rate)
    assert by.item() == pytest.approx(1 / 500 - 1 / 499, rel=1e-3)


# ---- complex states ----


@pytest.mark.parametrize("method", ["dopri5", "radau", "rk4", "adams_moulton"])
@pytest.mark.parametrize("adjoint", [True, False])
def test_a_complex_rotation_and_its_gradient(method, adjoint):
    rate = torch.tensor(0.7 + 2.0j, dtype=torch.complex128, requires_grad=True)
    y0 = torch.tensor([1.0 + 0.5j, -0.3j], dtype=torch.complex128)
    y = odeint(lambda t, y: rate * y, y0, [0.0, 0.4, 1.0], method, adjoint, step=0.02, rtol=1e-7)
    assert y.dtype == torch.complex128
    assert_close(y[-1], y0 * rate.detach().exp(), rtol=1e-5, atol=1e-7)
    (by,) = torch.autograd.grad(y[-1].abs().square().sum(), rate)
    expected = rate.detach().clone().requires_grad_()
    ((y0 * expected.exp()).abs().square().sum()).backward()
    assert_close(by, expected.grad, rtol=1e-5, atol=1e-6)


def test_a_state_that_is_conjugated_equals_scipys():
    f = lambda t, y: 1j * y.conj() * y.abs() - 30 * (y - 1)  # noqa: E731
    y0 = torch.tensor([0.2 + 1j, 2.0], dtype=torch.complex128)
    found = {m: odeint(f, y0, [0.0, 1.0], m, rtol=1e-9)[-1] for m in ("radau", "dopri5")}
    theirs = solve_ivp(
        lambda t, y: 1j * y.conj() * np.abs(y) - 30 * (y - 1), (0, 1), y0.numpy(),
        "DOP853", rtol=1e-11, atol=1e-12,
    ).y[:, -1]  # fmt: skip
    for y in found.values():
        assert_close(y, torch.from_numpy(theirs), rtol=1e-6, atol=1e-7)
