"""Optimizers by name."""

import functools

import pytest
import torch
from torch import nn

from castalia.errors import InvalidParameter
from castalia.optim import (
    OPTIMIZERS,
    base_rate,
    build_optimizer,
    closure_kind,
    named_optimizer,
    optimizer_class,
)


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


@pytest.mark.parametrize(
    "name", ["NAdam", "radam", "ADAMAX", "Rprop", "asgd", "Adafactor", "AdamW"]
)
def test_any_class_of_torch_is_found_by_its_name_in_any_case(name):
    made = build_optimizer(name, nn.Linear(1, 1).parameters(), lr=0.2)
    assert type(made).__name__.lower() == name.lower()
    assert optimizer_class(name) is type(made)
    assert made.param_groups[0]["lr"] == 0.2


@pytest.mark.parametrize(
    "given, named",
    [
        (torch.optim.NAdam, "nadam"),
        (torch.optim.AdamW, ("adamw", {"weight_decay": 0.01})),  # torch's own default
        (functools.partial(torch.optim.SGD, momentum=0.8), ("sgd", {"momentum": 0.8})),
        ("lion", "lion"),
        (dict, dict),
    ],
)
def test_what_has_a_name_is_named(given, named):
    assert named_optimizer(given) == named


def test_an_optimizer_lends_its_class_arguments_and_rate():
    given = torch.optim.Adam(nn.Linear(2, 2).parameters(), lr=0.03, betas=(0.8, 0.9), amsgrad=True)
    net = nn.Linear(3, 1)
    made = build_optimizer(given, net.parameters(), lr=base_rate(given, 1.0))
    assert type(made) is torch.optim.Adam
    group = made.param_groups[0]
    assert (group["lr"], group["betas"], group["amsgrad"]) == (0.03, (0.8, 0.9), True)
    assert [id(p) for p in group["params"]] == [id(p) for p in net.parameters()]


def test_an_optimizer_with_groups_of_another_network_is_refused():
    groups = [{"params": [torch.zeros(1)], "lr": lr} for lr in (0.1, 0.2)]
    with pytest.raises(InvalidParameter, match="one group of parameters; got SGD with 2.*'rates'"):
        named_optimizer(torch.optim.SGD(groups))


def test_layers_may_have_rates_of_their_own():
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)))
    names, parameters = zip(*net.named_parameters(), strict=True)
    kind = ("adam", {"rates": {"1": 10.0, "1.0.bias": 0.0}})
    made = build_optimizer(kind, parameters, lr=0.1, names=names)
    rates = {id(p): group["lr"] for group in made.param_groups for p in group["params"]}
    assert [rates[id(p)] for p in parameters] == pytest.approx([0.1, 0.1, 1.0, 0.0, 1.0, 1.0])
    with pytest.raises(InvalidParameter, match=r"must name layers.*got '2'"):
        build_optimizer(("adam", {"rates": {"2": 1.0}}), parameters, lr=0.1, names=names)
    with pytest.raises(InvalidParameter, match=r"number of at least 0; got -1 for '0'"):
        build_optimizer(("adam", {"rates": {"0": -1}}), parameters, lr=0.1, names=names)


def test_weight_decay_needs_an_optimizer_that_has_it():
    with pytest.raises(InvalidParameter, match="must be 0 with optimizer 'rprop'; got 0.1"):
        build_optimizer("rprop", nn.Linear(1, 1).parameters(), lr=0.1, weight_decay=0.1)
