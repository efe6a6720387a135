"""First steps of optimizers and values of a schedule, computed by hand."""

import pytest
import torch

from castalia.optim import ConjugateGradient, Newton, build_optimizer, linear_decay


def moves(kind, gradients, lr):
    """Return how far one parameter moves in each step, given its gradients."""
    parameter = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = build_optimizer(kind, [parameter], lr=lr)
    places = [0.0]
    for gradient in gradients:
        parameter.grad = torch.tensor([gradient], dtype=torch.float64)
        optimizer.step()
        places.append(parameter.item())
    return [after - before for before, after in zip(places, places[1:], strict=False)]


@pytest.mark.parametrize("a, weights", [(0.1, (0.01, 0.1, 1.0)), (0.9, (0.81, 0.9, 1.0))])
def test_momentum_remembers_old_gradients_with_falling_weight(a, weights):
    gradients, lr = (3.0, -5.0, 7.0), 0.01

    def momentum(parameters, lr):
        made = build_optimizer("momentum", parameters, lr=lr)
        assert made.param_groups[0]["momentum"] == 0.9
        made.param_groups[0]["momentum"] = a
        return made

    expected = -lr * sum(w * g for w, g in zip(weights, gradients, strict=True))
    assert moves(momentum, gradients, lr)[-1] == pytest.approx(expected)
    if a == 0.9:
        assert moves("momentum", gradients, lr)[-1] == pytest.approx(expected)


@pytest.mark.parametrize("gradient", [0.01, 10.0])
def test_the_first_step_of_adagrad_has_the_length_of_the_rate(gradient):
    # With the root of the summed squares. Without it the steps would be 10 and 0.01.
    assert moves("adagrad", [gradient], 0.1) == pytest.approx([-0.1])


def test_later_steps_of_adagrad_divide_by_the_root_of_the_sum():
    steps = moves("adagrad", [3.0, 4.0], 0.1)
    assert steps == pytest.approx([-0.1, -0.1 * 4 / 5])


@pytest.mark.parametrize("gradient", [0.3, -0.3, 30.0])
def test_the_first_step_of_adam_has_the_length_of_the_rate(gradient):
    step = -1e-3 if gradient > 0 else 1e-3
    assert moves("adam", [gradient], 1e-3) == pytest.approx([step], rel=1e-6)


def test_adam_follows_its_equations_for_three_steps():
    gradients, lr, b1, b2 = [0.3, -0.2, 0.7], 1e-3, 0.9, 0.999
    m = v = 0.0
    expected = []
    for k, g in enumerate(gradients, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        expected.append(-lr * (m / (1 - b1**k)) / ((v / (1 - b2**k)) ** 0.5 + 1e-8))
    assert moves("adam", gradients, lr) == pytest.approx(expected)


@pytest.mark.parametrize("k, rate", [(0, 0.1), (50, 0.0505), (100, 0.001), (150, 0.001)])
def test_linear_decay_reaches_its_floor_and_stays(k, rate):
    assert 0.1 * linear_decay(tau=100, floor=0.01)(k, 1000) == pytest.approx(rate)


def descend(kind, lr, curvatures, steps=5000, small=1e-6):
    """Return how many steps a quadratic takes to its minimum, or None if it never gets there."""
    curvatures = torch.tensor(curvatures, dtype=torch.float64)
    place = torch.ones_like(curvatures, requires_grad=True)
    optimizer = build_optimizer(kind, [place], lr=lr)
    for step in range(1, steps + 1):
        place.grad = curvatures * place.detach()
        optimizer.step()
        if place.detach().norm() < small:
            return step
    return None


def test_gradient_descent_diverges_just_above_two_over_the_largest_curvature():
    assert descend("sgd", 0.99 * 2 / 10, [1.0, 10.0]) is not None
    assert descend("sgd", 1.01 * 2 / 10, [1.0, 10.0]) is None


def test_momentum_needs_fewer_steps_than_gradient_descent_in_a_narrow_valley():
    plain = descend("sgd", 2 / 101, [1.0, 100.0])  # its best rate for these curvatures
    assert descend("momentum", 0.02, [1.0, 100.0]) < plain / 2


def test_both_forms_of_momentum_make_the_same_moves():
    gradients, lr, a = [3.0, -5.0, 7.0, 0.5, -2.0], 0.01, 0.9
    v = m = 0.0
    velocity, accumulated = [], []
    for g in gradients:
        v, m = a * v - lr * g, a * m + lr * g
        velocity.append(v)
        accumulated.append(-m)
    assert velocity == pytest.approx(accumulated)
    assert moves("momentum", gradients, lr) == pytest.approx(velocity)


def test_with_a_constant_gradient_the_corrected_moments_are_exact_at_every_step():
    assert moves("adam", [0.3] * 20, 1e-3) == pytest.approx([-1e-3] * 20, rel=1e-6)


@pytest.mark.parametrize(
    "kind, even", [("sgd", False), ("adagrad", True), ("rmsprop", True), ("adam", True)]
)
def test_adaptive_methods_take_equal_steps_on_a_badly_scaled_problem(kind, even):
    small, large = (abs(moves(kind, [gradient], 0.01)[0]) for gradient in (1e-2, 1e3))
    assert (small == pytest.approx(large, rel=1e-4)) is even


def quadratic(w):
    """x Q x / 2 - b x with Q = diag(1, 10, 100) and b = ones."""
    curvatures = torch.tensor([1.0, 10.0, 100.0], dtype=w.dtype)
    return 0.5 * (curvatures * w * w).sum() - w.sum()


def test_newton_solves_a_quadratic_in_one_step():
    w = torch.tensor([7.0, -3.0, 0.5], dtype=torch.float64, requires_grad=True)
    Newton([w]).step(lambda: quadratic(w))
    assert w.tolist() == pytest.approx([1.0, 0.1, 0.01], rel=1e-14)


@pytest.mark.parametrize("formula", ["polak_ribiere", "fletcher_reeves"])
def test_conjugate_gradients_have_the_residuals_of_the_notes(formula):
    w = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = ConjugateGradient([w], formula=formula, line_search="exact")

    def closure():
        optimizer.zero_grad()
        loss = quadratic(w)
        loss.backward()
        return loss.detach()

    residuals = []
    for _ in range(3):
        optimizer.step(closure)
        closure()
        residuals.append(w.grad.norm().item())
    assert residuals[:2] == pytest.approx([2.0925, 1.1842], abs=5e-5)
    assert residuals[2] < 1e-12


def test_the_direction_of_conjugate_gradients_begins_with_minus_the_gradient():
    # The notes print d = g + beta d beside the step w + alpha d, which climbs.
    w = torch.tensor([2.0, 1.0], dtype=torch.float64, requires_grad=True)
    optimizer = ConjugateGradient([w], formula="fletcher_reeves", line_search="exact")

    def closure():
        optimizer.zero_grad()
        loss = w[0] ** 2 + 5 * w[1] ** 2
        loss.backward()
        return loss.detach()

    optimizer.step(closure)
    first = optimizer.memory["direction"]
    assert first.tolist() == [-4.0, -10.0]
    closure()
    gradient, before = w.grad.clone(), -first
    optimizer.step(closure)
    beta = gradient @ gradient / (before @ before)
    expected = -gradient + beta * first
    assert optimizer.memory["direction"].tolist() == pytest.approx(expected.tolist())


def rosenbrock_by_lbfgs(steps):
    """Places, gradients and states of the optimizer "lbfgs", one iteration a step."""
    w = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    optimizer = build_optimizer("lbfgs", [w], lr=1.0)
    exact = {"max_iter": 1, "max_eval": 30, "tolerance_grad": 0, "tolerance_change": 0}
    optimizer.param_groups[0].update(exact)

    def closure():
        optimizer.zero_grad()
        loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss.detach()

    places = []
    for _ in range(steps):
        optimizer.step(closure)
        places.append(w.detach().clone())
    return places, optimizer.state[w]


def test_the_quasi_newton_matrix_meets_the_secant_equation():
    _, state = rosenbrock_by_lbfgs(6)
    gradient = state["prev_flat_grad"]
    # The inverse Hessian that the stored pairs stand for, by the dense BFGS formula.
    inverse = state["H_diag"] * torch.eye(2, dtype=torch.float64)
    for y, s in zip(state["old_dirs"], state["old_stps"], strict=True):
        left = torch.eye(2, dtype=torch.float64) - torch.outer(s, y) / (y @ s)
        inverse = left @ inverse @ left.T + torch.outer(s, s) / (y @ s)
    assert (inverse @ y).tolist() == pytest.approx(s.tolist())
    assert (-inverse @ gradient).tolist() == pytest.approx(state["d"].tolist())


def test_quasi_newton_converges_superlinearly_on_rosenbrock():
    places, _ = rosenbrock_by_lbfgs(45)
    errors = [float((place - 1).norm()) for place in places]
    errors = errors[: next(i for i, e in enumerate(errors) if e < 1e-9) + 1]
    early, late = errors[-9] / errors[-5], errors[-5] / errors[-1]  # over four steps each
    assert late > early**2  # a linear rate would gain the same factor twice


def nesterov_by_hand(curvatures, start, lr, momenta):
    """The gradient taken at theta + a v, as the notes write it; yields theta + a v."""
    theta, v = start.clone(), torch.zeros_like(start)
    for a in momenta:
        v = a * v - lr * curvatures * (theta + a * v)
        theta = theta + v
        yield theta + a * v


def test_torchs_nesterov_walks_through_the_points_ahead():
    curvatures = torch.tensor([1.0, 30.0], dtype=torch.float64)
    place = torch.ones(2, dtype=torch.float64, requires_grad=True)
    optimizer = build_optimizer("nesterov", [place], lr=0.01)
    ahead = nesterov_by_hand(curvatures, place.detach(), 0.01, [0.9] * 20)
    for expected in ahead:
        place.grad = curvatures * place.detach()
        optimizer.step()
        assert place.tolist() == pytest.approx(expected.tolist())


def test_rmsprop_follows_its_recursion():
    gradients, lr, rho, expected, r = [0.5, -2.0, 4.0], 0.01, 0.99, [], 0.0
    for g in gradients:
        r = rho * r + (1 - rho) * g * g
        expected.append(-lr * g / (r**0.5 + 1e-8))
    assert moves("rmsprop", gradients, lr) == pytest.approx(expected)


def test_rmsprop_goes_on_where_adagrad_stalls_after_a_change_of_scale():
    gradients = [1000.0] * 50 + [0.01] * 1500  # the scale falls by five orders of magnitude
    last = {kind: abs(moves(kind, gradients, 0.01)[-1]) for kind in ("adagrad", "rmsprop")}
    assert last["rmsprop"] > 1e4 * last["adagrad"]
