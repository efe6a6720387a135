"""Lasso: equal to scikit-learn's, and optimal by its own conditions."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import linear_model as reference

from castalia import Lasso
from castalia.errors import TrainingWarning


def problem(n=60, d=8, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + random.normal(size=d)
    return X, X[:, :3] @ [3.0, -2.0, 1.0] + 0.5 * random.normal(size=n) + 5


def objective(model, X, y):
    error = y - X @ model.coef_ - model.intercept_
    return 0.5 * np.mean(error**2) + model.alpha * np.abs(model.coef_).sum()


@pytest.mark.parametrize("intercept", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("alpha", [2.0, 0.1, 0.01])
@pytest.mark.parametrize("shape", [(60, 8), (40, 90), (80, 300)], ids=str)
def test_coefficients_are_those_of_scikit_learn(shape, alpha, intercept):
    X, y = problem(*shape)
    weight = np.random.default_rng(1).random(len(X))
    ours = Lasso(alpha=alpha, tol=1e-12, fit_intercept=intercept).fit(X, y, weight)
    theirs = reference.Lasso(alpha=alpha, tol=1e-12, max_iter=10**6, fit_intercept=intercept)
    theirs.fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert ours.dual_gap_ <= 1e-12 * np.var(y) * 10


@pytest.mark.parametrize("spoil", ["constant", "scales", "float32", "zero"])
def test_degenerate_columns_are_no_trouble(spoil):
    X, y = problem()
    if spoil == "constant":
        X[:, 3] = 4.2
    elif spoil == "zero":
        X[:, 3] = 0.0
    elif spoil == "scales":
        X = X * [1, 1e4, 1e-4, 1, 1, 1, 1, 1]
    else:
        X = X.astype(np.float32)
    ours = Lasso(alpha=0.05, tol=1e-12).fit(X, y)
    theirs = reference.Lasso(alpha=0.05, tol=1e-12, max_iter=10**5).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-7)


def test_of_two_equal_columns_any_share_will_do():
    X, y = problem()
    X[:, 1] = X[:, 0]
    ours, theirs = Lasso(alpha=0.05).fit(X, y), reference.Lasso(alpha=0.05, tol=1e-10).fit(X, y)
    assert objective(ours, X, y) == pytest.approx(objective(theirs, X, y), abs=1e-7)
    assert ours.coef_[:2].sum() == pytest.approx(theirs.coef_[:2].sum(), abs=1e-5)


@pytest.mark.parametrize("shape", [(60, 8), (50, 400)], ids=["whole", "working set"])
def test_sparse_rows_and_tensors_give_what_dense_rows_give(shape):
    X = sp.random(*shape, density=0.3, random_state=0, format="csr")
    Y = X[:, :2].toarray() * [4, 2] + np.random.default_rng(0).normal(size=(shape[0], 2)) * 0.1
    model = Lasso(alpha=0.01, tol=1e-12)
    dense = model.fit(X.toarray(), Y).coef_
    np.testing.assert_allclose(model.fit(X, Y).coef_, dense, atol=1e-8)
    np.testing.assert_allclose(model.fit(torch.from_numpy(X.toarray()), Y).coef_, dense, atol=1e-8)
    for t in range(2):
        alone = Lasso(alpha=0.01, tol=1e-12).fit(X, Y[:, t])
        np.testing.assert_allclose(alone.coef_, dense[t], atol=1e-8)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    n=st.integers(2, 30),
    d=st.integers(1, 40),
    seed=st.integers(0, 10**6),
    alpha=st.floats(1e-3, 3),
    repeat=st.booleans(),
)
def test_the_slopes_obey_the_kkt_conditions_and_the_gap_bounds_the_excess(
    n, d, seed, alpha, repeat
):
    X, y = problem(n, max(d, 3), seed)
    X = np.column_stack([X, X[:, 0]]) if repeat else X
    model = Lasso(alpha=alpha, tol=1e-10, sweeps=20_000).fit(X, y)
    slope = X.T @ (y - model.predict(X)) / n
    size = 1e-3 * (np.std(y) + 1)
    assert (np.abs(slope) <= alpha + size).all()
    used = model.coef_ != 0
    np.testing.assert_allclose(slope[used], alpha * np.sign(model.coef_[used]), atol=size)
    better = reference.Lasso(alpha=alpha, tol=1e-14, max_iter=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that 2000 sweeps were too few
        better.fit(X, y)
    excess = objective(model, X, y) - objective(better, X, y)
    assert excess <= model.dual_gap_ + 1e-12 * (1 + np.mean(y**2))


def test_the_path_is_that_of_scikit_learn():
    X, y = problem(50, 20)
    alphas, coefs, gaps = Lasso(tol=1e-12).path(X, y, n_alphas=12)
    theirs = reference.lasso_path(
        X - X.mean(0), y - y.mean(), alphas=alphas, tol=1e-12, max_iter=10**5
    )
    np.testing.assert_allclose(coefs, theirs[1], atol=1e-6)
    assert not coefs[:, 0].any()
    assert alphas[-1] / alphas[0] == pytest.approx(1e-3)
    assert (gaps < 1e-9).all()


def test_a_warm_start_begins_where_the_last_fit_ended():
    X, y = problem(50, 20)
    cold = Lasso(alpha=0.01, tol=1e-10).fit(X, y)
    warm = Lasso(alpha=0.01, tol=1e-10, warm_start=True).fit(X, y)
    again = warm.fit(X, y)
    assert again.n_iter_ == 0 < cold.n_iter_
    np.testing.assert_array_equal(again.coef_, cold.coef_)


def test_too_few_sweeps_are_said_with_the_gap():
    X, y = problem(50, 20)
    with pytest.warns(TrainingWarning, match=r"Lasso: the duality gap must fall to 1e-07 .* 1 sw"):
        Lasso(alpha=0.001, sweeps=1).fit(X, y)


def test_highly_correlated_columns_take_few_sweeps():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 1)) + 0.05 * random.normal(size=(200, 30))
    y = X[:, 0] - X[:, 1] + 0.1 * random.normal(size=200)
    model = Lasso(alpha=1e-3, tol=1e-12, sweeps=5000).fit(X, y)
    theirs = reference.Lasso(alpha=1e-3, tol=1e-12, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-5)
    assert model.n_iter_ < theirs.n_iter_ / 2
