"""Parameters that learn at rates of their own: one pass, one optimizer."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.objectives import Layered, SquaredError
from castalia.optim import build_optimizer
from castalia.testing import train_tensors
from castalia.train import Training

X = torch.linspace(-1, 1, 12).reshape(6, 2)
Y = X.sum(dim=1, keepdim=True)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))


def scales(net):
    return [(p, 0.1) for p in net[0].parameters()] + [(p, 1.0) for p in net[2].parameters()]


@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("schedule", [None, "cosine"])
def test_each_layer_moves_as_under_an_optimizer_with_groups(schedule, decay):
    ours, theirs = network(), network()
    training = Training(optimizer="adam", weight_decay=decay, schedule=schedule, device="cpu")
    objective = Layered(SquaredError(), scales)
    train_tensors(ours, objective, X, Y, training=training, epochs=4, lr=0.05)
    groups = [
        {"params": [p for p in theirs[i].parameters() if (p.ndim > 1) == heavy],
         "lr": rate, "weight_decay": decay if heavy else 0.0}
        for i, rate in ((0, 0.005), (2, 0.05)) for heavy in (True, False)
    ]  # fmt: skip
    optimizer = torch.optim.Adam(groups)
    for t in range(4):
        factor = 1.0 if schedule is None else 0.5 * (1 + math.cos(math.pi * t / 4))
        for group, rate in zip(optimizer.param_groups, (0.005, 0.005, 0.05, 0.05), strict=True):
            group["lr"] = rate * factor
        optimizer.zero_grad()
        (theirs(X) - Y).square().mean().backward()
        optimizer.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_optimizers_that_search_along_one_direction_refuse_several_rates():
    parameters = list(network().parameters())
    with pytest.raises(InvalidParameter, match="share one learning rate with optimizer 'lbfgs'"):
        build_optimizer("lbfgs", parameters, lr=0.1, lr_scale=[0.1, 0.1, 1.0, 1.0])


def test_a_function_that_makes_the_optimizer_is_given_groups():
    parameters = list(network().parameters())
    made = build_optimizer(torch.optim.SGD, parameters, lr=0.1, lr_scale=[0.5, 0.5, 1.0, 1.0])
    assert [(g["lr"], len(g["params"])) for g in made.param_groups] == [(0.05, 2), (0.1, 2)]
