"""Conjugate gradients."""

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.optim import ConjugateGradient


def quadratic(dimensions=6, condition=50.0, **settings):
    """A rotated quadratic, its optimizer and its closure."""
    torch.manual_seed(1)
    turn, _ = torch.linalg.qr(torch.randn(dimensions, dimensions, dtype=torch.float64))
    curvatures = torch.linspace(1, condition, dimensions, dtype=torch.float64)
    Q = turn @ curvatures.diag() @ turn.T
    w = torch.zeros(dimensions, dtype=torch.float64, requires_grad=True)
    optimizer = ConjugateGradient([w], **settings)

    def closure():
        optimizer.zero_grad()
        loss = 0.5 * w @ Q @ w - w.sum()
        loss.backward()
        return loss.detach()

    return Q, w, optimizer, closure


def gradient(Q, w):
    return Q @ w.detach() - 1


@pytest.mark.parametrize("formula", ["polak_ribiere", "fletcher_reeves"])
def test_a_quadratic_is_solved_in_as_many_steps_as_dimensions(formula):
    Q, w, optimizer, closure = quadratic(formula=formula, line_search="exact")
    directions = []
    for _ in range(6):
        optimizer.step(closure)
        directions.append(optimizer.memory["direction"])
    assert gradient(Q, w).norm() < 1e-9
    d = torch.stack(directions)
    products = d @ Q @ d.T
    scale = products.diagonal().sqrt()
    conjugacy = products / scale / scale[:, None] - torch.eye(6)
    assert conjugacy.abs().max() < 1e-8


def test_it_makes_the_moves_of_linear_conjugate_gradients():
    Q, w, optimizer, closure = quadratic(line_search="exact", formula="fletcher_reeves")
    x = torch.zeros(6, dtype=torch.float64)
    r = 1 - Q @ x
    d = r
    for _ in range(5):
        optimizer.step(closure)
        alpha = r @ r / (d @ Q @ d)
        x, new = x + alpha * d, r - alpha * Q @ d
        d, r = new + (new @ new / (r @ r)) * d, new
        assert_close(w.detach(), x, rtol=1e-7, atol=1e-9)


def test_steepest_descent_with_exact_search_turns_by_right_angles():
    Q, w, optimizer, closure = quadratic(formula="steepest", line_search="exact")
    before = gradient(Q, w)
    for _ in range(6):
        optimizer.step(closure)
        after = gradient(Q, w)
        cosine = before @ after / (before.norm() * after.norm())
        assert abs(cosine) < 1e-7
        before = after


def test_iterations_in_one_step_save_evaluations_and_change_nothing_else():
    _, one, single, closure_one = quadratic()
    _, five, several, closure_five = quadratic(iterations=5)
    for _ in range(5):
        single.step(closure_one)
    several.step(closure_five)
    assert_close(one.detach(), five.detach(), rtol=0, atol=0)
    assert several.evaluations == single.evaluations - 4


def test_it_restarts_after_as_many_iterations_as_dimensions():
    w = torch.tensor([-1.0, 1.0], requires_grad=True)
    optimizer, since = ConjugateGradient([w], formula="fletcher_reeves"), []

    def closure():
        optimizer.zero_grad()
        loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
        loss.backward()
        return loss.detach()

    for _ in range(5):
        optimizer.step(closure)
        since.append(optimizer.memory["since"])
    assert since == [1, 2, 1, 2, 1]
    assert_close(optimizer.memory["direction"], -optimizer.memory["gradient"])


def test_at_the_minimum_it_stays():
    w = torch.zeros(2, requires_grad=True)
    optimizer = ConjugateGradient([w])

    def closure():
        optimizer.zero_grad()
        loss = w.square().sum()
        loss.backward()
        return loss.detach()

    assert optimizer.step(closure) == 0.0
    assert not w.any()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"formula": "hestenes"}, "`formula` must be one of .*got 'hestenes'"),
        ({"line_search": "none"}, "`line_search` must be one of .*got 'none'"),
        ({"iterations": 0}, "`iterations` must be a number of at least 1; got 0"),
        ({"lr": -1.0}, "`lr` must be a number of at least 0; got -1.0"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_named(settings, message):
    with pytest.raises(InvalidParameter, match=f"ConjugateGradient: {message}"):
        ConjugateGradient([torch.ones(1, requires_grad=True)], **settings)
