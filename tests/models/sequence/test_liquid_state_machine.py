"""Spiking neurons obey their equations, and a liquid of them tells spike patterns apart."""

import math

import numpy as np
import pytest
import torch

from castalia import LiquidStateMachine
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.sequence import (
    DynamicSynapse,
    IntegrateAndFire,
    delta_code,
    latency_code,
    rate_code,
)
from castalia.models.sequence.direct_sequences import read_observations


@pytest.mark.parametrize("refractory", [0.0, 5.0])
def test_the_firing_rate_is_that_of_the_analytic_curve(refractory):
    neuron = IntegrateAndFire(tau=20.0, refractory=refractory, step=0.1)
    currents = torch.tensor([0.9, 1.1, 1.5, 4.0])
    spikes = neuron.run(currents.expand(1, 6000, 4)).sum(dim=1)[0]  # 600 milliseconds
    for current, count in zip(currents.tolist(), spikes.tolist(), strict=True):
        interval = refractory + 20 * math.log(current / (current - 1)) if current > 1 else math.inf
        assert neuron.rate(current) == pytest.approx(1 / interval)
        assert count == pytest.approx(600 / interval, rel=0.02, abs=1)


@pytest.mark.parametrize(
    "use, depression, facilitation, ratio_above_one",
    [(0.5, 800.0, 1.0, False), (0.05, 50.0, 1000.0, True)],
)
def test_the_second_of_two_spikes_is_depressed_or_facilitated(
    use, depression, facilitation, ratio_above_one
):
    synapse = DynamicSynapse(use, depression, facilitation)
    gap, spikes = 20, torch.zeros(1, 21, 1, dtype=torch.float64)
    spikes[0, [0, gap], 0] = 1
    first, second = synapse.run(spikes)[0, [0, gap], 0].tolist()
    u = use + use * (1 - use) * math.exp(-gap / facilitation)
    x = 1 - use * math.exp(-gap / depression)
    assert first == pytest.approx(use)
    assert second == pytest.approx(u * x)
    assert (second > first) == ratio_above_one


def test_numbers_become_spikes_by_rate_by_time_and_by_change():
    random = torch.Generator().manual_seed(0)
    assert rate_code(torch.full((5000,), 0.3), random).mean() == pytest.approx(0.3, abs=0.02)
    times = latency_code(torch.tensor([[0.9, 0.1, 0.5]]), 11).argmax(dim=1)
    assert times.tolist() == [[1, 9, 5]]
    wave = torch.sin(torch.arange(200.0) / 40)[None, :, None]
    up, down = delta_code(wave, 0.05)[0].unbind(dim=1)
    level = 0.05 * (up - down).cumsum(dim=0)
    assert (level - wave[0, :, 0]).abs().max() < 0.12
    with pytest.raises(InvalidParameter, match="`threshold` must be above 0"):
        delta_code(wave, 0.0)


def patterns(n=80, seed=0):
    """Two templates of spikes, each spike moved a little and some lost or added."""
    random = np.random.default_rng(seed)
    templates = np.random.default_rng(7).random((2, 60, 6)) < 0.1
    y = np.arange(n) % 2
    moved = np.stack([np.roll(templates[c], random.integers(-1, 2), axis=0) for c in y])
    kept = moved & (random.random(moved.shape) < 0.9)
    return (kept | (random.random(moved.shape) < 0.01)).astype(float), y


def test_a_liquid_separates_patterns_of_spikes_of_like_rates():
    X, y = patterns()
    assert abs(X[y == 0].mean() - X[y == 1].mean()) < 0.03
    model = LiquidStateMachine(units=80, random_state=0).fit(X[:50], y[:50])
    assert model.score(X[50:], y[50:]) > 0.9
    rate = model.spikes(X[:4]).mean()
    assert 0.005 < rate < 0.4
    still = LiquidStateMachine(units=80, dynamic=False, random_state=0).fit(X[:50], y[:50])
    assert not np.array_equal(still.spikes(X[:4]), model.spikes(X[:4]))
    cut = [x[: 40 + i % 20] for i, x in enumerate(X[:20])]
    alone = np.array([model.decision_function([part])[0] for part in cut])
    np.testing.assert_allclose(model.decision_function(cut), alone, atol=1e-9)


def test_spikes_and_readout_are_those_of_the_equations_neuron_by_neuron():
    X, y = patterns(12)
    weight = np.arange(1.0, 13.0)
    model = LiquidStateMachine(units=20, alpha=0.1, random_state=0).fit(X, y, weight)
    n, seen = 20, []
    for x in X:
        v, rest, current, u, fresh, spikes = (np.full(n, float(i == 4)) for i in range(6))
        mean, trace = np.zeros(n), np.zeros(n)
        for row in x:
            effect = np.zeros(n)
            for i in np.flatnonzero(spikes):  # resources that a spike uses
                u[i] += 0.5 * (1 - u[i])
                effect[i] = u[i] * fresh[i]
                fresh[i] -= effect[i]
            u *= math.exp(-1 / 50)
            fresh = 1 - (1 - fresh) * math.exp(-1 / 1100)
            current = math.exp(-1 / 3) * current + row @ model.inputs_ + effect @ model.weights_
            spikes = np.zeros(n)
            for i in range(n):
                if rest[i] > 0:
                    v[i], rest[i] = 0.0, rest[i] - 1
                    continue
                v[i] = math.exp(-1 / 30) * v[i] + (1 - math.exp(-1 / 30)) * current[i]
                if v[i] >= 1:
                    spikes[i], v[i], rest[i] = 1.0, 0.0, 2.0
            mean, trace = mean + spikes / len(x), math.exp(-1 / 30) * trace + spikes
        seen.append([1, *mean, *trace])
    Z = np.array(seen)
    np.testing.assert_allclose(model._activity(read_observations(X, "test")), Z, atol=1e-9)
    assert 0.05 < Z[:, 1:21].mean() < 0.35
    assert ((model.weights_ >= 0).all(axis=1) | (model.weights_ <= 0).all(axis=1)).all()
    assert 0 < (model.weights_ < 0).any(axis=1).mean() < 0.5  # some inhibit
    signs = 2.0 * (y[:, None] == model.classes_) - 1
    penalty = 0.1 * np.eye(41)
    coef = np.linalg.solve(Z.T @ (weight[:, None] * Z) + penalty, Z.T @ (weight[:, None] * signs))
    np.testing.assert_allclose(model.decision_function(X), (Z @ coef)[:, 1], atol=1e-6)
    assert (model.predict(X) == model.classes_[(Z @ coef).argmax(axis=1)]).all()


def test_rest_weights_and_refusals():
    X, y = patterns(20)
    assert LiquidStateMachine(units=30, encoder="rate", random_state=0).fit(X, y).score(X, y) > 0.5
    with pytest.raises(InvalidData, match="at least two classes; got one class"):
        LiquidStateMachine().fit(X, np.zeros(20))
    with pytest.raises(InvalidData, match="sequences must have 6 channels"):
        LiquidStateMachine(units=9, random_state=0).fit(X, y).predict(X[..., :2])
