"""Newton and Gauss-Newton with whole matrices."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.optim import GaussNewton, Newton, build_optimizer


def saddle(w):
    return w[0] ** 2 - w[1] ** 2


def start(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_newton_lands_on_a_saddle_from_which_descent_escapes():
    w = start(1.0, 0.1)
    Newton([w]).step(lambda: saddle(w))
    assert_close(w.detach(), torch.zeros(2, dtype=torch.float64))
    w = start(1.0, 0.1)
    descent = build_optimizer("sgd", [w], lr=0.1)
    for _ in range(50):
        descent.zero_grad()
        saddle(w).backward()
        descent.step()
    assert abs(w[0]) < 1e-3
    assert abs(w[1]) > 100


def test_the_saddle_free_step_goes_away_from_the_saddle():
    w = start(1.0, 0.1)
    Newton([w], saddle_free=True).step(lambda: saddle(w))
    assert_close(w.detach(), torch.tensor([0.0, 0.2], dtype=torch.float64))


def test_damping_is_added_to_every_curvature():
    w = start(1.0, 1.0)
    Newton([w], damping=3.0).step(lambda: w[0] ** 2 / 2 + 5 * w[1] ** 2 / 2)
    assert_close(w.detach(), torch.tensor([1 - 1 / 4, 1 - 5 / 8], dtype=torch.float64))


def test_a_shorter_step_is_the_damped_newton_method():
    w = start(4.0)
    Newton([w], lr=0.25).step(lambda: w[0] ** 2)
    assert w.item() == pytest.approx(3.0)


def test_right_digits_double_near_the_minimum():
    w, errors = start(1.0), []
    optimizer = Newton([w])
    for _ in range(4):
        optimizer.step(lambda: w[0].exp() - 2 * w[0])  # minimum at log 2
        errors.append(abs(w.item() - torch.tensor(2.0, dtype=torch.float64).log().item()))
    assert all(after < before**2 for before, after in zip(errors[:2], errors[1:3], strict=True))


@pytest.mark.parametrize("search", ["backtracking", "strong_wolfe"])
def test_a_search_turns_from_ascent_to_descent(search):
    w = start(1.4)  # f bends downwards here, so the plain step climbs
    before = w.item() ** 4 / 4 - 3 * w.item() ** 2
    Newton([w], line_search=search).step(lambda: (w**4 / 4 - 3 * w**2).sum())
    assert w.item() ** 4 / 4 - 3 * w.item() ** 2 < before
    plain = start(1.4)
    Newton([plain]).step(lambda: (plain**4 / 4 - 3 * plain**2).sum())
    assert plain.item() ** 4 / 4 - 3 * plain.item() ** 2 > before


def test_directions_without_curvature_are_left_alone():
    w = start(3.0, 7.0)
    Newton([w]).step(lambda: w[0] ** 2)
    assert_close(w.detach(), torch.tensor([0.0, 7.0], dtype=torch.float64))


@pytest.mark.parametrize("optimizer", [Newton, GaussNewton])
def test_too_many_parameters_are_sent_to_hessian_free(optimizer):
    with pytest.raises(InvalidParameter, match=r"at most 2,000 parameters.*got 2,001.*HessianFree"):
        optimizer([torch.zeros(2001, requires_grad=True)])


def regression(seed=0):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    x = torch.randn(40, 2, dtype=torch.float64)
    y = torch.sin(x[:, :1] * x[:, 1:])
    return net, (lambda: (net(x), lambda out: (out - y).square().mean()))


def test_linear_least_squares_take_one_step_without_damping():
    torch.manual_seed(0)
    x, y = torch.randn(20, 3, dtype=torch.float64), torch.randn(20, 1, dtype=torch.float64)
    w = torch.zeros(3, 1, dtype=torch.float64, requires_grad=True)
    GaussNewton([w], damping=1e-12).step(lambda: (x @ w, lambda out: (out - y).square().mean()))
    assert_close(w.detach(), torch.linalg.lstsq(x, y).solution)


def test_gauss_newton_never_raises_the_loss():
    net, closure = regression()
    optimizer = GaussNewton(net.parameters())
    losses = [optimizer.step(closure) for _ in range(30)]
    assert all(after <= before for before, after in zip(losses, losses[1:], strict=False))
    assert losses[-1] < 0.02 * losses[0]


def test_a_rejected_step_is_taken_back_and_damping_grows():
    w = start(2.0)
    optimizer = GaussNewton([w], damping=1e-6, attempts=1)
    # The linearised output promises zero, the true one overshoots far.
    optimizer.step(lambda: (torch.atan(5 * w), lambda out: out.square().sum()))
    assert w.item() == 2.0
    assert optimizer.memory["damping"] > 1e-6


def test_gauss_newton_asks_for_outputs():
    w = start(1.0)
    with pytest.raises(InvalidParameter, match=r"GaussNewton.step: .*\(outputs, loss_of\)"):
        GaussNewton([w]).step(lambda: (w**2).sum())
