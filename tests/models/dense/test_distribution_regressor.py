"""Regression with a likelihood."""

import numpy as np
import pytest
import scipy.stats as st

from castalia import DistributionRegressor, Training
from castalia.errors import InvalidData
from castalia.testing.toys import counts, sine

OWN = {"hidden": (16,), "epochs": 60, "lr": 0.01, "random_state": 0}


def generated(n=1500, seed=0):
    random = np.random.default_rng(seed)
    return random, random.uniform(-1, 1, size=(n, 1))


def test_gaussian_spread_follows_the_data():
    random, X = generated()
    spread = np.exp(X[:, 0])
    model = DistributionRegressor(**OWN).fit(X, 5 + 3 * X[:, 0] + spread * random.normal(size=1500))
    grid = np.array([[-0.8], [0.0], [0.8]])
    np.testing.assert_allclose(model.predict(grid), 5 + 3 * grid[:, 0], atol=0.45)
    np.testing.assert_allclose(model.predict_std(grid), np.exp(grid[:, 0]), rtol=0.25)


def test_laplace_recovers_location_and_scale():
    random, X = generated()
    y = 2 * X[:, 0] + random.laplace(scale=0.5, size=1500)
    model = DistributionRegressor(**OWN, likelihood="laplace").fit(X, y)
    grid = np.array([[-0.5], [0.5]])
    np.testing.assert_allclose(model.predict(grid), [-1, 1], atol=0.2)
    np.testing.assert_allclose(model.predict_std(grid), 0.5 * np.sqrt(2), rtol=0.2)


def test_poisson_recovers_the_rate():
    X, y = counts(1500)
    model = DistributionRegressor(**OWN, likelihood="poisson").fit(X, y)
    grid = np.array([[-0.7], [0.0], [0.7]])
    np.testing.assert_allclose(model.predict(grid), np.exp(1 + grid[:, 0]), rtol=0.15)
    np.testing.assert_allclose(model.predict_std(grid) ** 2, model.predict(grid), rtol=1e-6)


def test_a_mixture_finds_both_answers():
    random, X = generated()
    sign = random.choice([-1.0, 1.0], 1500)
    y = 10 * sign * (1.5 + X[:, 0]) + random.normal(size=1500)
    own = {**OWN, "epochs": 100}
    model = DistributionRegressor(**own, likelihood="mixture", components=2).fit(X, y)
    drawn = model.sample(np.zeros((1, 1)), n=2000, random_state=0)[:, 0]
    assert np.median(drawn[drawn > 0]) == pytest.approx(15, abs=1.5)
    assert np.median(drawn[drawn < 0]) == pytest.approx(-15, abs=1.5)
    assert (drawn > 0).mean() == pytest.approx(0.5, abs=0.1)
    single = DistributionRegressor(**OWN).fit(X, y)
    assert model.log_likelihood(X, y).mean() > single.log_likelihood(X, y).mean() + 0.5


@pytest.mark.parametrize("likelihood, family", [("gaussian", st.norm), ("laplace", st.laplace)])
def test_the_log_likelihood_is_a_density_in_the_units_of_y(likelihood, family):
    X, y = sine(200)
    y = 1000 + 50 * y
    model = DistributionRegressor(**{**OWN, "epochs": 5}, likelihood=likelihood).fit(X, y)
    scale = model.predict_std(X) / (1 if likelihood == "gaussian" else np.sqrt(2))
    expected = family(model.predict(X), scale).logpdf(y)
    np.testing.assert_allclose(model.log_likelihood(X, y), expected, atol=1e-6)


def test_samples_have_the_predicted_mean_and_spread_and_a_seed():
    X, y = sine(200)
    model = DistributionRegressor(**{**OWN, "epochs": 10}).fit(X, y)
    drawn = model.sample(X[:5], n=4000, random_state=1)
    assert drawn.shape == (4000, 5)
    np.testing.assert_allclose(drawn.mean(axis=0), model.predict(X[:5]), atol=0.05)
    np.testing.assert_allclose(drawn.std(axis=0), model.predict_std(X[:5]), rtol=0.1)
    assert np.array_equal(drawn, model.sample(X[:5], n=4000, random_state=1))


@pytest.mark.parametrize("likelihood", ["gaussian", "laplace", "poisson", "mixture"])
def test_several_targets_at_once(likelihood):
    X, y = counts(200)
    Y = np.column_stack([y, 2 * y + 1])
    model = DistributionRegressor(**{**OWN, "epochs": 20}, likelihood=likelihood).fit(X, Y)
    assert model.predict(X).shape == model.predict_std(X).shape == (200, 2)
    assert model.log_likelihood(X, Y).shape == (200,)
    assert model.sample(X[:3], n=7, random_state=0).shape == (7, 3, 2)


def test_negative_counts_are_refused():
    X, y = sine(50)
    with pytest.raises(InvalidData, match="counts or rates of at least 0 .*'poisson'; got -"):
        DistributionRegressor(likelihood="poisson").fit(X, y)


def test_given_validation_rows_use_the_same_scale():
    X, y = counts(300)
    for likelihood in ("gaussian", "poisson"):
        training = Training(validation=(X[200:], y[200:]), precision="float64")
        model = DistributionRegressor(
            **{**OWN, "epochs": 3}, likelihood=likelihood, training=training
        )
        model.fit(X[:200], y[:200])
        shift = np.log(model.target_scale_[0])
        mean = -model.log_likelihood(X[200:], y[200:]).mean() - shift
        assert model.history_[-1]["val_loss"] == pytest.approx(mean, abs=1e-6)
