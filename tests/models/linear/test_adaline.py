"""Adaline: the rule of Widrow and Hoff."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from castalia import Adaline
from castalia.errors import Diverged, InvalidData
from castalia.utils.seeds import derive


def stream(n=20_000, d=4, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * [2.0, 1.0, 0.5, 1.0]
    return X, np.where(X @ [1.0, -2.0, 0.5, 0.0] + random.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_weights_are_those_of_the_rule_applied_row_after_row(kind):
    X, y = stream(300)
    w, eps = np.zeros(5), 0.01
    for x, target in zip(np.column_stack([X, np.ones(300)]), y, strict=True):
        w = w + 2 * eps * (target - w @ x) * x
    model = Adaline(lr=eps, epochs=1, shuffle=False)
    model.fit(csr_array(X) if kind == "sparse" else X, y)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), w, atol=1e-12)


def test_it_settles_at_the_wiener_solution_within_the_excess_error():
    X, y = stream(60_000)
    R = X.T @ X / len(X)
    wiener = np.linalg.solve(R, X.T @ y / len(X))
    least = np.mean((y - X @ wiener) ** 2)
    lr = 0.02
    share = lr * np.trace(R)  # 0.125
    errors = []
    model = Adaline(lr=lr, fit_intercept=False)
    for rows in np.array_split(np.arange(len(X)), 60):
        model.partial_fit(X[rows], y[rows], classes=[-1, 1])
        errors.append(model.errors_[-1])
    settled = np.mean(errors[10:])
    assert least < settled < least * (1 + 1.3 * share / (1 - share))
    quiet = Adaline(lr=lr / 200, fit_intercept=False, epochs=4, random_state=0).fit(X, y)
    np.testing.assert_allclose(quiet.coef_[0], wiener, atol=0.02)
    assert quiet.errors_[-1] < settled


def test_parts_one_after_the_other_make_one_epoch():
    X, y = stream(500)
    whole = Adaline(lr=0.01, epochs=1, shuffle=False).fit(X, y)
    parts = Adaline(lr=0.01)
    for rows in np.array_split(np.arange(500), 6):
        parts.partial_fit(X[rows], y[rows], classes=[-1, 1])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-12)


def test_weights_of_partial_fit_scale_the_steps():
    X, y = stream(200)
    half = Adaline(lr=0.01).partial_fit(X, y, [-1, 1], np.full(200, 0.5))
    plain = Adaline(lr=0.005).partial_fit(X, y, [-1, 1])
    np.testing.assert_allclose(half.coef_, plain.coef_, atol=1e-14)
    with pytest.raises(InvalidData, match="`sample_weight` must be at least 0"):
        Adaline().partial_fit(X, y, [-1, 1], -np.ones(200))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_weight_multiplies_the_step_of_its_row(kind):
    X, y = stream(300)
    weight = np.random.default_rng(1).uniform(0, 3, 300)
    w, eps, squares = np.zeros(5), 0.01, []
    for x, target, v in zip(np.column_stack([X, np.ones(300)]), y, weight, strict=True):
        squares.append((target - w @ x) ** 2)
        w = w + 2 * eps * v * (target - w @ x) * x
    model = Adaline(lr=eps, epochs=1, shuffle=False)
    model.fit(csr_array(X) if kind == "sparse" else X, y, weight)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), w, atol=1e-12)
    assert model.errors_[0] == pytest.approx(np.average(squares, weights=weight))


def test_shuffled_rows_keep_their_own_weights():
    X, y = stream(200)
    weight = np.random.default_rng(1).uniform(0.5, 3, 200)
    model = Adaline(lr=0.01, epochs=1, random_state=0).fit(X, y, weight)
    order = np.random.default_rng(derive(0, 0)).permutation(200)
    plain = Adaline(lr=0.01, epochs=1, shuffle=False).fit(X[order], y[order], weight[order])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.errors_[0] == plain.errors_[0]


@pytest.mark.parametrize("lr", [None, 0.01])
def test_a_row_of_weight_zero_is_not_there(lr):
    X, y = stream(200)
    weight = np.random.default_rng(1).integers(0, 3, 200).astype(float)
    kept = weight > 0
    model = Adaline(lr=lr, random_state=0).fit(X, y, weight)
    same = Adaline(lr=lr, random_state=0).fit(X[kept], y[kept], weight[kept])
    np.testing.assert_array_equal(model.coef_, same.coef_)
    np.testing.assert_array_equal(model.errors_, same.errors_)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_without_a_rate_only_the_ratios_of_the_weights_matter(kind):
    X, y = stream(400)
    X = csr_array(X) if kind == "sparse" else X
    weight = np.random.default_rng(1).uniform(0.5, 2, 400)
    once, thousand = (Adaline(random_state=0).fit(X, y, scale * weight) for scale in (1, 1000))
    np.testing.assert_allclose(thousand.coef_, once.coef_, rtol=1e-9)
    assert thousand.lr_ == pytest.approx(once.lr_ / 1000)


def test_it_settles_at_the_weighted_least_squares_solution():
    X, y = stream(20_000)
    weight = np.where(X[:, 3] > 0, 3.0, 0.2)  # the classes overlap, so this moves the solution
    root = np.sqrt(weight)[:, None]
    target = np.where(X[:, 3] > 0.5, -y, y)
    wiener, *_ = np.linalg.lstsq(X * root, target * root[:, 0], rcond=None)
    plain, *_ = np.linalg.lstsq(X, target, rcond=None)
    model = Adaline(lr=1e-4, fit_intercept=False, epochs=4, random_state=0).fit(X, target, weight)
    np.testing.assert_allclose(model.coef_[0], wiener, atol=0.03)
    assert np.abs(wiener - plain).max() > 0.1


def test_a_rate_that_is_too_large_is_named():
    X, y = stream(2000)
    with pytest.raises(Diverged, match="grew without bound with `lr` = 2") as caught:
        Adaline(lr=2.0, epochs=5).fit(X, y)
    assert caught.value.lr == 2.0


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_without_a_rate_the_scale_does_not_matter(scale):
    X, y = stream(2000)
    model = Adaline(fit_intercept=False, random_state=0).fit(X * scale, y)
    plain = Adaline(fit_intercept=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_ * scale, plain.coef_, rtol=1e-6)


def test_a_warm_start_on_other_columns_begins_anew():
    X, y = stream(200)
    warm = Adaline(warm_start=True, random_state=0).fit(X, y).fit(X[:, :1], y)
    cold = Adaline(random_state=0).fit(X[:, :1], y)
    np.testing.assert_array_equal(warm.coef_, cold.coef_)
