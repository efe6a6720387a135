"""Least squares part by part: ``partial_fit`` of the models that the loop can fit."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.sklearn_checks import learns_alike

from castalia import LinearRegression, LogisticRegression, Ridge, Training
from castalia.data import read
from castalia.errors import InvalidData, ShapeMismatch

MODELS = pytest.mark.parametrize("model", [LinearRegression, Ridge])


def stream(n=600, d=4, targets=1, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    Y = X @ random.normal(size=(d, targets)) + 2 + 0.1 * random.normal(size=(n, targets))
    return X, Y[:, 0] if targets == 1 else Y


def parts_of(n, size):
    return np.array_split(np.arange(n), n // size)


@MODELS
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32", "weighted", "two targets"])
def test_the_first_part_is_an_epoch_of_fit_bit_for_bit(model, kind):
    X, y = stream(300, targets=2 if kind == "two targets" else 1)
    X = {"sparse": sp.csr_array(X), "float32": X.astype("f4")}.get(kind, X)
    weight = np.random.default_rng(1).random(300) if kind == "weighted" else None
    settings = {"solver": "sgd", "batch_size": 20, "random_state": 3}
    part = model(**settings).partial_fit(X, y, weight)
    whole = model(epochs=1, **settings).fit(X, y, weight)
    np.testing.assert_array_equal(part.coef_, whole.coef_)
    np.testing.assert_array_equal(part.intercept_, whole.intercept_)
    assert part.coef_.dtype == whole.coef_.dtype
    assert part.history_[0]["loss"] == whole.history_[0]["loss"]


@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_parts_of_one_batch_each_are_gradient_steps_in_their_order(alpha):
    X, y = stream(120)
    model = Ridge(alpha=alpha, solver="sgd", batch_size=12, lr=0.05)
    w, b = np.zeros(4), 0.0
    for number, rows in enumerate(parts_of(120, 12), start=1):
        model.partial_fit(X[rows], y[rows])
        error = X[rows] @ w + b - y[rows]
        slope = 2 * error @ X[rows] / 12 + 2 * alpha / (12 * number) * w  # alpha / rows so far
        w, b = w - 0.05 * slope, b - 0.05 * 2 * error.mean()
        np.testing.assert_allclose(model.coef_, w, atol=1e-12)
        assert model.intercept_ == pytest.approx(b, abs=1e-12)
    assert model.seen_ == 120
    assert len(model.history_) == 10


def test_a_large_table_in_parts_comes_to_the_direct_solution():
    model = LinearRegression(solver="sgd", lr=0.02, batch_size=32, random_state=0)
    sums = np.zeros((6, 6)), np.zeros(6)
    for seed in range(40):  # no part is kept
        X, y = stream(500, d=5, seed=100 + seed)
        y = X @ [1.0, -2.0, 0.5, 0.0, 3.0] + 7 + 0.1 * y
        model.partial_fit(X, y)
        ones = np.column_stack([X, np.ones(500)])
        sums[0][:] += ones.T @ ones
        sums[1][:] += ones.T @ y
    direct = np.linalg.solve(*sums)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), direct, atol=0.1)


def test_the_penalty_of_ridge_does_not_grow_with_the_number_of_parts():
    X, y = stream(4000)
    model = Ridge(alpha=1000.0, solver="sgd", lr=0.02, batch_size=50, random_state=0)
    for rows in parts_of(4000, 100):
        model.partial_fit(X[rows], y[rows])
    direct = Ridge(alpha=1000.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=0.1)
    mean = Ridge(alpha=0.25, loss="mean", solver="sgd", lr=0.02, batch_size=50, random_state=0)
    for rows in parts_of(4000, 100) * 2:
        mean.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(mean.coef_, direct.coef_, atol=0.1)


def test_the_penalty_of_logistic_regression_does_not_grow_with_the_number_of_parts():
    X, y = stream(4000)
    y = y > 2
    model = LogisticRegression(C=1e-3, solver="sgd", lr=0.1, batch_size=50, random_state=0)
    for rows in parts_of(4000, 100):
        model.partial_fit(X[rows], y[rows], classes=[False, True])
    whole = LogisticRegression(C=1e-3).fit(X, y)
    few = LogisticRegression(C=1e-3).fit(X[:100], y[:100])  # what the penalty of a part would give
    assert np.linalg.norm(few.coef_) < 0.5 * np.linalg.norm(whole.coef_)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=0.15)


def test_parts_keep_the_digits_of_the_coefficients():
    X, y = stream(40)
    direct = LinearRegression().fit(X, y).set_params(solver="sgd", lr=1e-300)
    before = direct.coef_.copy()
    np.testing.assert_array_equal(direct.partial_fit(X, y).coef_, before)
    model = LogisticRegression().fit(X, y > 2).set_params(solver="sgd", lr=1e-300)
    before = model.coef_.copy()
    np.testing.assert_array_equal(model.partial_fit(X, y > 2).coef_, before)


@MODELS
def test_without_an_intercept_there_is_none_in_the_parts_either(model):
    X, y = stream(100)
    found = model(solver="sgd", fit_intercept=False).partial_fit(X, y).partial_fit(X, y)
    assert not np.any(found.intercept_)


def test_a_data_set_brings_its_own_target(tmp_path):
    X, y = stream(50, d=2)
    path = tmp_path / "part.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    settings = {"solver": "sgd", "random_state": 0}
    named = LinearRegression(**settings).partial_fit(read(path, target="y"))
    plain = LinearRegression(**settings).partial_fit(X, y)
    np.testing.assert_allclose(named.coef_, plain.coef_, rtol=1e-12)


def test_the_parts_of_a_stream_leave_no_run_behind(tmp_path):
    X, y = stream(60)
    training = Training(run=tmp_path / "runs" / "x", verbose=False)
    model = LinearRegression(solver="sgd", training=training).partial_fit(X[:30], y[:30])
    model.partial_fit(X[30:], y[30:])
    assert not (tmp_path / "runs").exists()


def test_a_part_that_does_not_fit_the_first_is_named():
    X, y = stream(40, targets=2)
    model = LinearRegression(solver="sgd").partial_fit(X, y)
    with pytest.raises(ShapeMismatch, match=r"first call to partial_fit, \(N, 2\); got \(40,\)"):
        model.partial_fit(X, y[:, 0])
    with pytest.raises(ValueError, match="X has 3 features, but LinearRegression is expecting 4"):
        model.partial_fit(X[:, :3], y)
    with pytest.raises(InvalidData, match="`sample_weight` must be at least 0"):
        model.partial_fit(X, y, -np.ones(40))


@MODELS
def test_only_stochastic_descent_learns_in_parts(model):
    assert not hasattr(model(), "partial_fit")
    assert not hasattr(model(solver="gd"), "partial_fit")


@MODELS
def test_scikit_learn_finds_no_fault_with_stochastic_descent(model):
    adam = Training(optimizer="adam", verbose=False)  # its steps suit columns of any size
    tried = model(solver="sgd", epochs=15, lr=0.1, batch_size=20, training=adam, random_state=0)
    # rows drawn twice make other batches than rows that weigh twice
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    learns_alike(tried, excused=names)
