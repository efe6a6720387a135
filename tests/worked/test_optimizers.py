"""First steps of optimizers and values of a schedule, computed by hand."""

import pytest
import torch

from castalia.optim import build_optimizer, linear_decay


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
        return torch.optim.SGD(parameters, lr=lr, momentum=a)

    expected = -lr * sum(w * g for w, g in zip(weights, gradients, strict=True))
    assert moves(momentum, gradients, lr)[-1] == pytest.approx(expected)
    if a == 0.9:  # the library's own momentum
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
