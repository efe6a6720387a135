"""Polynomials, bumps and waves."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from castalia import BasisRegression, PolynomialRegression
from castalia.errors import DataWarning
from castalia.models.linear.basis_regression import fourier, gaussian, monomials


def test_monomials_are_those_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(5, 3))
    theirs = PolynomialFeatures(4, include_bias=False).fit_transform(X)
    np.testing.assert_allclose(monomials(X, 4), theirs)
    np.testing.assert_allclose(monomials(torch.from_numpy(X), 4).numpy(), theirs)


def test_a_polynomial_fit_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 2)), random.normal(size=60)
    theirs = make_pipeline(PolynomialFeatures(3, include_bias=False), LinearRegression())
    ours = PolynomialRegression(degree=3).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.fit(X, y).predict(X))
    ridge = make_pipeline(PolynomialFeatures(3, include_bias=False), Ridge(alpha=2.0)).fit(X, y)
    shrunk = PolynomialRegression(degree=3, alpha=2.0).fit(X, y)
    np.testing.assert_allclose(shrunk.predict(X), ridge.predict(X))


def test_a_degree_beyond_the_points_is_said():
    x = np.linspace(0, 1, 4)[:, None]
    with pytest.warns(DataWarning, match="PolynomialRegression: .*rank 3 of 6 columns"):
        PolynomialRegression(degree=6).fit(x, x[:, 0])


@pytest.mark.parametrize("basis", ["gaussian", "fourier", "polynomial"])
def test_a_basis_fit_is_ridge_on_its_functions(basis):
    random = np.random.default_rng(0)
    X, y = random.uniform(-1, 3, size=(50, 2)), random.normal(size=50)
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    phi = {
        "gaussian": gaussian(
            X, low[:, None] + span[:, None] * np.linspace(0, 1, 4), span[:, None] / 3
        ),
        "fourier": fourier(X, 4, span),
        "polynomial": monomials(X, 4),
    }[basis]
    theirs = Ridge(alpha=0.1, solver="svd").fit(phi, y)
    ours = BasisRegression(basis=basis, size=4, alpha=0.1).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(phi), rtol=1e-6, atol=1e-8)
    tensor = BasisRegression(basis=basis, size=4, alpha=0.1).fit(torch.from_numpy(X), y)
    np.testing.assert_allclose(tensor.predict(torch.from_numpy(X)), ours.predict(X), atol=1e-8)


def test_bandwidth_and_period_are_used_as_given():
    X, y = np.linspace(0, 1, 30)[:, None], np.random.default_rng(0).normal(size=30)
    phi = gaussian(X, np.linspace(0, 1, 3)[None], np.array([[0.7]]))
    ours = BasisRegression(size=3, bandwidth=0.7, alpha=0.1).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), Ridge(alpha=0.1).fit(phi, y).predict(phi))
    waves = BasisRegression(basis="fourier", size=2, period=0.5).fit(X, y)
    np.testing.assert_allclose(waves.predict(X + 0.5), waves.predict(X), atol=1e-9)


def test_rows_without_weight_do_not_widen_the_range():
    X, y = np.array([[0.0], [0.5], [1.0], [9.0]]), np.array([0.0, 1.0, 0.0, 5.0])
    model = BasisRegression(size=3).fit(X, y, [1.0, 1.0, 1.0, 0.0])
    assert model.high_.tolist() == [1.0]
