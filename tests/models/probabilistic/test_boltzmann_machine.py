"""Boltzmann machines against sums over every state."""

import itertools

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from castalia import BoltzmannMachine
from castalia.errors import InvalidData, InvalidParameter
from castalia.nets.probabilistic import BoltzmannNetwork
from castalia.objectives.pseudo_likelihood import PseudoLikelihood
from castalia.protocols import Batch

D = 5
STATES = torch.tensor(list(itertools.product((0.0, 1.0), repeat=D)), dtype=torch.float64)


def network(seed=0, d=D, scale=1.0):
    net = BoltzmannNetwork(d).double()
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        net.upper.copy_(scale * torch.randn(d, d, generator=source))
        net.bias.copy_(scale * torch.randn(d, generator=source))
    return net


def probabilities(net):
    u, b = net.upper.detach().triu(1), net.bias.detach()
    logs = torch.stack([x @ u @ x + b @ x for x in STATES])  # minus the energy
    return logs.softmax(dim=0), logs.logsumexp(dim=0)


def fitted(net):
    machine = BoltzmannMachine(random_state=0)
    machine.coupling_ = net.coupling.detach().numpy()
    machine.bias_ = net.bias.detach().numpy()
    machine.n_features_in_ = len(machine.bias_)
    return machine


def test_energy_conditionals_and_partition_function_equal_enumeration():
    net = network()
    p, log_z = probabilities(net)
    assert_close(net.log_z().detach(), log_z, rtol=0, atol=1e-12)
    assert_close((-net.free_energy(STATES)).detach() - log_z, p.log(), rtol=0, atol=1e-12)
    for i in range(D):
        rest = [j for j in range(D) if j != i]
        for x, odds in zip(STATES, net(STATES).detach(), strict=True):
            same = (STATES[:, rest] == x[rest]).all(dim=1)
            exact = p[same & (STATES[:, i] == 1)].sum() / p[same].sum()
            assert_close(odds[i].sigmoid(), exact, rtol=0, atol=1e-12)


def test_gibbs_keeps_the_distribution_and_reaches_it():
    net = network(1)
    p, _ = probabilities(net)
    rows = fitted(net).sample(20_000, steps=30, random_state=0)
    codes = (rows @ 2 ** np.arange(D - 1, -1, -1)).astype(int)
    counts = np.bincount(codes, minlength=2**D) / len(rows)
    assert np.abs((counts - p.numpy()) / np.sqrt(p.numpy() / len(rows))).max() < 4.5
    np.testing.assert_allclose(rows.mean(axis=0), (p[:, None] * STATES).sum(dim=0), atol=0.02)


def test_the_loss_is_minus_the_log_pseudo_likelihood():
    net = network(2)
    machine = fitted(net)
    loss = PseudoLikelihood().terms(net, Batch(STATES), "train")["loss"]
    assert float(loss.detach()) == pytest.approx(
        -machine.pseudo_likelihood(STATES.numpy()).mean(), abs=1e-12
    )
    p, _ = probabilities(net)
    x = STATES[11]
    total = 0.0
    for i in range(D):
        rest = [j for j in range(D) if j != i]
        same = (STATES[:, rest] == x[rest]).all(dim=1)
        total += float((p[11] / p[same].sum()).log())
    assert machine.pseudo_likelihood(STATES[11:12].numpy())[0] == pytest.approx(total, abs=1e-10)


@pytest.mark.parametrize("method", ["pseudo", "contrastive"])
def test_planted_weights_are_learnt_back(method):
    net = network(3, scale=0.7)
    p, _ = probabilities(net)
    rows = STATES[torch.multinomial(p, 4000, True, generator=torch.Generator().manual_seed(0))]
    settings = {"epochs": 20, "lr": 0.15, "batch_size": 400} if method == "contrastive" else {}
    machine = BoltzmannMachine(method=method, alpha=0.0, random_state=0, **settings)
    machine.fit(rows.numpy())
    tolerance = 0.3 if method == "pseudo" else 0.4
    np.testing.assert_allclose(machine.coupling_, net.coupling.detach(), atol=tolerance)
    best = float((p * p.log()).sum())  # minus the entropy: no model scores more
    assert best - 0.03 < machine.score(rows.numpy()) < best + 0.03


def test_many_columns_are_annealed_within_the_error():
    net = BoltzmannNetwork(24).double()
    with torch.no_grad():
        net.upper[0, 1], net.upper[2, 3] = 1.5, -2.0  # two pairs, the rest alone
        net.bias[:] = 0.2
    pairs = [1 + 2 * np.exp(0.2) + np.exp(0.4 + w) for w in (1.5, -2.0)]
    exact = np.log(pairs).sum() + 20 * np.log1p(np.exp(0.2))
    found = fitted(net).log_partition(runs=100, betas=50)
    assert found.low < exact < found.high
    assert found.high - found.low < 0.2
    with pytest.raises(InvalidParameter, match="up to 20 units; got 24"):
        net.log_z()


def test_gaps_are_filled_from_the_other_columns():
    random = np.random.default_rng(0)
    a = random.integers(0, 2, 600)
    X = np.stack([a, np.where(random.random(600) < 0.1, 1 - a, a), random.integers(0, 2, 600)], 1)
    machine = BoltzmannMachine(random_state=0).fit(X)
    holed = X[:200].astype(float)
    holed[:, 0] = np.nan
    filled = machine.impute(holed, steps=50)
    assert (filled[:, 0] == X[:200, 0]).mean() > 0.85
    assert (filled[:, 1:] == X[:200, 1:]).all()


def test_weights_that_overflowed_are_named():
    machine = fitted(network())
    machine.coupling_ = np.full((D, D), np.inf)
    with pytest.raises(InvalidData, match="weights must be finite; some overflowed"):
        machine.sample(2)
