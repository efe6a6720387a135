"""Ridge regression: equal to scikit-learn's, in both conventions, with leave-one-out for free."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model as reference
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from castalia import Ridge
from castalia.errors import DataWarning, InvalidParameter


def problem(shape, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=shape) + random.normal(size=shape[1]) * 3
    return X, random.normal(size=(shape[0], 2)) + X[:, :1]


@pytest.mark.parametrize("alpha", [1e-10, 0.3, [0.5, 20.0], 1e6], ids=str)
@pytest.mark.parametrize("intercept", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("shape", [(50, 6), (7, 40), (9, 9)], ids=["tall", "wide", "square"])
def test_coefficients_are_those_of_scikit_learn(shape, intercept, alpha):
    X, Y = problem(shape)
    weight = np.random.default_rng(1).random(len(X))
    ours = Ridge(alpha=alpha, fit_intercept=intercept).fit(X, Y, weight)
    theirs = reference.Ridge(alpha=alpha, fit_intercept=intercept, solver="svd").fit(X, Y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", [(50, 6), (7, 40), (30, 3500)], ids=str)
def test_sparse_rows_give_what_dense_rows_give(shape):
    X = sp.random(*shape, density=0.4, random_state=0, format="csr")
    y = np.random.default_rng(0).normal(size=shape[0])
    ours, theirs = Ridge(alpha=0.5).fit(X, y), reference.Ridge(alpha=0.5).fit(X.toarray(), y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-9)


@pytest.mark.parametrize("spoil", ["collinear", "constant", "scales"])
def test_degenerate_columns_are_no_trouble(spoil):
    X, Y = problem((40, 4))
    if spoil == "collinear":
        X[:, 3] = X[:, 0] - X[:, 1]
    elif spoil == "constant":
        X[:, 3] = 4.2
    else:
        X = X * [1, 1e4, 1e-4, 1]
    ours, theirs = Ridge(alpha=0.1).fit(X, Y), reference.Ridge(alpha=0.1, solver="svd").fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-10)


def test_a_small_penalty_on_collinear_columns_keeps_its_digits():
    X, Y = problem((40, 4))
    X[:, 3] = X[:, 0] - X[:, 1]
    ours = Ridge(alpha=1e-9).fit(X, Y)
    theirs = reference.LinearRegression().fit(X, Y)  # the limit: the solution of smallest norm
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_no_penalty_on_a_singular_system_is_said():
    X, Y = problem((5, 9))
    with pytest.warns(DataWarning, match="Ridge: .*rank 4 of 9"):
        Ridge(alpha=0.0).fit(X, Y)


def test_the_mean_loss_multiplies_alpha_by_the_sum_of_weights():
    X, Y = problem((30, 4))
    weight = np.random.default_rng(1).random(30)
    mean = Ridge(alpha=0.2, loss="mean").fit(X, Y, weight)
    total = Ridge(alpha=0.2 * weight.sum()).fit(X, Y, weight)
    np.testing.assert_allclose(mean.coef_, total.coef_)


@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_gradient_descent_reaches_the_closed_form(loss):
    X, Y = problem((40, 3))
    X -= X.mean(axis=0)
    weight = np.random.default_rng(1).random(40)
    settings = {"alpha": 0.3, "loss": loss}
    walked = Ridge(solver="gd", lr=0.3, epochs=400, **settings).fit(X, Y, weight)
    direct = Ridge(**settings).fit(X, Y, weight)
    np.testing.assert_allclose(walked.coef_, direct.coef_, atol=1e-5)
    np.testing.assert_allclose(walked.intercept_, direct.intercept_, atol=1e-5)


@pytest.mark.parametrize("shape", [(20, 3), (8, 15)], ids=["tall", "wide"])
@pytest.mark.parametrize("intercept", [False, True], ids=["origin", "intercept"])
def test_residuals_without_the_row_are_those_of_refitting_without_it(shape, intercept):
    X, Y = problem(shape)
    model = Ridge(alpha=[0.5, 2.0], fit_intercept=intercept)
    left_out = Y - cross_val_predict(model, X, Y, cv=LeaveOneOut())
    np.testing.assert_allclose(model.loo_residuals(X, Y), left_out, rtol=1e-8)


def test_weighted_residuals_without_the_row_are_those_of_refitting_without_it():
    X, Y = problem((12, 3))
    y, weight = Y[:, 0], np.random.default_rng(3).random(12) + 0.1
    model = Ridge(alpha=0.7)
    keep = ~np.eye(12, dtype=bool)
    left_out = [
        y[i] - Ridge(alpha=0.7).fit(X[k], y[k], weight[k]).predict(X[[i]])[0]
        for i, k in enumerate(keep)
    ]
    np.testing.assert_allclose(model.loo_residuals(X, y, weight), left_out, rtol=1e-8)


def test_alphas_must_match_the_targets():
    X, Y = problem((20, 3))
    with pytest.raises(InvalidParameter, match=r"one for each of 2 targets; got 3"):
        Ridge(alpha=[1.0, 2.0, 3.0]).fit(X, Y)
    with pytest.raises(InvalidParameter, match=r"must be one number with solver='gd'; got 2"):
        Ridge(alpha=[1.0, 2.0], solver="gd").fit(X, Y)
    with pytest.raises(InvalidParameter, match=r"`alpha` must be a number of at least 0"):
        Ridge(alpha=[1.0, -2.0]).fit(X, Y)
