"""Dense output, statistics, events; the tableaux behind them."""

import math

import pytest
import torch
from torch.testing import assert_close

from castalia.autodiff import odeint, solve
from castalia.autodiff.ode import METHODS
from castalia.autodiff.ode.tableaux import ADAMS_BASHFORTH, ADAMS_MOULTON, HERMITE, TABLEAUX
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch

double = {"dtype": torch.float64}


def rotation(t, y):
    return torch.stack([y[1], -y[0]])


def circle(t):
    t = torch.as_tensor(t, **double)
    return torch.stack([t.cos(), -t.sin()], dim=-1)


START = torch.tensor([1.0, 0.0], **double)


# ---- tableaux ----


@pytest.mark.parametrize("name", TABLEAUX)
def test_weights_meet_the_order_conditions_of_quadrature(name):
    tableau = TABLEAUX[name]
    c = torch.tensor(tableau.c, **double)
    b = torch.tensor([*tableau.a[-1], 0.0][: len(c)], **double)
    for row, place in zip(tableau.a, tableau.c[1:], strict=False):
        assert sum(row) == pytest.approx(place)
    for q in range(tableau.order):
        assert float(b @ c**q) == pytest.approx(1 / (q + 1))


def test_the_interpolant_of_dopri5_meets_the_order_conditions_everywhere():
    tableau = TABLEAUX["dopri5"]
    c, dense = torch.tensor(tableau.c, **double), torch.tensor(tableau.dense, **double)
    for theta in (0.1, 0.37, 0.8, 1.0):
        b = dense @ torch.tensor([theta**p for p in (1, 2, 3, 4)], **double)
        for q in range(4):
            assert float(b @ c**q) == pytest.approx(theta ** (q + 1) / (q + 1))
    assert_close(dense.sum(1)[:6], torch.tensor(tableau.a[-1], **double))


def test_adams_weights_are_integrals_of_the_interpolating_polynomial():
    for weights, first in ((ADAMS_BASHFORTH, 0), (ADAMS_MOULTON, 1)):
        for order, b in weights.items():
            nodes = [first - j for j in range(order)]
            for q in range(order):
                found = sum(w * x**q for w, x in zip(b, nodes, strict=True))
                assert found == pytest.approx(1 / (q + 1))


def test_the_hermite_weights_reproduce_a_cubic():
    theta = torch.tensor([0.3, 0.3**2, 0.3**3], **double)
    slopes = torch.tensor([2.0, 2.0 + 6.0 + 12.0, 9.0], **double)  # 2x + 3x^2 + 4x^3 on [0, 1]
    assert float(slopes @ torch.tensor(HERMITE, **double) @ theta) == pytest.approx(
        2 * 0.3 + 3 * 0.09 + 4 * 0.027
    )


# ---- dense output ----


@pytest.mark.parametrize("method", METHODS)
def test_the_solution_can_be_asked_anywhere_in_its_span(method):
    solution = solve(rotation, START, [0.0, 6.0], method, step=0.01, rtol=1e-8)
    t = torch.linspace(0, 6, 101, **double)
    close = {"euler": 0.05, "midpoint": 3e-4}.get(method, 1e-6)
    assert_close(solution(t), circle(t), rtol=0, atol=close)
    assert_close(solution(1.5), solution([1.5])[0])
    assert_close(solution([[1.0, 2.0]]).shape, torch.Size([1, 2, 2]))


def test_the_interpolant_of_dopri5_is_of_fourth_order():
    def error(step):
        solution = solve(rotation, START, [0.0, step], step=step, rtol=1.0, atol=1.0)
        assert solution.stats.steps == 1
        return float((solution(0.4 * step) - circle(0.4 * step)).norm())

    assert math.log2(error(0.2) / error(0.1)) == pytest.approx(5, abs=0.3)  # local: h^5


def test_outputs_between_the_steps_cost_no_evaluations():
    few = solve(rotation, START, [0.0, 6.0])
    many = solve(rotation, START, torch.linspace(0, 6, 500))
    assert many.stats == few.stats
    assert_close(many.y[250:251], few([float(many.t[250])]))


def test_first_same_as_last_saves_an_evaluation_a_step():
    stats = solve(rotation, START, [0.0, 6.0]).stats
    assert stats.evaluations == 2 + 6 * (stats.steps + stats.rejected)


def test_a_step_of_euler_is_one_evaluation():
    assert solve(rotation, START, [0.0, 1.0], "euler", step=0.1).stats.evaluations == 10


def test_dense_output_carries_gradients():
    y0 = torch.tensor([1.0, 0.0], requires_grad=True, **double)
    (by,) = torch.autograd.grad(solve(rotation, y0, [0.0, 3.0])(1.2)[0], y0)
    assert_close(by, torch.tensor([math.cos(1.2), math.sin(1.2)], **double), rtol=0, atol=1e-5)


def test_dense_output_runs_backwards_too():
    solution = solve(rotation, START, [0.0, -3.0])
    assert_close(solution([-1.0, -2.5]), circle([-1.0, -2.5]), rtol=0, atol=1e-5)
    with pytest.raises(InvalidData, match=r"between 0 and -3, where it was solved; got 1"):
        solution(1.0)


def test_the_solution_says_what_it_is():
    assert repr(solve(rotation, START, [0.0, 1.0], "rk4")) == (
        "ODESolution(t=0 to 1, ODEStats(steps=1, rejected=0, evaluations=4))"
    )


# ---- events ----


def fall(t, s):
    return (s[1], torch.full_like(s[0], -9.81))


def test_the_integration_ends_at_the_event():
    solution = solve(rotation, START, [0.0, 1.0, 5.0], event=lambda t, y: y[0])
    assert solution.event_time == pytest.approx(math.pi / 2, abs=1e-6)
    assert_close(solution.t, torch.tensor([0.0, 1.0, solution.event_time], **double))
    assert_close(solution.y[-1], torch.tensor([0.0, -1.0], **double), rtol=0, atol=1e-5)
    with pytest.raises(InvalidData, match="where it was solved"):
        solution(2.0)


@pytest.mark.parametrize("method", ["rk4", "dopri5", "adams_moulton"])
@pytest.mark.parametrize("adjoint", [True, False])
def test_the_time_and_state_of_an_event_have_the_gradients_of_the_closed_form(method, adjoint):
    height = torch.tensor([5.0], requires_grad=True, **double)
    start = (height, torch.zeros(1, **double))
    t, (y, v) = odeint(
        fall, start, [0.0, 0.5, 3.0], method, adjoint, step=0.05, event=lambda t, s: s[0]
    )
    landing = math.sqrt(2 * 5 / 9.81)
    assert t[-1].item() == pytest.approx(landing, abs=1e-6)
    (by_time,) = torch.autograd.grad(t[-1], height, retain_graph=True)
    (by_state,) = torch.autograd.grad(y[-1], height, retain_graph=True)
    (by_speed,) = torch.autograd.grad(v[-1], height)
    assert float(by_time) == pytest.approx(landing / 10, abs=1e-6)
    assert float(by_state) == pytest.approx(0, abs=1e-6)  # it lands at zero from any height
    assert float(by_speed) == pytest.approx(-9.81 * landing / 10, abs=1e-5)


def test_an_event_may_depend_on_the_time_and_on_parameters():
    level = torch.tensor(0.4, requires_grad=True, **double)
    y0 = torch.zeros(1, **double)
    t, _ = odeint(
        lambda t, y: torch.ones_like(y), y0, [0.0, 2.0], event=lambda t, y: y[0] + t - level
    )
    assert t[-1].item() == pytest.approx(0.2)
    (by,) = torch.autograd.grad(t[-1], level)
    assert float(by) == pytest.approx(0.5)


def test_without_an_event_the_integration_goes_to_its_end():
    t, y = odeint(rotation, START, [0.0, 1.0], event=lambda t, y: y[0] + 2)
    assert_close(t, torch.tensor([0.0, 1.0], **double))
    assert y.shape == (2, 2)


def test_an_event_that_holds_at_the_start_is_left_behind():
    t, _ = odeint(rotation, START, [0.0, 9.0], event=lambda t, y: y[1])
    assert t[-1].item() == pytest.approx(math.pi, abs=1e-6)


def test_an_event_backwards_in_time_is_found():
    t, _ = odeint(rotation, START, [0.0, -5.0], event=lambda t, y: y[0])
    assert t[-1].item() == pytest.approx(-math.pi / 2, abs=1e-6)


def test_an_event_is_one_number():
    with pytest.raises(ShapeMismatch, match=r"`event\(t, y\)` must be one number.*shape \(2,\)"):
        odeint(rotation, START, [0.0, 1.0], event=lambda t, y: y)


@pytest.mark.parametrize(
    "direction, at", [(1, 3 * math.pi / 2), (-1, math.pi / 2), (0, math.pi / 2)]
)
def test_an_event_may_count_in_one_direction_only(direction, at):
    t, _ = odeint(rotation, START, [0.0, 9.0], event=lambda t, y: y[0], direction=direction)
    assert t[-1].item() == pytest.approx(at, abs=1e-6)


def test_the_first_of_several_events_ends_the_integration():
    events = [lambda t, y: y[0] + 0.5, lambda t, y: y[0], lambda t, y: t - 1.4]
    solution = solve(rotation, START, [0.0, 9.0], event=events)
    assert (solution.event_index, solution.event_time) == (2, pytest.approx(1.4))
    solution = solve(rotation, START, [0.0, 9.0], event=events[:2], direction=[-1, 1])
    assert solution.event_index == 0
    assert solution.event_time == pytest.approx(2 * math.pi / 3, abs=1e-6)
    t, y = odeint(rotation, START, [0.0, 9.0], event=events[:2])
    assert_close(
        (t[-1], y[-1, 0]), (t.new_tensor(math.pi / 2), t.new_tensor(0.0)), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("event, direction", [(abs, 2), ([abs, abs], [1]), ([], 0), ([1.0], 0)])
def test_events_and_directions_that_make_no_sense_are_refused(event, direction):
    with pytest.raises(InvalidParameter, match="`direction` must be|`event` must be"):
        odeint(rotation, START, [0.0, 1.0], event=event, direction=direction)
