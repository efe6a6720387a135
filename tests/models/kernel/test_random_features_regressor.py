"""Regression on random waves: the shortest fit, its penalty, and many sizes at once."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from castalia import RandomFeatureRegression
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.kernel import feature_sweep
from castalia.models.kernel.least_norm import least_norm

codings = pytest.mark.parametrize("coding", ["real", "complex"])


def problem(n=30, d=3, targets=None, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    y = np.sin(X.sum(axis=1)) + 0.1 * random.normal(size=n)
    return X, y if targets is None else y[:, None] * np.arange(1.0, targets + 1)


def features(model, X):
    phase = X @ model.frequencies_.T
    waves = np.exp(1j * phase)
    if model.coding == "real":
        waves = np.concatenate([np.cos(phase), np.sin(phase)], axis=1)
    return waves / np.sqrt(len(model.frequencies_))


@codings
@pytest.mark.parametrize("m", [5, 15, 30, 80])
def test_the_weights_are_those_of_the_pseudo_inverse(coding, m):
    X, y = problem()
    model = RandomFeatureRegression(n_frequencies=m, coding=coding, random_state=0).fit(X, y)
    A = features(model, X)
    coef = np.linalg.pinv(A) @ y
    assert_allclose(model.coef_, coef, rtol=1e-6, atol=1e-6 * np.abs(coef).max())
    assert_allclose(model.predict(X), (A @ coef).real, atol=1e-7)
    assert model.rank_ == np.linalg.matrix_rank(A)


def test_of_all_interpolants_it_is_the_shortest():
    X, y = problem()
    model = RandomFeatureRegression(n_frequencies=60, random_state=0).fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-10)
    A, random = features(model, X), np.random.default_rng(1)
    null = np.eye(120) - np.linalg.pinv(A) @ A
    for _ in range(20):
        other = model.coef_ + null @ random.normal(size=120)
        assert_allclose(A @ other, y, atol=1e-8)
        assert np.linalg.norm(other) > np.linalg.norm(model.coef_)


@codings
@pytest.mark.parametrize("m", [8, 60])
def test_a_penalty_is_that_of_ridge_regression(coding, m):
    X, y = problem(targets=2)
    settings = {"n_frequencies": m, "coding": coding, "alpha": 0.1, "random_state": 0}
    model = RandomFeatureRegression(**settings).fit(X, y)
    A = features(model, X)
    coef = np.linalg.solve(A.conj().T @ A + 0.1 * np.eye(A.shape[1]), A.conj().T @ y)
    assert_allclose(model.coef_, coef.T, atol=1e-9)
    if coding == "real":
        ridge = Ridge(alpha=0.1, fit_intercept=False, solver="svd").fit(A, y)
        assert_allclose(model.predict(X), ridge.predict(A), atol=1e-9)


def test_weights_are_those_of_ridge_regression_and_rows_without_one_are_left_out():
    X, y = problem()
    weight = np.random.default_rng(1).integers(0, 3, size=len(X)).astype(float)
    model = RandomFeatureRegression(n_frequencies=40, alpha=0.1, random_state=0)
    model.fit(X, y, sample_weight=weight)
    A = features(model, X)
    ridge = Ridge(alpha=0.1, fit_intercept=False, solver="svd").fit(A, y, sample_weight=weight)
    assert_allclose(model.coef_, ridge.coef_, atol=1e-9)
    model.set_params(alpha=0.0).fit(X, y, sample_weight=weight)
    counted = weight > 0
    assert_allclose(model.predict(X[counted]), y[counted], atol=1e-8)
    assert model.rank_ == counted.sum()


def test_equal_rows_with_different_targets_get_their_mean():
    X, y = problem()
    X[1], y[:2] = X[0], (1.0, 2.0)
    model = RandomFeatureRegression(n_frequencies=60, random_state=0).fit(X, y)
    assert model.rank_ == 29
    assert_allclose(model.predict(X[:2]), 1.5)


def test_the_frequencies_of_a_smaller_model_are_the_first_of_a_larger():
    X, y = problem()
    few, many = (
        RandomFeatureRegression(n_frequencies=m, length_scale=2.0, random_state=3).fit(X, y)
        for m in (37, 600)
    )
    assert_array_equal(few.frequencies_, many.frequencies_[:37])
    assert many.frequencies_.std() == pytest.approx(0.5, rel=0.05)


def test_float32_and_tensors_are_taken():
    X, y = problem()
    model = RandomFeatureRegression(n_frequencies=5, random_state=0, device="cpu").fit(X, y)
    narrow = RandomFeatureRegression(n_frequencies=5, random_state=0, device="cpu")
    narrow.fit(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
    assert_allclose(narrow.predict(X), model.predict(X), atol=1e-4)
    assert narrow.predict(X.astype(np.float32)).dtype == np.float64


@codings
@pytest.mark.parametrize("few", [1024, 0], ids=["alone", "shared"])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_a_sweep_equals_one_fit_after_the_other(monkeypatch, coding, few, alpha):
    monkeypatch.setattr(feature_sweep, "FEW", few)
    monkeypatch.setattr(feature_sweep, "BLOCK", 7)
    X, y = problem(targets=2)
    X_test, y_test = problem(11, targets=2, seed=1)
    model = RandomFeatureRegression(coding=coding, alpha=alpha, random_state=0)
    sizes = [2, 9, 14, 17, 40, 41]
    found = model.sweep(X, y, X_test, y_test, sizes=sizes)
    for s, m in enumerate(sizes):
        one = model.set_params(n_frequencies=m).fit(X, y)
        assert_allclose(found.predictions[s], one.predict(X_test), rtol=1e-5, atol=1e-5)
        assert found.norm[s] == pytest.approx(np.linalg.norm(one.coef_), rel=1e-5)
        errors = [((one.predict(a) - b) ** 2).mean() for a, b in ((X, y), (X_test, y_test))]
        assert [found.train_error[s], found.test_error[s]] == pytest.approx(
            errors, abs=1e-8, rel=1e-4
        )
    assert_array_equal(found.features, np.array(sizes) * (2 if coding == "real" else 1))


def test_a_sweep_over_singular_systems_ends(monkeypatch):
    monkeypatch.setattr(feature_sweep, "FEW", 0)
    X, y = problem()
    X[1], y[1] = X[0], y[0]
    model = RandomFeatureRegression(random_state=0)
    found = model.sweep(X, y, X, y, sizes=[10, 15, 100])
    assert found.test_error[-1] < 1e-6
    assert not hasattr(model, "n_features_in_")


@pytest.mark.gpu
def test_a_gpu_gives_the_same_weights_and_sweep(monkeypatch):
    monkeypatch.setattr(feature_sweep, "FEW", 0)
    X, y = problem()
    found = []
    for device in ("cuda", "cpu"):
        model = RandomFeatureRegression(n_frequencies=60, random_state=0, device=device).fit(X, y)
        found.append((model.coef_, model.sweep(X, y, X, y, sizes=[5, 50]).predictions))
    for on_gpu, on_cpu in zip(*found, strict=True):
        assert_allclose(on_gpu, on_cpu, atol=1e-8)


@pytest.mark.parametrize("wide", [False, True])
def test_a_poorly_conditioned_system_is_solved_by_singular_values(wide):
    random = np.random.default_rng(0)
    U, V = (np.linalg.qr(random.normal(size=(n, 8)))[0] for n in (20, 12))
    A = U * 10.0 ** -np.arange(8) @ V.T  # the squares span 14 digits
    A = A.T if wide else A
    rhs = random.normal(size=(len(A), 1))
    W, rank = least_norm(torch.tensor(A), torch.tensor(rhs))
    assert rank == 8
    assert_allclose(W.numpy(), np.linalg.lstsq(A, rhs, rcond=1e-14)[0], rtol=1e-5)


# ---- what is refused ----


@pytest.mark.parametrize(
    "setting, rule",
    [
        ({"n_frequencies": 0}, "`n_frequencies` must be a whole number at least 1; got 0"),
        ({"length_scale": 0.0}, "`length_scale` must be a number above 0; got 0.0"),
        ({"coding": "reel"}, "`coding` must be `real` or `complex`; got 'reel'. Did you mean"),
        ({"alpha": -1.0}, "`alpha` must be a number at least 0; got -1.0"),
        ({"random_state": -1}, "`random_state` must be a whole number of at least 0"),
    ],
    ids=str,
)
def test_a_broken_rule_is_named(setting, rule):
    with pytest.raises(InvalidParameter, match=f"RandomFeatureRegression: {rule}"):
        RandomFeatureRegression(**setting).fit(*problem())


@pytest.mark.parametrize("sizes", [[], [5, 5], [0, 3], [2.5, 3], [4, 2]], ids=str)
def test_sizes_that_do_not_rise_are_refused(sizes):
    X, y = problem()
    with pytest.raises(InvalidParameter, match="`sizes` must be positive whole numbers in rising"):
        RandomFeatureRegression().sweep(X, y, X, y, sizes=sizes)


def test_test_rows_must_fit_the_training_rows():
    X, y = problem()
    with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 3 features"):
        RandomFeatureRegression().sweep(X, y, X[:, :2], y, sizes=[3])
    with pytest.raises(InvalidData, match="same number of rows; got 30 and 29"):
        RandomFeatureRegression().sweep(X, y, X, y[1:], sizes=[3])


@pytest.mark.parametrize("bad, said", [(-1.0, "at least 0"), (np.nan, "NaN")])
def test_weights_below_zero_or_not_finite_are_refused(bad, said):
    X, y = problem()
    weight = np.ones(len(X))
    weight[4] = bad
    with pytest.raises(ValueError, match=said):
        RandomFeatureRegression().fit(X, y, sample_weight=weight)
