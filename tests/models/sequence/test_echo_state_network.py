"""Echo state networks: the reservoir is what it says, and only the readout is learnt."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch.testing import assert_close

from castalia import EchoStateClassifier, EchoStateNetwork, LinearDynamicalSystem
from castalia.errors import CastaliaWarning, InvalidData, InvalidParameter
from castalia.models.sequence import (
    Reservoir,
    echo_state_property,
    intrinsic_plasticity,
    memory_capacity,
    random_reservoir,
    spectral_radius,
)
from castalia.testing.toys import narma, voices


def nrmse(guess, true):
    return np.sqrt(np.square(guess - true).mean() / np.var(true))


def uniform(t=600, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, t)


def test_a_random_reservoir_is_sparse_symmetric_and_has_the_radius_asked_for():
    reservoir = random_reservoir(500, 2, radius=0.7, connections=15, scale=0.5, seed=3)
    w = reservoir.weights
    assert w.nnz / 500**2 == pytest.approx(0.03, rel=0.05)
    assert w.nnz / 500**2 <= 0.2
    assert (w.data > 0).mean() == pytest.approx(0.5, abs=0.03)
    assert w.data.mean() == pytest.approx(0, abs=3 * w.data.std() / np.sqrt(w.nnz))
    largest = np.abs(np.linalg.eigvals(w.toarray())).max()
    assert largest == pytest.approx(0.7, rel=1e-6)
    assert np.abs(reservoir.inputs).max() <= 0.5
    assert (reservoir.inputs != 0).all()


def test_a_radius_below_one_is_no_contraction():  # WE-85
    matrix = np.array([[0.5, 10.0], [0.0, 0.5]])
    assert spectral_radius(matrix) == 0.5
    assert np.linalg.norm(matrix, 2) == pytest.approx(10.02, abs=0.005)
    base = random_reservoir(2, 1, connections=2, activation="identity")
    reservoir = Reservoir(
        type(base.weights)(matrix), base.inputs, base.bias, base.feedback, base.gain,
        base.threshold, activation="identity",
    )  # fmt: skip
    report = echo_state_property(reservoir)
    assert not report.contractive
    assert report.norm == pytest.approx(10.02, abs=0.005)
    assert report.holds
    assert report.distances[0] > report.distances[-1]


@pytest.mark.parametrize("activation", ["tanh", "identity", "sigmoid"])
@pytest.mark.parametrize("leak", [1.0, 0.3])
def test_states_are_those_of_the_equation(activation, leak):
    g = {"tanh": np.tanh, "identity": lambda x: x, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
    reservoir = random_reservoir(20, 2, bias=0.3, leak=leak, activation=activation, seed=1)
    x = np.random.default_rng(0).normal(size=(3, 15, 2))
    states = reservoir.run(torch.from_numpy(x)).numpy()
    h, w = np.zeros((3, 20)), reservoir.weights.toarray()
    for t in range(15):
        new = g[activation](x[:, t] @ reservoir.inputs.T + h @ w.T + reservoir.bias)
        h = (1 - leak) * h + leak * new
        np.testing.assert_allclose(states[:, t], h, atol=1e-12)
    alone = reservoir.run(torch.from_numpy(x[:1, :9])).numpy()
    np.testing.assert_allclose(alone, states[:1, :9], atol=1e-12)
    later = reservoir.run(torch.from_numpy(x[:, 9:]), state=torch.from_numpy(states[:, 8].copy()))
    np.testing.assert_allclose(later.numpy(), states[:, 9:], atol=1e-12)


def test_a_leak_of_one_is_the_plain_unit_and_an_unscaled_one_settles_at_the_drive_over_the_leak():
    reservoir = random_reservoir(1, 1, radius=0.0, connections=1, scale=0.0, activation="identity",
                                 leak=0.1, scaled=False)  # fmt: skip
    constant = Reservoir(
        reservoir.weights, reservoir.inputs, np.ones(1), reservoir.feedback, reservoir.gain,
        reservoir.threshold, leak=0.1, scaled=False, activation="identity",
    )  # fmt: skip
    states = constant.run(torch.zeros(1, 400, 1))
    assert float(states[0, -1]) == pytest.approx(10, abs=1e-6)  # WE-84


def test_slow_signals_are_foretold_better_with_a_small_leak():
    slow, errors = np.sin(np.arange(3000) / 60), []
    noisy = slow + np.random.default_rng(0).normal(size=3000)
    for leak in (0.1, 1.0):
        model = EchoStateNetwork(units=50, leak=leak, input_scale=0.3, alpha=1.0, random_state=0)
        model.fit(noisy[:1490], slow[10:1500])
        errors.append(nrmse(model.predict(noisy[1500:2900])[100:], slow[1610:2910]))
    assert errors[0] < 0.8 * errors[1]


def test_two_first_states_become_one_below_the_critical_radius_and_not_far_above_it():
    quiet = echo_state_property(random_reservoir(80, 1, radius=0.9, seed=0))
    wild = echo_state_property(random_reservoir(80, 1, radius=2.0, seed=0))
    assert quiet.holds
    assert not wild.holds
    assert quiet.distances[-1] < 1e-6 < 0.1 < wild.distances[-1]
    assert quiet.rate == pytest.approx(np.log(0.9), abs=0.05)
    assert "forgets" in str(quiet)
    driven = echo_state_property(random_reservoir(80, 1, radius=1.1, scale=2.0, seed=0), uniform())
    assert driven.holds  # a strong input holds the units where they are flat


def test_the_readout_is_ridge_regression_on_states_after_the_washout_and_nothing_else_changes():
    x = uniform()
    y = np.stack([np.roll(x, 2), np.roll(x, 1) ** 2], axis=1)
    model = EchoStateNetwork(units=40, alpha=0.3, washout=50, random_state=0).fit(x, y)
    reservoir = model.reservoir()
    states = reservoir.run(torch.from_numpy(x)[None, :, None])[0].numpy()
    z = np.hstack([np.ones((600, 1)), x[:, None], states])
    wanted = Ridge(alpha=0.3, fit_intercept=False).fit(z[50:], y[50:]).coef_.T
    np.testing.assert_allclose(model.coef_, wanted, atol=1e-8)
    np.testing.assert_allclose(model.predict(x), z @ wanted, atol=1e-8)
    other = EchoStateNetwork(units=40, alpha=30.0, washout=50, random_state=0).fit(x, -y)
    for one, two in zip(model.reservoirs_.values(), other.reservoirs_.values(), strict=True):
        np.testing.assert_array_equal(one[0], two[0])


def test_recursive_least_squares_ends_at_ridge_and_goes_on_in_parts():
    x = uniform(300)
    y = np.roll(x, 1)
    settings = {"units": 15, "alpha": 1e-2, "washout": 0, "random_state": 0}
    batch = EchoStateNetwork(**settings).fit(x, y)
    online = EchoStateNetwork(**settings, solver="rls").fit(x, y)
    np.testing.assert_allclose(online.coef_, batch.coef_, atol=1e-6)
    parts = [(x[:150], y[:150]), (x[150:], y[150:])]
    both = EchoStateNetwork(**settings).fit(*[[p[i] for p in parts] for i in range(2)])
    turns = EchoStateNetwork(**settings, solver="rls")
    for part in parts:
        turns.partial_fit(*part)
    np.testing.assert_allclose(turns.coef_, both.coef_, atol=1e-6)
    with pytest.raises(InvalidParameter, match="`solver` must be 'rls'"):
        batch.partial_fit(x, y)


def test_narma_is_followed_better_than_by_a_linear_system():
    X, y = narma(n=1, steps=3000)
    train, test = slice(0, 2000), slice(2000, 3000)
    model = EchoStateNetwork(
        units=200, input_scale=0.5, bias_scale=0.5, spectral_radius=0.95, random_state=0
    ).fit(X[0, train], y[0, train])
    linear = LinearDynamicalSystem(state=10).fit(X[0, train], y[0, train])
    errors = [nrmse(m.predict(X[0, test])[100:], y[0, test][100:]) for m in (model, linear)]
    assert errors[0] < 0.4
    assert errors[0] < 0.75 * errors[1]


def test_a_network_that_feeds_back_its_output_goes_on_with_a_sine():
    y, still = 0.5 * np.sin(np.arange(1200) / 4), np.zeros(1200)
    model = EchoStateNetwork(
        units=50, feedback=1.0, noise=1e-4, spectral_radius=0.8, bias_scale=0.0, random_state=0
    ).fit(still[:800], y[:800])
    assert np.abs(model.reservoir().feedback).max() <= 1
    made = model.generate(400, still[:800], y[:800], future=np.zeros((400, 1)))
    assert np.abs(made - y[800:]).max() < 0.05
    assert made.shape == (400,)


def test_a_network_that_foretells_its_input_runs_freely():
    t = np.arange(900)
    wave = np.sin(t / 5) + 0.5 * np.sin(t / 11)
    model = EchoStateNetwork(
        units=120, alpha=1e-8, input_scale=0.3, bias_scale=0.3, random_state=0
    ).fit(wave[:599], wave[1:600])
    made = model.generate(100, wave[:600])
    assert np.abs(made - wave[600:700]).max() < 0.1
    assert made[0] == pytest.approx(model.predict(wave[:600])[-1])


@pytest.mark.parametrize("settings", [{}, {"depth": 2}, {"bidirectional": True}])
def test_padding_changes_nothing(settings):
    parts = [np.random.default_rng(i).normal(size=(t, 2)) for i, t in enumerate((33, 60, 47))]
    y = [part[:, 0] for part in parts]
    model = EchoStateNetwork(units=20, random_state=0, **settings).fit(parts, y)
    together = model.predict(parts)
    for part, found in zip(parts, together, strict=True):
        np.testing.assert_allclose(model.predict(part), found, atol=1e-9)


def test_deep_reservoirs_are_driven_by_the_one_below_and_backward_ones_know_the_future():
    x = np.random.default_rng(0).normal(size=300)
    ahead = np.roll(x, -2)
    scores = [
        EchoStateNetwork(units=40, bidirectional=both, random_state=0).fit(x, ahead).score(x, ahead)
        for both in (False, True)
    ]
    assert scores[0] < 0.6
    assert scores[1] > 0.95
    deep = EchoStateNetwork(units=10, depth=2, random_state=0).fit(x, x)
    below = deep.reservoir(0).run(torch.from_numpy(x)[None, :, None])
    above = deep.reservoir(1).run(below)[0].numpy()
    z = np.hstack([np.ones((300, 1)), x[:, None], below[0].numpy(), above])
    np.testing.assert_allclose(deep.predict(x), (z @ deep.coef_)[:, 0], atol=1e-9)


def test_a_linear_reservoir_remembers_as_many_inputs_as_it_has_units_and_no_more():
    ring = random_reservoir(40, 1, activation="identity", topology="ring", radius=0.95, seed=0)
    found = memory_capacity(ring)
    assert 37 < found.total <= 40
    assert (found.by_delay >= 0).all()
    assert found.by_delay[:30].min() > 0.9
    squashed = random_reservoir(40, 1, topology="ring", radius=0.95, scale=3.0, seed=0)
    assert memory_capacity(squashed).total < 20


def test_intrinsic_plasticity_leads_sigmoid_outputs_to_an_exponential_law():
    reservoir = random_reservoir(30, 1, activation="sigmoid", scale=2.0, seed=0)
    x = torch.from_numpy(uniform(3000))[None, :, None]
    adapted = intrinsic_plasticity(reservoir, x, target=0.2, lr=5e-3)
    before, after = (r.run(x)[:, 500:].flatten().numpy() for r in (reservoir, adapted))
    assert after.mean() == pytest.approx(0.2, abs=0.03)
    assert divergence(after) < 0.5 * divergence(before)
    normal = intrinsic_plasticity(random_reservoir(30, 1, scale=2.0), x, target=0.2, lr=1e-3)
    assert normal.run(x)[:, 500:].std() == pytest.approx(0.2, abs=0.06)
    with pytest.raises(InvalidParameter, match="sigmoid or tanh"):
        intrinsic_plasticity(random_reservoir(5, 1, activation="identity"), x)


def divergence(y, mean=0.2):
    """Kullback–Leibler divergence of a histogram on (0, 1) from the exponential law."""
    edges = np.linspace(0, 1, 21)
    law = np.diff(-np.exp(-edges / mean))
    share, law = np.histogram(y, edges)[0] / len(y), law / law.sum()
    seen = share > 0
    return (share[seen] * np.log(share[seen] / law[seen])).sum()


def test_histories_are_told_apart_by_a_line_in_the_state_and_not_in_the_input():
    random = np.random.default_rng(0)
    X = random.choice([-1.0, 1.0], size=(200, 6, 1))
    y = (X[:, 1, 0] * X[:, 4, 0] > 0).astype(int)  # exclusive or of two steps
    model = EchoStateClassifier(
        units=100, pool="last", bias_scale=0.5, alpha=1e-3, random_state=0
    ).fit(X[:120], y[:120])
    z = np.hstack([X[:, :, 0], np.ones((200, 1))])
    line = np.linalg.lstsq(z[:120], 2.0 * y[:120] - 1, rcond=None)[0]
    straight = ((z[120:] @ line > 0) == y[120:]).mean()
    assert model.score(X[120:], y[120:]) > 0.9
    assert straight < 0.7


def test_sequences_of_different_lengths_are_classified():
    X, y = voices(n=90)
    ragged = [x[: 20 + i % 13] for i, x in enumerate(X)]
    model = EchoStateClassifier(
        units=50, plasticity=1, pool="mean", bias_scale=1.0, random_state=0
    ).fit(ragged[:60], y[:60])
    assert model.score(ragged[60:], y[60:]) > 0.8
    assert model.decision_function(ragged[:4]).shape == (4, 3)
    np.testing.assert_array_equal(model.predict(ragged)[7:8], model.predict(ragged[7:8]))
    two = EchoStateClassifier(units=20, random_state=0).fit(ragged, np.where(y, "high", "low"))
    assert two.decision_function(ragged[:4]).shape == (4,)
    assert set(two.predict(ragged)) <= {"high", "low"}


def test_what_cannot_be_is_refused_and_a_large_radius_is_warned_of():
    x = np.zeros(30)
    with pytest.warns(CastaliaWarning, match="`spectral_radius` is 1.5; above 1"):
        EchoStateNetwork(units=10, spectral_radius=1.5, random_state=0).fit(x, x)
    with pytest.raises(InvalidData, match="`feedback` must be 0 for a bidirectional"):
        EchoStateNetwork(feedback=1.0, bidirectional=True).fit(x, x)
    with pytest.raises(InvalidData, match="no NaN or infinity; sequence 0 does, first in step 3"):
        EchoStateNetwork().fit(np.where(np.arange(30) == 3, np.nan, 0.0), x)
    model = EchoStateNetwork(units=10, random_state=0).fit(x, np.zeros((30, 2)))
    with pytest.raises(InvalidData, match="`future` must be given, as 2 outputs"):
        model.generate(3, x)
    with pytest.raises(InvalidParameter, match="`connections` must be enough for a loop"):
        [random_reservoir(3, 1, connections=1, seed=seed) for seed in range(50)]


def test_states_on_another_device_are_the_same():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    reservoir, x = random_reservoir(30, 1), torch.from_numpy(uniform(50))[None, :, None]
    assert_close(reservoir.run(x.cuda()).cpu(), reservoir.run(x))
