"""Bridge regression: any power, penalised or constrained."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from castalia import Bridge, Lasso, LinearRegression, Ridge
from castalia.errors import InvalidParameter, TrainingWarning
from castalia.models.linear.solvers.shrink import project, shrink


def problem(n=40, d=4, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * [1, 10, 1, 0.1] + 1
    return X, X @ [2.0, -0.3, 0.0, 5.0] + 0.3 * random.normal(size=n)


def objective(w, X, y, q, alpha):
    X, y = X - X.mean(axis=0), y - y.mean()
    return np.mean((y - X @ w) ** 2) + alpha / 2 * (np.abs(w) ** q).sum()


def test_power_two_is_ridge():
    X, y = problem()
    ours, theirs = Bridge(q=2, alpha=0.6).fit(X, y), Ridge(alpha=0.3, loss="mean").fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-7)


def test_power_one_is_the_lasso_with_its_zeros():
    X, y = problem()
    ours, theirs = Bridge(q=1, alpha=1.2).fit(X, y), Lasso(alpha=0.3, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    assert ours.coef_[2] == 0


def test_no_penalty_is_least_squares():
    X, y = problem()
    ours, theirs = Bridge(q=1.5, alpha=0).fit(X, y), LinearRegression().fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)


@pytest.mark.parametrize("q", [1.1, 1.5, 3.0, 4.5])
def test_a_convex_power_reaches_the_minimum_a_general_optimizer_finds(q):
    X, y = problem()
    model = Bridge(q=q, alpha=0.5).fit(X, y)
    found = minimize(
        objective,
        np.zeros(4),
        (X, y, q, 0.5),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-14, "maxiter": 10**4, "maxfev": 10**4},
    )
    assert objective(model.coef_, X, y, q, 0.5) <= found.fun + 1e-8
    assert model.norm_ == pytest.approx((np.abs(model.coef_) ** q).sum())


def test_a_power_below_one_ends_in_a_local_minimum_with_zeros():
    X, y = problem()
    model = Bridge(q=0.5, alpha=1.0).fit(X, y)
    assert model.coef_[2] == 0
    here = objective(model.coef_, X, y, 0.5, 1.0)
    random = np.random.default_rng(1)
    near = [model.coef_ + 1e-4 * random.normal(size=4) for _ in range(200)]
    assert min(objective(w, X, y, 0.5, 1.0) for w in near) >= here - 1e-10
    assert here < objective(LinearRegression().fit(X, y).coef_, X, y, 0.5, 1.0)


@pytest.mark.parametrize("q", [1.0, 1.5, 2.0, 3.0])
def test_the_constraint_at_the_norm_of_the_penalised_solution_gives_that_solution(q):
    X, y = problem()
    penalised = Bridge(q=q, alpha=0.8).fit(X, y)
    constrained = Bridge(q=q, constraint=penalised.norm_).fit(X, y)
    np.testing.assert_allclose(constrained.coef_, penalised.coef_, atol=1e-6)
    assert constrained.norm_ == pytest.approx(penalised.norm_)


def test_a_loose_constraint_changes_nothing():
    X, y = problem()
    free = LinearRegression().fit(X, y)
    np.testing.assert_allclose(Bridge(q=1, constraint=1e3).fit(X, y).coef_, free.coef_, atol=1e-7)


def test_several_targets_are_fitted_each_on_its_own():
    X, y = problem()
    Y, weight = np.column_stack([y, -2 * y + X[:, 0]]), np.random.default_rng(0).random(40)
    both = Bridge(q=1.3, alpha=0.5).fit(X, Y, weight)
    for t in range(2):
        alone = Bridge(q=1.3, alpha=0.5).fit(X, Y[:, t], weight)
        np.testing.assert_allclose(both.coef_[t], alone.coef_, atol=1e-7)
        assert both.norm_[t] == pytest.approx(alone.norm_)


def test_a_constraint_needs_a_convex_power():
    with pytest.raises(InvalidParameter, match=r"`constraint` must come with a `q` of at least 1"):
        Bridge(q=0.5, constraint=1.0).fit(*problem())


def test_too_few_steps_are_said():
    with pytest.warns(TrainingWarning, match="within 2 steps"):
        Bridge(q=1.5, steps=2).fit(*problem())


@settings(max_examples=60, deadline=None)
@given(v=st.floats(-5, 5), t=st.floats(0, 4), q=st.floats(0.2, 5))
def test_shrinking_finds_the_lowest_point(v, t, q):
    found = float(shrink(np.array([v]), t, q)[0])
    grid = np.linspace(-5, 5, 2001)

    def value(w):
        return 0.5 * (w - v) ** 2 + t * np.abs(w) ** q

    assert value(found) <= value(grid).min() + 1e-9


@settings(max_examples=30, deadline=None)
@given(q=st.floats(1, 4), bound=st.floats(0.01, 3), seed=st.integers(0, 1000))
def test_the_projection_lies_on_the_ball_and_no_point_of_it_is_nearer(q, bound, seed):
    random = np.random.default_rng(seed)
    v, weight = random.normal(size=3) * 3, random.random(3) + 0.1
    found = project(v, weight, q, bound)
    size = (weight * np.abs(found) ** q).sum()
    assert size <= bound * (1 + 1e-9)
    others = found + 0.3 * random.normal(size=(200, 3))
    inside = others[(weight * np.abs(others) ** q).sum(axis=1) <= bound]
    assert (((inside - v) ** 2).sum(axis=1) >= ((found - v) ** 2).sum() - 1e-9).all()
