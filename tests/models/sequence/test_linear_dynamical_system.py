"""Linear systems are found again from their inputs and outputs."""

import numpy as np
import pytest
import torch

from castalia import LinearDynamicalSystem
from castalia.errors import InvalidData
from castalia.models.sequence.linear_dynamical_subspace import Realisation, realised, simulated


def true(n=3, u=2, m=2, seed=0):
    random = np.random.default_rng(seed)
    a = random.normal(size=(n, n))
    return Realisation(
        0.85 * a / np.abs(np.linalg.eigvals(a)).max(),
        random.normal(size=(n, u)),
        random.normal(size=(m, n)),
        np.zeros((m, u)),
    )


def impulse(system, steps):
    powers = [np.linalg.matrix_power(system.transition, k) for k in range(steps)]
    return np.stack([system.observation @ p @ system.control for p in powers])


def test_the_impulse_response_is_c_a_to_the_k_b():
    system, random = true(), np.random.default_rng(1)
    x = random.normal(size=(5, 200, 2))
    y = simulated(system, np.array([1.0, -2.0]), torch.from_numpy(x)).numpy()
    model = LinearDynamicalSystem(state=3).fit(x, y)
    np.testing.assert_allclose(model.impulse_response(8), impulse(system, 8), atol=1e-5)
    np.testing.assert_allclose(model.offset_, [1, -2], atol=1e-5)
    eigenvalues = [np.sort_complex(np.linalg.eigvals(a)) for a in (model.transition_, system[0])]
    np.testing.assert_allclose(*eigenvalues, atol=1e-5)
    pulse = np.zeros((1, 8, 2))
    pulse[0, 0, 1] = 1
    answer = model.predict(pulse)[0] - model.offset_
    np.testing.assert_allclose(answer, impulse(system, 8)[:, :, 1], atol=1e-5)


def test_simulation_is_the_recursion():
    system, x = true(), np.random.default_rng(0).normal(size=(700, 2))
    found = simulated(system, np.zeros(2), torch.from_numpy(x)[None])[0].numpy()
    h = np.zeros(3)
    for t, row in enumerate(x):
        h = system.transition @ h + system.control @ row
        np.testing.assert_allclose(found[t], system.observation @ h, atol=1e-9)


def test_more_states_than_needed_do_no_harm():
    system = true(n=1, u=1, m=1)
    found = realised(impulse(system, 12), 3)
    np.testing.assert_allclose(impulse(found, 12), impulse(system, 12), atol=1e-9)


def test_an_unstable_fit_is_shrunk_and_one_channel_may_be_flat():
    t = np.arange(60.0)
    model = LinearDynamicalSystem(state=1).fit(np.ones(60), 1.05**t)
    assert np.abs(np.linalg.eigvals(model.transition_)).max() <= 0.9999 + 1e-12
    assert model.predict(np.ones(7)).shape == (7,)
    lists = [np.ones(20), np.ones(30)]
    assert [part.shape for part in model.fit(lists, lists).predict(lists)] == [(20,), (30,)]


def test_what_does_not_fit_together_is_refused():
    x = np.zeros((3, 20, 1))
    model = LinearDynamicalSystem(state=1)
    with pytest.raises(InvalidData, match="same number of steps in each sequence; got 20 and 19"):
        model.fit(x, np.zeros((3, 19)))
    with pytest.raises(InvalidData, match="more than 40 steps, the lags"):
        LinearDynamicalSystem(lags=40).fit(x, x)
    holed = x.copy()
    holed[1, 4] = np.nan
    with pytest.raises(InvalidData, match="no NaN or infinity; sequence 1 does, first in step 4"):
        model.fit(holed, x)
