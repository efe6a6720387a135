"""odeint against closed forms, scipy and torchdiffeq."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import nn
from torch.testing import assert_close

from castalia.autodiff import odeint, solve
from castalia.autodiff.ode import METHODS
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch, SolverFailed

double = {"dtype": torch.float64}
FIXED = [m for m in METHODS if m not in ("dopri5", "radau")]


class Lorenz(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = nn.Parameter(torch.tensor([10.0, 28.0, 8 / 3], **double))

    def forward(self, t, y):  # (B, 3)
        a, b, c = self.rates
        x, y, z = y.unbind(-1)
        return torch.stack([a * (y - x), x * (b - z) - y, x * y - c * z], dim=-1)


class Swing(nn.Module):
    """A driven, damped pendulum: f depends on the time and on its parameters."""

    def __init__(self):
        super().__init__()
        self.damping = nn.Parameter(torch.tensor(0.3, **double))
        self.drive = nn.Parameter(torch.tensor([0.5, 1.1], **double))

    def forward(self, t, y):  # (..., 2)
        angle, speed = y.unbind(-1)
        force = self.drive[0] * torch.cos(self.drive[1] * t)
        return torch.stack([speed, force - angle.sin() - self.damping * speed], dim=-1)


def states(n, dim=2, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), **double)


# ---- solutions ----


def test_dopri5_equals_scipy_at_many_output_times():
    f, y0, t = Swing(), states(1), torch.linspace(0, 10, 57, **double)
    with torch.no_grad():
        ours = odeint(f, y0[0], t, rtol=1e-9, atol=1e-9)
        theirs = solve_ivp(
            lambda t, y: f(torch.tensor(t), torch.from_numpy(y)).numpy(),
            (0, 10), y0[0].numpy(), t_eval=t.numpy(), rtol=1e-11, atol=1e-11, method="DOP853",
        )  # fmt: skip
    assert_close(ours, torch.from_numpy(theirs.y.T), rtol=0, atol=3e-8)


def test_dopri5_takes_about_as_many_evaluations_as_scipys_rk45():
    f = Swing()
    with torch.no_grad():
        ours = solve(f, states(1)[0], [0.0, 20.0], rtol=1e-6, atol=1e-6)
        theirs = solve_ivp(
            lambda t, y: f(torch.tensor(t), torch.from_numpy(y)).numpy(),
            (0, 20), states(1)[0].numpy(), rtol=1e-6, atol=1e-6,
        )  # fmt: skip
    assert ours.stats.evaluations <= 1.1 * theirs.nfev


def test_a_batch_of_lorenz_systems_equals_torchdiffeq():
    torchdiffeq = pytest.importorskip("torchdiffeq")
    f, y0, t = Lorenz(), states(8, 3), torch.linspace(0, 1, 5, **double)
    with torch.no_grad():
        ours = odeint(f, y0, t, rtol=1e-9, atol=1e-9)
        assert_close(ours, torchdiffeq.odeint(f, y0, t, rtol=1e-9, atol=1e-9), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "method, order, expected",
    [
        ("euler", 4, 1),
        ("midpoint", 4, 2),
        ("rk4", 4, 4),
        *(("adams_bashforth", k, k) for k in (1, 2, 3, 4)),
        *(("adams_moulton", k, k) for k in (2, 3, 4)),
    ],
)
def test_halving_the_step_divides_the_error_by_two_to_the_order(method, order, expected):
    y0 = torch.tensor([1.0, 0.0], **double)

    def error(step):
        end = odeint(rotation, y0, [0.0, 2.0], method, step=step, order=order)[-1]
        return float((end - torch.tensor([math.cos(2), -math.sin(2)], **double)).norm())

    assert math.log2(error(0.02) / error(0.01)) == pytest.approx(expected, abs=0.15)


def rotation(t, y):
    return torch.stack([y[1], -y[0]])


def test_the_global_error_of_euler_is_proportional_to_the_step():
    steps = [0.1 / 2**k for k in range(6)]
    y0 = torch.ones(1, **double)
    errors = [
        float(abs(odeint(lambda t, y: -y, y0, [0.0, 1.0], "euler", step=h)[-1] - math.exp(-1)))
        for h in steps
    ]
    by_step = [e / h for e, h in zip(errors, steps, strict=True)]
    assert by_step[-1] == pytest.approx(math.exp(-1) / 2, rel=0.01)  # h/2 t exp(-t) to first order
    assert np.ptp(by_step) < 0.05 * by_step[-1] * 2


def test_an_euler_step_is_a_residual_block():
    torch.manual_seed(0)
    net, x = nn.Linear(3, 3), torch.randn(4, 3)
    y = odeint(lambda t, y: net(y).tanh(), x, [0.0, 1.0, 2.0], "euler", adjoint=False)
    block = x + net(x).tanh()
    assert_close(y[1], block)
    assert_close(y[2], block + net(block).tanh())


def test_fixed_methods_divide_the_span_between_outputs_evenly_and_land_on_them():
    seen = []

    def f(t, y):
        seen.append(float(t))
        return -y

    odeint(f, torch.ones(1, **double), [0.0, 1.0, 1.5], "euler", step=0.4, adjoint=False)
    assert seen == pytest.approx([0, 1 / 3, 2 / 3, 1, 1.25])


@pytest.mark.parametrize("method", METHODS)
def test_decreasing_times_run_backwards(method):
    y0 = torch.tensor([1.0, 0.0], **double)
    y = odeint(rotation, y0, [2.0, 1.0, 0.0], method, step=0.01)
    assert_close(
        y[:, 0], torch.tensor([1.0, math.cos(-1), math.cos(-2)], **double), atol=2e-2, rtol=0
    )


def test_structures_of_tensors_are_solved_like_one_tensor():
    start = {"x": torch.ones(2, 3, **double), "v": torch.zeros(2, 3, **double)}
    as_dict = odeint(lambda t, s: {"v": -s["x"], "x": s["v"]}, start, [0.0, 1.0, 2.0])
    as_tuple = odeint(lambda t, s: (s[1], -s[0]), tuple(start.values()), [0.0, 1.0, 2.0])
    assert as_dict["x"].shape == (3, 2, 3)
    assert_close(as_dict["x"], as_tuple[0])
    assert_close(as_dict["x"][2], torch.full((2, 3), math.cos(2), **double), rtol=0, atol=1e-5)


def test_a_single_number_is_a_state():
    y = odeint(lambda t, y: -y, torch.tensor(1.0, **double), [0, 1])
    assert y.shape == (2,)
    assert y[1].item() == pytest.approx(math.exp(-1), abs=1e-6)


def test_the_step_of_one_interval_is_kept_for_the_next_in_the_backward_pass():
    calls = []

    def f(t, y):
        calls.append(1)
        return -y

    y = odeint(f, torch.ones(1, requires_grad=True, **double), [0.0, 1.0, 2.0, 3.0, 4.0], rtol=1e-4)
    calls.clear()
    y.sum().backward()
    assert len(calls) < 95  # choosing a first step anew in each interval takes 104


def test_float32_states_stay_float32_and_reach_their_accuracy():
    y = odeint(lambda t, y: -y, torch.ones(3), torch.linspace(0, 1, 4), rtol=1e-5, atol=1e-6)
    assert y.dtype == torch.float32
    assert_close(y[:, 0], torch.linspace(0, 1, 4).neg().exp(), rtol=2e-5, atol=0)


def test_the_max_norm_keeps_the_one_hard_sample_of_a_batch_accurate():
    rates = torch.ones(2000, 1, **double)
    rates[0] = 30.0
    exact = lambda norm: abs(  # noqa: E731
        odeint(lambda t, y: (rates * t).cos() * rates, torch.zeros_like(rates), [0.0, 2.0],
               rtol=1e-4, atol=1e-4, norm=norm)[-1, 0, 0] - math.sin(60)
    )  # fmt: skip
    assert exact("max") < 0.2 * exact("rms")


# ---- gradients ----


def gradients(f, y0, t, **settings):
    y0, t = y0.clone().requires_grad_(), t.clone().requires_grad_()
    y = odeint(f, y0, t, **settings)
    weights = torch.linspace(0.5, 1.5, y.numel(), **double).view_as(y).to(y.device)
    parameters = list(f.parameters())
    return torch.autograd.grad((y.sin() * weights).sum(), [y0, t, *parameters])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("times", [[0.0, 0.4, 1.0, 1.7], [1.0, 0.5, -0.3]])
def test_adjoint_gradients_equal_those_through_the_solver(method, times):
    f, y0, t = Swing(), states(3), torch.tensor(times, **double)
    settings = {"method": method, "step": 0.002 if method == "euler" else 0.02, "rtol": 1e-9}
    adjoint = gradients(f, y0, t, **settings)
    through = gradients(f, y0, t, adjoint=False, **settings)
    close = 1e-2 if method == "euler" else 2e-4 if method == "midpoint" else 1e-5
    for ours, other in zip(adjoint, through, strict=True):
        assert_close(ours, other, rtol=close, atol=close)


@pytest.mark.parametrize("adjoint", [True, False])
def test_gradients_by_state_parameters_and_times_equal_finite_differences(adjoint):
    f, y0, t = Swing(), states(1), torch.tensor([0.0, 0.5, 1.3], **double)

    def solution(y0, t, damping):
        with torch.no_grad():
            f.damping.copy_(damping)
        return odeint(f, y0, t, adjoint=adjoint, rtol=1e-11, atol=1e-11)

    def cost(*inputs):
        return float(solution(*inputs).detach().square().sum())

    inputs = [y0, t, torch.tensor(0.3, **double)]
    leaves = [x.clone().requires_grad_() for x in inputs[:2]]
    y = solution(*leaves, inputs[2])
    found = torch.autograd.grad(y.square().sum(), [*leaves, f.damping])
    for place, gradient in enumerate(found):
        for entry in range(gradient.numel()):
            shifted = [[x.clone() for x in inputs] for _ in "+-"]
            shifted[0][place].view(-1)[entry] += 1e-5
            shifted[1][place].view(-1)[entry] -= 1e-5
            slope = (cost(*shifted[0]) - cost(*shifted[1])) / 2e-5
            assert float(gradient.view(-1)[entry]) == pytest.approx(slope, abs=1e-6)


def test_adjoint_gradients_equal_torchdiffeqs():
    torchdiffeq = pytest.importorskip("torchdiffeq")
    f, t = Lorenz(), torch.linspace(0, 0.2, 3, **double)

    def by(solver):
        y0 = states(4, 3).requires_grad_()
        y = solver(f, y0, t, rtol=1e-8, atol=1e-8)
        return torch.autograd.grad(y.square().mean(), [y0, f.rates])

    for ours, theirs in zip(by(odeint), by(torchdiffeq.odeint_adjoint), strict=True):
        assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


def test_the_adjoint_gradient_equals_backprop_through_a_fine_euler_solver():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)).double()
    y0 = states(5)

    def by(**settings):
        end = odeint(lambda t, y: net(y), y0, [0.0, 1.0], **settings)[-1]
        return torch.autograd.grad(end.square().mean(), list(net.parameters()))

    fine = by(method="euler", step=2e-3, adjoint=False)
    for ours, euler in zip(by(), fine, strict=True):
        assert_close(ours, euler, rtol=0, atol=1e-3 * float(euler.abs().max()))


@pytest.mark.parametrize("seminorm", [True, False])
def test_leaving_the_parameters_out_of_the_norm_keeps_the_gradient(seminorm):
    f, y0, t = Swing(), states(3), torch.tensor([0.0, 2.0], **double)
    exact = gradients(f, y0, t, adjoint=False, rtol=1e-11, atol=1e-11)
    for ours, other in zip(gradients(f, y0, t, seminorm=seminorm), exact, strict=True):
        assert_close(ours, other, rtol=1e-4, atol=1e-5)


def test_the_seminorm_takes_fewer_evaluations():
    calls = []

    def count(seminorm):
        rate = torch.tensor(1.0, requires_grad=True, **double)

        def f(t, y):
            calls.append(1)
            return -y + 0.01 * torch.sin(20 * t) * rate * y.detach()  # wiggles in d/d rate only

        y = odeint(f, torch.ones(3, **double), [0.0, 5.0], seminorm=seminorm, rtol=1e-5)
        calls.clear()
        (1e3 * y[-1].sum()).backward()
        return len(calls)

    assert count(True) < count(False)


def test_parameters_of_a_plain_function_are_found():
    rate = torch.tensor(1.5, requires_grad=True, **double)
    raw = torch.tensor(0.2, requires_grad=True, **double)
    outside = raw.exp()  # computed before: its graph is used at every evaluation
    y = odeint(lambda t, y: -rate * outside * y, torch.ones(1, **double), [0.0, 1.0])
    by = torch.autograd.grad(y[-1, 0], [rate, raw])
    k = 1.5 * math.exp(0.2)
    expected = [-math.exp(0.2) * math.exp(-k), -k * math.exp(-k)]
    assert [float(g) for g in by] == pytest.approx(expected, abs=1e-6)


def test_named_parameters_are_differentiated_by_and_no_others():
    rate, used_late = (torch.tensor(x, requires_grad=True, **double) for x in (1.0, 2.0))

    def f(t, y):
        return -(rate if t < 0.5 else used_late) * y

    def by(**settings):
        y = odeint(f, torch.ones(1, **double), [0.0, 0.5, 1.0], "rk4", step=0.05, **settings)
        return torch.autograd.grad(y[-1, 0], [rate, used_late], allow_unused=True)

    assert by()[1] is None
    assert all(g is not None for g in by(parameters=[rate, used_late]))


def test_gradients_through_the_solver_can_be_taken_twice():
    y0 = torch.tensor([0.5], requires_grad=True, **double)
    y = odeint(lambda t, y: y**2, y0, [0.0, 1.0], adjoint=False)[-1]  # y0 / (1 - y0)
    (first,) = torch.autograd.grad(y, y0, create_graph=True)
    (second,) = torch.autograd.grad(first, y0)
    assert_close(first, torch.tensor([4.0], **double), rtol=1e-5, atol=0)
    assert_close(second, torch.tensor([16.0], **double), rtol=1e-4, atol=0)


def test_the_adjoint_keeps_no_steps():
    y0 = torch.zeros(1000, requires_grad=True)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x) or x, lambda x: x):
        odeint(lambda t, y: (y + t).sin(), y0, [0.0, 1.0], "rk4", step=0.01)
    assert sum(x.numel() for x in saved if x.ndim) < 5 * 1000


def test_structures_carry_gradients():
    x = torch.tensor([0.3], requires_grad=True, **double)
    y = odeint(lambda t, s: {"x": s["v"], "v": -s["x"]}, {"x": x, "v": x**2}, [0.0, 1.0])
    (by,) = torch.autograd.grad(y["x"][-1], x)  # x cos 1 + x^2 sin 1
    assert float(by) == pytest.approx(math.cos(1) + 0.6 * math.sin(1), abs=1e-6)


def test_a_constant_slope_has_gradients():
    y0 = torch.zeros(2, requires_grad=True)
    odeint(lambda t, y: torch.ones(2), y0, [0.0, 1.0])[-1].sum().backward()
    assert_close(y0.grad, torch.ones(2))


# ---- bad input ----


def test_a_blow_up_is_reported_with_its_time():
    with pytest.raises(SolverFailed, match=r"at t = 1: the solution blows up .* End before") as e:
        odeint(lambda t, y: y**2, torch.ones(1, **double), [0.0, 2.0])
    assert e.value.at == pytest.approx(1.0, abs=1e-6)


def test_a_stiff_equation_is_reported_with_its_rate_and_a_remedy():
    with pytest.raises(
        SolverFailed, match=r"500 steps at t = 0\.\d+: the equation is stiff .*1e\+05.*radau"
    ):
        odeint(
            lambda t, y: -1e5 * (y - t.cos()), torch.zeros(1, **double), [0.0, 10.0], max_steps=500
        )


def test_too_few_steps_for_a_long_span_are_reported():
    with pytest.raises(SolverFailed, match=r"got 20 steps at t = .*Raise `max_steps`"):
        odeint(lambda t, y: t.cos() + 0 * y, torch.zeros(1), [0.0, 100.0], max_steps=20)
    with pytest.raises(SolverFailed, match="got 20 steps"):  # at once: no list of 10^12 steps
        odeint(lambda t, y: -y, torch.ones(1), [0.0, 1.0], "euler", step=1e-12, max_steps=20)


@pytest.mark.parametrize("method", FIXED)
def test_an_unstable_step_is_reported_with_its_time(method):
    with pytest.raises(SolverFailed, match=r"inf or nan between t = 0 and t = 1000"):
        odeint(lambda t, y: -100 * y, torch.ones(1), [0.0, 1000.0], method, step=1.0)


def test_a_failure_of_the_backward_pass_says_so():
    y0 = torch.tensor([0.0], requires_grad=True, **double)
    y = odeint(lambda t, y: -y * 40, y0, [0.0, 10.0], max_steps=150)
    with pytest.raises(SolverFailed, match=r"odeint \(adjoint\)"):
        (y[-1] * 1e300).sum().backward()


def test_an_f_that_is_not_a_number_is_reported():
    with pytest.raises(SolverFailed, match=r"at t = 0\.5.*not a finite number"):
        odeint(lambda t, y: (0.5 - t).sqrt() - y, torch.ones(1, **double), [0.0, 1.0])


@pytest.mark.parametrize(
    "t, error, said",
    [
        ([0.0, 1.0, 0.5], InvalidData, r"got t\[1\] = 1 before t\[2\] = 0.5"),
        ([0.0, 1.0, 1.0], InvalidData, r"strictly increasing"),
        ([0.0], ShapeMismatch, r"at least two times; got shape \(1,\)"),
        ([[0.0, 1.0]], ShapeMismatch, r"got shape \(1, 2\)"),
        ([0.0, math.nan], InvalidData, r"finite numbers"),
        (["now", "then"], InvalidData, r"`t` must be a row of numbers; got \['now', 'then'\]"),
    ],
)
def test_times_that_make_no_sense_are_refused(t, error, said):
    with pytest.raises(error, match=said):
        odeint(rotation, torch.ones(2), t)


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"method": "dopri"}, r"got 'dopri'. Did you mean `dopri5`\?"),
        ({"method": "adams_bashfort"}, r"Did you mean `adams_bashforth`\?"),
        ({"norm": "mean"}, r"`norm` must be `rms` or `max`"),
        ({"order": 5}, r"`order` must be `1`, `2`, `3` or `4`; got 5"),
        ({"rtol": 1e-9}, r"`rtol` must be at least 4.8e-07 for torch.float32"),
        ({"rtol": math.nan}, r"`rtol` must be"),
        ({"atol": -1.0}, r"`atol` must be at least 0"),
        ({"step": 0.0}, r"`step` must be a positive number"),
        ({"max_steps": 0}, r"`max_steps` must be at least 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, said):
    with pytest.raises(InvalidParameter, match=said):
        odeint(rotation, torch.ones(2), [0.0, 1.0], **settings)


@pytest.mark.parametrize(
    "f, y0, error, said",
    [
        (
            lambda t, y: y[:1],
            torch.ones(2),
            ShapeMismatch,
            r"`f\(t, y\)` must have .* \(2,\); got \(1,\)",
        ),
        (lambda t, y: 1.0, torch.ones(2), ShapeMismatch, r"got float"),
        (lambda t, y: y.double(), torch.ones(2), InvalidData, r"must be torch.float32 on cpu"),
        (
            lambda t, y: (y[0],),
            (torch.ones(2), torch.ones(3)),
            ShapeMismatch,
            r"\[\(2,\), \(3,\)\]",
        ),
        (lambda t, y: {"x": y["y"]}, {"y": torch.ones(2)}, InvalidData, r"of `y0`, `y`; got `x`"),
        (rotation, torch.ones(2, dtype=torch.int64), InvalidData, r"`y0` must hold floating-point"),
        (rotation, [1.0, 2.0], InvalidData, r"`y0` must be a tensor.*got float"),
        (rotation, (torch.ones(1), torch.ones(1, **double)), InvalidData, r"share one type"),
    ],
    ids=["short", "number", "type", "tuple", "keys", "integers", "list", "mixed"],
)
def test_states_and_slopes_that_do_not_fit_are_refused(f, y0, error, said):
    with pytest.raises(error, match=said):
        odeint(f, y0, [0.0, 1.0])


def test_parameters_that_are_no_tensors_are_refused():
    with pytest.raises(InvalidParameter, match=r"`parameters` must be tensors; got float"):
        odeint(rotation, torch.ones(2), [0.0, 1.0], parameters=[1.0])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_start_that_is_not_finite_is_reported(bad):
    with pytest.raises(SolverFailed, match=r"at t = 0"):
        odeint(lambda t, y: -y, torch.tensor([1.0, bad]), [0.0, 1.0])


def test_the_max_norm_needs_a_batch():
    with pytest.raises(ShapeMismatch, match=r"batch as first dimension"):
        odeint(lambda t, y: y, (torch.ones(2, 1), torch.ones(3)), [0.0, 1.0], norm="max")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("method", METHODS)
def test_states_on_a_gpu_stay_there_and_agree(method):
    f, y0, t = Swing(), states(5), torch.tensor([0.0, 0.5, 1.0], **double)
    here = gradients(f, y0, t, method=method, step=0.05)
    there = gradients(f.cuda(), y0.cuda(), t, method=method, step=0.05)
    for a, b in zip(here, there, strict=True):
        assert_close(a, b.cpu(), rtol=1e-6, atol=1e-8)
