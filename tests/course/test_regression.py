"""Linear regression as the course has it: formulas, limits and counter-examples."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from castalia import (
    BasisRegression,
    Lasso,
    LinearRegression,
    MAPRegression,
    MLPRegressor,
    PolynomialRegression,
    RandomFourierFeatures,
    Ridge,
    Training,
)
from castalia.objectives import SquaredError
from castalia.protocols import Batch

CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
XOR = np.array([0.0, 1.0, 1.0, 0.0])


def problem(n=40, d=4, noise=0.3, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, X @ random.normal(size=d) + 1.5 + noise * random.normal(size=n)


# ---- least squares ----


def test_noiseless_data_give_back_their_weights():
    X, _ = problem()
    w = np.array([1.0, -2.0, 0.5, 3.0])
    model = LinearRegression().fit(X, X @ w - 0.7)
    np.testing.assert_allclose(model.coef_, w, atol=1e-6)
    assert model.intercept_ == pytest.approx(-0.7, abs=1e-6)


def test_the_gradient_of_the_squared_error_is_that_of_finite_differences():
    X, y = (torch.from_numpy(part) for part in problem())
    layer = LinearRegression().fit(X, y).module_
    with torch.no_grad():
        layer.weight += 0.3
    batch = Batch(X, y[:, None])
    SquaredError().terms(layer, batch, "train")["loss"].backward()

    def loss(j, h):
        with torch.no_grad():
            layer.weight[0, j] += h
            value = SquaredError().terms(layer, batch, "train")["loss"].item()
            layer.weight[0, j] -= h
        return value

    numeric = [(loss(j, 1e-5) - loss(j, -1e-5)) / 2e-5 for j in range(4)]
    np.testing.assert_allclose(layer.weight.grad[0].numpy(), numeric, rtol=1e-6)


def test_a_bias_is_a_weight_on_a_column_of_ones():
    X, y = problem()
    explicit = LinearRegression().fit(X, y)
    ones = np.column_stack([np.ones(len(X)), X])
    folded = LinearRegression(fit_intercept=False).fit(ones, y)
    np.testing.assert_allclose(folded.predict(ones), explicit.predict(X), atol=1e-12)
    np.testing.assert_allclose(folded.coef_, [explicit.intercept_, *explicit.coef_], atol=1e-12)


def test_the_closed_form_is_lstsq_and_the_normal_equations():
    X, y = problem()
    model = LinearRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, np.linalg.lstsq(X, y)[0], atol=1e-10)
    np.testing.assert_allclose(model.coef_, np.linalg.inv(X.T @ X) @ X.T @ y, atol=1e-10)


def test_each_target_of_several_is_fitted_as_if_alone():
    X, y = problem()
    Y = np.column_stack([y, y**2, -y])
    together = LinearRegression().fit(X, Y)
    for k in range(3):
        alone = LinearRegression().fit(X, Y[:, k])
        np.testing.assert_allclose(together.coef_[k], alone.coef_, atol=1e-12)


def test_steepest_descent_falls_steadily_below_two_over_lambda_max_and_reaches_least_squares():
    X, y = problem()
    largest = 2 * np.linalg.eigvalsh(X.T @ X / len(X))[-1]  # of the Hessian of the mean loss
    settings = {"solver": "gd", "fit_intercept": False, "epochs": 300}
    model = LinearRegression(lr=1.9 / largest, **settings).fit(X, y)
    losses = [line["loss"] for line in model.history_]
    assert all(b <= a + 1e-12 for a, b in itertools.pairwise(losses))
    direct = LinearRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-6)
    beyond = LinearRegression(lr=2.1 / largest, **settings).fit(X, y)
    assert beyond.history_[-1]["loss"] > 10 * beyond.history_[0]["loss"]


def test_a_linear_problem_takes_one_solve_and_a_curved_one_many_steps_to_a_flat_gradient():
    X, y = problem(n=30, d=2)
    model = LinearRegression().fit(X, y)
    slope = X.T @ (y - model.predict(X))
    assert np.abs(slope).max() < 1e-10  # no iteration: the gradient is zero at once
    training = Training(optimizer="adam", schedule="cosine", validation=0, verbose=False)
    settings = {"hidden": (3,), "batch_size": 30, "lr": 0.05, "random_state": 0}

    def slope_after(epochs):
        net = MLPRegressor(epochs=epochs, training=training, **settings).fit(X, y)
        target = (torch.from_numpy(y)[:, None] - net.target_mean_[0]) / net.target_scale_[0]
        rows = torch.from_numpy((X - X.mean(0)) / X.std(0))
        module = net.module_.double()
        SquaredError().terms(module, Batch(rows, target), "train")["loss"].backward()
        return float(torch.cat([p.grad.flatten() for p in module.parameters()]).norm())

    assert slope_after(1500) < 1e-3 < 0.1 < slope_after(1)


# ---- ill-posed problems ----


def test_least_squares_on_xor_answers_one_half_everywhere():
    model = LinearRegression().fit(CORNERS, XOR)
    np.testing.assert_allclose([model.intercept_, *model.coef_], [0.5, 0, 0], atol=1e-15)


def test_no_line_gets_more_than_three_of_four_corners_of_xor_right():
    grid = np.linspace(-2, 2, 17)
    weights = np.array(list(itertools.product(grid, grid, grid)))
    answers = CORNERS @ weights[:, :2].T + weights[:, 2] > 0
    assert (answers == (XOR > 0)[:, None]).mean(axis=0).max() == 0.75


def test_xor_is_linear_in_products_of_its_inputs():
    """Equal to x1 + x2 - 2 x1 x2 on the corners, where x^2 = x."""
    model = PolynomialRegression(degree=2, singular="min_norm").fit(CORNERS, XOR)
    np.testing.assert_allclose(model.predict(CORNERS), XOR, atol=1e-12)
    x1, x2, x1x1, x1x2, x2x2 = model.coef_
    np.testing.assert_allclose([x1 + x1x1, x2 + x2x2, x1x2], [1, 1, -2], atol=1e-12)


def test_on_a_line_the_l2_ball_touches_at_the_projection_and_the_l1_ball_at_a_corner():
    X, y = np.array([[10.0, 1.0]]), np.array([5.0])
    l2 = LinearRegression(fit_intercept=False, singular="min_norm").fit(X, y).coef_
    np.testing.assert_allclose(l2, [50 / 101, 5 / 101], atol=1e-12)
    assert np.linalg.norm(l2) == pytest.approx(5 / 101**0.5)
    assert np.abs(l2).sum() == pytest.approx(0.5445545, abs=1e-7)
    l1 = Lasso(alpha=1e-9, fit_intercept=False).fit(X, y).coef_
    np.testing.assert_allclose(l1, [0.5, 0.0], atol=1e-8)
    assert l1[1] == 0


@pytest.mark.parametrize("solver, lr", [("gd", 0.1), ("sgd", 0.05)])
def test_descent_from_zero_finds_the_solution_of_smallest_norm(solver, lr):
    X, y = problem(n=5, d=12)
    settings = {"fit_intercept": False, "epochs": 400, "batch_size": 1, "random_state": 0}
    model = LinearRegression(solver=solver, lr=lr, **settings).fit(X, y)
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(X) @ y, atol=1e-6)


def test_the_minimum_norm_interpolator_errs_nowhere_and_no_other_is_shorter():
    x, y = problem(n=15, d=2)
    X = RandomFourierFeatures(n_frequencies=40, random_state=0).fit_transform(x)
    model = LinearRegression(fit_intercept=False, singular="min_norm").fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-10)
    null = np.linalg.svd(X)[2][15:]  # directions that change no prediction
    for step in np.random.default_rng(0).normal(size=(20, len(null))):
        other = model.coef_ + 0.1 * step @ null
        np.testing.assert_allclose(X @ other, y, atol=1e-9)
        assert np.linalg.norm(model.coef_) <= np.linalg.norm(other)


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
def test_a_tikhonov_solution_moves_at_most_by_the_error_over_two_roots_of_alpha(alpha):
    """Max over s of s / (s^2 + alpha) is 1 / (2 sqrt(alpha)); without alpha it is 1 / s_min."""
    X = np.vander(np.linspace(0, 1, 30), 12)  # a Vandermonde matrix: condition number 1e9
    y = np.sin(3 * X[:, -2])
    random = np.random.default_rng(0)
    moved = {"tikhonov": 0.0, "plain": 0.0}
    for _ in range(20):
        error = random.normal(size=30)
        error /= np.linalg.norm(error)
        for name, model in (
            ("tikhonov", Ridge(alpha=alpha, fit_intercept=False)),
            ("plain", LinearRegression(fit_intercept=False)),
        ):
            change = model.fit(X, y + error).coef_ - model.fit(X, y).coef_
            moved[name] = max(moved[name], np.linalg.norm(change))
    assert 0.001 / alpha**0.5 < moved["tikhonov"] <= 0.5 / alpha**0.5
    assert moved["plain"] > 1e4


# ---- penalties ----


@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_the_gradient_of_the_ridge_objective_is_zero_at_the_closed_form(loss):
    X, y = problem(n=8, d=3)
    model = Ridge(alpha=0.7, loss=loss, fit_intercept=False).fit(X, y)
    w, n = model.coef_, 8 if loss == "mean" else 1
    gradient = -2 * X.T @ (y - X @ w) / n + 2 * 0.7 * w
    np.testing.assert_allclose(gradient, 0, atol=1e-12)
    factor = 8 * 0.7 if loss == "mean" else 0.7
    closed = np.linalg.solve(X.T @ X + factor * np.eye(3), X.T @ y)
    np.testing.assert_allclose(w, closed, atol=1e-12)


def test_for_the_mean_loss_the_printed_closed_form_is_not_the_minimiser():
    X, y = problem(n=8, d=3)

    def objective(w):
        return np.mean((y - X @ w) ** 2) + 0.7 * w @ w

    settings = {"alpha": 0.7, "fit_intercept": False}
    right = Ridge(loss="mean", **settings).fit(X, y).coef_
    printed = Ridge(loss="sum", **settings).fit(X, y).coef_
    assert objective(right) < objective(printed)
    assert objective(right) == pytest.approx(minimize(objective, np.zeros(3)).fun, abs=1e-9)


def test_the_lasso_sets_irrelevant_features_to_exactly_zero_and_ridge_does_not():
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 10))
    y = 3 * X[:, 0] - 2 * X[:, 1] + 0.1 * random.normal(size=100)
    assert np.flatnonzero(Lasso(alpha=0.1).fit(X, y).coef_).tolist() == [0, 1]
    assert np.count_nonzero(Ridge(alpha=10.0).fit(X, y).coef_) == 10


def test_the_map_maximises_the_posterior_and_is_ridge_with_the_ratio_of_variances():
    X, y = problem()
    sigma, tau = 0.5, 0.8
    model = MAPRegression(prior=tau, noise=sigma, fit_intercept=False).fit(X, y)

    def minus_log_posterior(w):
        return ((y - X @ w) ** 2).sum() / (2 * sigma**2) + w @ w / (2 * tau**2)

    found = minimize(minus_log_posterior, np.zeros(4), tol=1e-12).x
    np.testing.assert_allclose(model.coef_, found, atol=1e-5)
    ridge = Ridge(alpha=sigma**2 / tau**2, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-10)


def test_the_predictive_variance_grows_away_from_the_data():
    X, y = problem(d=1)
    model = MAPRegression(prior=1.0, noise=0.3).fit(X, y)
    away = X.mean() + np.array([[0.0], [2.0], [5.0], [20.0]])
    std = model.predict(away, return_std=True)[1]
    assert (np.diff(std) > 0).all()
    assert (std > 0.3).all()
    np.testing.assert_allclose(model.coef_, Ridge(alpha=0.09).fit(X, y).coef_)


# ---- functions of the inputs ----


def noisy_sine(n, seed, noise=0.3):
    random = np.random.default_rng(seed)
    x = random.uniform(0, 1, size=(n, 1))
    return x, np.sin(2 * np.pi * x[:, 0]) + noise * random.normal(size=n)


def test_a_polynomial_of_degree_n_minus_one_goes_through_n_points():
    x, y = noisy_sine(9, seed=0)
    model = PolynomialRegression(degree=8).fit(x, y)
    np.testing.assert_allclose(model.predict(x), y, atol=1e-6)
    assert np.abs(PolynomialRegression(degree=7).fit(x, y).predict(x) - y).max() > 1e-3


def test_the_test_error_of_polynomials_is_u_shaped_in_the_degree():
    x_new, y_new = noisy_sine(500, seed=99)
    errors = np.zeros(10)
    for seed in range(20):
        x, y = noisy_sine(15, seed)
        for degree in range(1, 11):
            model = PolynomialRegression(degree=degree).fit(x, y)
            errors[degree - 1] += np.log(np.mean((model.predict(x_new) - y_new) ** 2)) / 20
    best = int(errors.argmin()) + 1
    assert best in (3, 4, 5)
    assert errors[0] > errors[best - 1] + 0.3
    assert errors[9] > errors[best - 1] + 0.3


def test_a_larger_penalty_trades_variance_for_bias():
    """100 samples of 25 points of a sine, 24 Gaussians of width 0.1 and a constant."""
    x = np.linspace(0, 1, 101)[:, None]
    truth = np.sin(2 * np.pi * x[:, 0])
    found = []
    for alpha in (13.46, 0.733, 0.0907):
        model = BasisRegression(size=24, bandwidth=0.1, alpha=alpha)
        curves = np.array([model.fit(*noisy_sine(25, s)).predict(x) for s in range(100)])
        bias, variance = np.mean((curves.mean(axis=0) - truth) ** 2), curves.var(axis=0).mean()
        assert bias + variance == pytest.approx(np.mean((curves - truth) ** 2))
        found.append((bias, variance))
    # The printed numbers came from other samples; these agree to within what samples differ by.
    printed = [(0.0681, 0.0100), (0.0016, 0.0227), (0.0006, 0.0361)]
    np.testing.assert_allclose(found, printed, rtol=0.2, atol=0.007)
    bias, variance = np.transpose(found)
    assert (np.diff(bias) < 0).all()
    assert (np.diff(variance) > 0).all()
