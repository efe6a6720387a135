"""The range test finds usable rates and leaves no trace."""

import copy
import random

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

from castalia import MLPRegressor, Training
from castalia.errors import InvalidData, InvalidParameter
from castalia.optim import LRRangeTest, lr_range_test

SOURCE = torch.Generator().manual_seed(0)
X = torch.randn(64, 3, generator=SOURCE)
Y = X[:, :1].sin() + X[:, 1:2] * X[:, 2:]
BATCHES = list(zip(X.split(16), Y.split(16), strict=True))


def loss(net, batch):
    return (net(batch[0]) - batch[1]).square().mean()


def network():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return nn.Sequential(
            nn.Linear(3, 32), nn.BatchNorm1d(32), nn.Tanh(), nn.Dropout(0.1), nn.Linear(32, 1)
        )


def quadratic(net, batch):
    """Curvatures 1 and 100, so that gradient descent diverges above 2/100."""
    w = net.weight.flatten()
    return 0.5 * (w[0] ** 2 + 100 * w[1] ** 2)


def test_on_a_quadratic_it_finds_where_gradient_descent_breaks():
    net = nn.Linear(2, 1)
    nn.init.ones_(net.weight)
    found = lr_range_test(net, quadratic, [None], optimizer="sgd", low=1e-5, steps=200)
    assert 2 / 100 < found.diverged < 10 * 2 / 100
    assert 1e-4 < found.suggestion < 2 / 100


@pytest.mark.parametrize("seed", range(4))
def test_the_suggestion_is_not_an_accident_of_dropout(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        assert 1e-3 < lr_range_test(network(), loss, BATCHES).suggestion < 1e-1


def test_a_network_trained_at_the_suggestion_learns():
    net = network()
    rate = lr_range_test(net, loss, BATCHES).suggestion
    optimizer, losses = torch.optim.Adam(net.parameters(), lr=rate), []
    for _ in range(120):
        for batch in BATCHES:
            optimizer.zero_grad()
            value = loss(net, batch)
            value.backward()
            optimizer.step()
            losses.append(value.item())
    assert np.mean(losses[-4:]) < 0.5 * np.mean(losses[:4])


def test_rates_grow_geometrically():
    found = lr_range_test(network(), loss, BATCHES, low=1e-4, high=1e-2, steps=5)
    assert found.rates == pytest.approx([1e-4, 1e-4 * 10**0.5, 1e-3, 1e-3 * 10**0.5, 1e-2])
    assert len(found.losses) == len(found.smoothed) == 5
    assert found.diverged is None


def everything(net, optimizer):
    state = optimizer.state_dict()
    return {
        "net": copy.deepcopy(net.state_dict()),
        "grad": [None if p.grad is None else p.grad.clone() for p in net.parameters()],
        "mode": [m.training for m in net.modules()],
        "optimizer": copy.deepcopy(state),
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state()[1],
        "python": random.getstate(),
    }


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize("fails", [False, True], ids=["to the end", "with an error"])
def test_network_optimizer_and_random_states_are_left_bit_for_bit(fails):
    net = network()
    net[3].eval()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    loss(net, BATCHES[0]).backward()
    optimizer.step()
    before = everything(net, optimizer)

    def shaken(net, batch):
        if fails and random.random() < 0.1:
            raise RuntimeError("in the middle")
        return loss(net, batch) + 0.01 * np.random.rand() + 0.01 * torch.rand(())

    if fails:
        with pytest.raises(RuntimeError, match="in the middle"):
            lr_range_test(net, shaken, BATCHES, optimizer=optimizer)
    else:
        lr_range_test(net, shaken, BATCHES, optimizer=optimizer)
    assert same(everything(net, optimizer), before)


def test_a_generator_of_batches_ends_the_test_where_it_ends():
    found = lr_range_test(network(), loss, (batch for batch in BATCHES), steps=50)
    assert len(found.rates) == len(BATCHES)


def test_it_stops_at_the_first_loss_that_is_no_number():
    calls = []

    def breaks(net, batch):
        calls.append(1)
        return loss(net, batch) * (float("nan") if len(calls) == 7 else 1.0)

    found = lr_range_test(network(), breaks, BATCHES, low=1e-5, high=1e-3, steps=20)
    assert len(calls) == 7
    assert len(found.rates) == 6
    assert found.diverged == pytest.approx(1e-5 * 100 ** (6 / 19))


def test_the_suggestion_is_the_steepest_point_but_well_below_divergence():
    rates = tuple(np.geomspace(1e-7, 10, 81).tolist())  # ten a decade
    losses = tuple(1 / (1 + (rate / 1e-3) ** 2) for rate in rates)  # half-way down at 1e-3
    assert LRRangeTest(rates, losses).suggestion == pytest.approx(1e-3)
    assert LRRangeTest(rates, losses, diverged=1.0).suggestion == pytest.approx(1e-3)
    assert LRRangeTest(rates, losses, diverged=5e-3).suggestion == pytest.approx(5e-4)


def test_the_plot_marks_the_suggestion():
    found = lr_range_test(network(), loss, BATCHES, steps=30)
    ax = found.plot()
    assert ax.get_xscale() == "log"
    assert ax.lines[-1].get_xdata()[0] == found.suggestion
    assert found.plot(ax) is ax


@pytest.mark.parametrize(
    "settings, kind, message",
    [
        ({"low": 1.0, "high": 0.1}, InvalidParameter, "`low` must be positive and below `high`"),
        ({"steps": 1}, InvalidParameter, "`steps` must be at least 2; got 1"),
        ({"batches": []}, InvalidData, "`batches` must hold at least one batch"),
        ({"optimizer": "admw"}, InvalidParameter, "Did you mean `adamw`"),
    ],
    ids=["range", "steps", "batches", "optimizer"],
)
def test_wrong_arguments_are_named(settings, kind, message):
    with pytest.raises(kind, match=message):
        lr_range_test(network(), loss, **{"batches": BATCHES, **settings})


def test_a_loss_that_is_no_number_and_an_optimizer_without_a_rate_are_refused():
    net = nn.Linear(2, 1)
    with pytest.raises(InvalidData, match=r"must return a tensor of one number; got \(3, 1\)"):
        lr_range_test(net, lambda net, x: net(x), [torch.ones(3, 2)])
    with pytest.raises(InvalidParameter, match="got Newton, which finds their length itself"):
        lr_range_test(net, lambda net, x: net(x).sum(), [torch.ones(3, 2)], optimizer="newton")


# ---- estimators ----


def test_an_estimator_is_tested_on_its_own_batches_and_left_as_it_was():
    model = MLPRegressor(hidden=(8,), batch_size=16, random_state=0)
    found = lr_range_test(model, X.numpy(), Y[:, 0].numpy(), high=100.0)
    assert not hasattr(model, "module_")
    assert model.training is None
    assert 20 < len(found.rates) <= 100
    assert found.diverged is not None
    assert 1e-4 < found.suggestion < found.diverged
    again = lr_range_test(model, X.numpy(), Y[:, 0].numpy(), high=100.0)
    assert again == found


def test_what_is_not_trained_by_gradients_has_no_range_test():
    with pytest.raises(InvalidParameter, match="got LinearRegression, which has no `training`"):
        lr_range_test(LinearRegression(), X.numpy(), Y[:, 0].numpy())
    model = MLPRegressor(hidden=(4,), training=Training(optimizer="newton"))
    with pytest.raises(InvalidParameter, match="got Newton, which finds their length itself"):
        lr_range_test(model, X.numpy(), Y[:, 0].numpy())
