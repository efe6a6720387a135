"""Nesterov's momentum: the gradient is taken where the momentum would carry the weights."""

import torch
from torch.testing import assert_close

from castalia.optim import build_optimizer

CURVATURE = torch.logspace(-5, 0, 40, dtype=torch.float64)  # largest 1, nearly flat at the end
START = torch.ones(40, dtype=torch.float64)


def gradient(theta):
    return CURVATURE * theta


def loss(theta):
    return float((0.5 * CURVATURE * theta.square()).sum())


def test_torch_s_form_is_the_look_ahead_form_after_a_change_of_variables():
    rate, momentum = 0.3, 0.9
    theta, v = START.clone(), torch.zeros_like(START)
    ahead = START.clone().requires_grad_()
    optimizer = build_optimizer("nesterov", [ahead], lr=rate)
    for _ in range(20):
        v = momentum * v - rate * gradient(theta + momentum * v)
        theta = theta + v
        ahead.grad = gradient(ahead.detach())
        optimizer.step()
        # torch keeps the point where the next gradient will be taken
        assert_close(ahead.detach(), theta + momentum * v)


def descend(steps, accelerated):
    theta = START.clone().requires_grad_()
    optimizer = build_optimizer("nesterov" if accelerated else "sgd", [theta], lr=1.0)
    seen = []
    for k in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["momentum"] = (k - 1) / (k + 2) if accelerated else 0.0
        theta.grad = gradient(theta.detach())
        optimizer.step()
        seen.append(loss(theta.detach()))
    return torch.tensor(seen, dtype=torch.float64)


def test_with_growing_momentum_the_error_falls_as_one_over_k_squared():
    k = torch.arange(1, 401, dtype=torch.float64)
    bound = 2 * START.square().sum() / (k + 1) ** 2  # 2 L |x0 - x*|^2 / (k + 1)^2 with L = 1
    accelerated, plain = descend(400, True), descend(400, False)
    assert (accelerated <= bound).all()
    assert not (plain <= bound).all()  # gradient descent falls as 1/k only
    assert accelerated[-1] < 0.05 * plain[-1]
