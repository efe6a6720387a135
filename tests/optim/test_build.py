"""Optimizers by name."""

import pytest
import torch
from torch import nn

from castalia.errors import InvalidParameter
from castalia.optim import OPTIMIZERS, build_optimizer, closure_kind


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_name_reduces_the_loss_of_a_toy_problem(name):
    torch.manual_seed(0)
    net, x = nn.Linear(3, 1), torch.randn(50, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.3
    optimizer = build_optimizer(name, net.parameters(), lr=20.0 if name == "adadelta" else 0.05)

    def loss_of(outputs):
        return (outputs - y).square().mean()

    def closure():
        if closure_kind(type(optimizer)) not in (None, "gradients"):
            return net(x), loss_of
        optimizer.zero_grad()
        loss = loss_of(net(x))
        loss.backward()
        return loss.detach()

    first = float(loss_of(net(x)).detach())
    for _ in range(60):
        optimizer.step(closure)
    assert float(loss_of(net(x)).detach()) < 0.6 * first


def test_decay_is_on_matrices_only():
    net = nn.Linear(3, 2)
    groups = build_optimizer("sgd", net.parameters(), lr=0.1, weight_decay=0.5).param_groups
    assert [(g["params"][0].ndim, g["weight_decay"]) for g in groups] == [(2, 0.5), (1, 0.0)]


def test_a_callable_makes_its_own_optimizer():
    made = build_optimizer(torch.optim.NAdam, nn.Linear(1, 1).parameters(), lr=0.2)
    assert type(made) is torch.optim.NAdam
    assert made.defaults["lr"] == 0.2


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(InvalidParameter, match=r"got 'adamm'. Did you mean `adam`"):
        build_optimizer("adamm", nn.Linear(1, 1).parameters(), lr=0.1)


def test_decay_with_lbfgs_points_to_the_penalty():
    with pytest.raises(InvalidParameter, match=r"must be 0 with optimizer 'lbfgs'; got 0.1"):
        build_optimizer("lbfgs", nn.Linear(1, 1).parameters(), lr=0.1, weight_decay=0.1)
