"""The posterior of linear regression."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.linear_model import BayesianRidge

from castalia import MAPRegression, Ridge


def problem(n=30, d=3, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + 2
    return X, X @ np.arange(1.0, d + 1) + 0.5 * random.normal(size=n)


def test_mean_and_covariance_are_those_of_scikit_learn_at_its_own_variances():
    X, y = problem()
    theirs = BayesianRidge(fit_intercept=False, tol=1e-10).fit(X, y)
    prior, noise = theirs.lambda_**-0.5, theirs.alpha_**-0.5
    ours = MAPRegression(prior=prior, noise=noise, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.covariance_, theirs.sigma_, rtol=1e-4)
    found, expected = (m.predict(X[:5], return_std=True) for m in (ours, theirs))
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4)


@pytest.mark.parametrize("shape", [(30, 3), (4, 9)], ids=["tall", "wide"])
def test_the_covariance_is_the_inverse_of_the_precision(shape):
    X, y = problem(*shape)
    weight = np.random.default_rng(0).random(len(X)) + 0.1
    model = MAPRegression(prior=2.0, noise=0.3, fit_intercept=False).fit(X, y, weight)
    precision = (X.T * weight) @ X / 0.3**2 + np.eye(shape[1]) / 2.0**2
    np.testing.assert_allclose(model.covariance_, np.linalg.inv(precision), rtol=1e-8, atol=1e-10)


def test_a_flat_prior_on_the_constant_term_is_a_column_of_ones_with_a_huge_prior():
    X, y = problem()
    with_ones = np.column_stack([X, 1e6 * np.ones(len(X))])  # prior deviation 1e6 times the others
    folded = MAPRegression(prior=2.0, noise=0.5, fit_intercept=False).fit(with_ones, y)
    model = MAPRegression(prior=2.0, noise=0.5).fit(X, y)
    new = np.array([[5.0, -1.0, 2.0]])
    mean, std = model.predict(new, return_std=True)
    expected = folded.predict(np.column_stack([new, [[1e6]]]), return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6)
    np.testing.assert_allclose(std, expected[1], rtol=1e-6)


def test_draws_of_the_posterior_spread_as_the_prediction_says():
    X, y = problem()
    model = MAPRegression(prior=3.0, noise=0.5, fit_intercept=False).fit(X, y)
    random = np.random.default_rng(0)
    w = random.multivariate_normal(model.coef_, model.covariance_, size=40_000)
    drawn = w @ [4.0, 0.0, -4.0] + 0.5 * random.normal(size=40_000)
    mean, std = model.predict([[4.0, 0.0, -4.0]], return_std=True)
    assert drawn.mean() == pytest.approx(mean[0], abs=0.02)
    assert drawn.std() == pytest.approx(std[0], rel=0.02)


def test_sparse_rows_tensors_and_several_targets_give_the_same_bars():
    X, y = problem()
    model = MAPRegression(noise=0.5).fit(X, np.column_stack([y, 2 * y]))
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == (30, 2)
    assert std.shape == (30,)
    for rows in (sp.csr_matrix(X), torch.from_numpy(X)):
        np.testing.assert_allclose(model.predict(rows, return_std=True)[1], std)
    np.testing.assert_allclose(model.coef_[0], Ridge(alpha=0.25).fit(X, y).coef_)
