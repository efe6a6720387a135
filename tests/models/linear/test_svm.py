"""The linear support vector machine against libsvm and liblinear."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.svm import SVC, LinearSVC

from castalia import LinearSVM
from castalia.models.linear import svm


def problem(n=120, d=3, seed=0, scale=1.0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return scale * X, np.where(X[:, 0] + 0.4 * random.normal(size=n) > 0.3, 1, -1)


def objective(model, X, y, alpha):
    hinge = np.maximum(0, 1 - y * model.decision_function(X))
    return alpha / 2 * (model.coef_**2).sum() + hinge.mean()


@pytest.mark.parametrize("C", [0.01, 0.1, 5.0])
@pytest.mark.parametrize("shape", [(120, 3), (40, 80)], ids=["tall", "wide"])
def test_coefficients_equal_libsvms(C, shape):
    X, y = problem(*shape)
    ours = LinearSVM(alpha=1 / (C * len(X))).fit(X, y)
    theirs = SVC(kernel="linear", C=C, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4, rtol=2e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)
    assert objective(ours, X, y, ours.alpha) <= objective(theirs, X, y, ours.alpha) + 1e-9
    assert set(ours.support_) == set(theirs.support_)


def test_the_margin_equals_that_of_linear_svc_with_hinge_loss():
    X, y = problem()
    X, y = np.concatenate([X, -X]), np.concatenate([y, -y])  # the boundary meets the origin
    ours = LinearSVM(alpha=1 / len(X), fit_intercept=False).fit(X, y)
    theirs = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, tol=1e-9, max_iter=10**6)
    theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    margin = 1 / np.linalg.norm(ours.coef_)
    assert margin == pytest.approx(1 / np.linalg.norm(theirs.coef_), rel=1e-4)


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_scales_of_the_columns_do_not_stop_it(scale):
    X, y = problem()
    plain = LinearSVM(alpha=0.01).fit(X, y)
    scaled = LinearSVM(alpha=0.01 * scale**2).fit(X * scale, y)
    np.testing.assert_allclose(scaled.coef_ * scale, plain.coef_, rtol=1e-5)


def test_constant_and_collinear_columns_change_nothing_but_the_split_of_weights():
    X, y = problem()
    wide = np.column_stack([X, X[:, 0], np.full(len(X), 2.0)])
    model = LinearSVM(alpha=0.01).fit(wide, y)
    theirs = SVC(kernel="linear", C=1 / (0.01 * len(X)), tol=1e-10).fit(wide, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-4)


def test_sparse_rows_weights_and_several_classes():
    X, _ = problem(150)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    weight = np.arange(150) % 3
    dense = LinearSVM(alpha=0.01).fit(X, y, weight)
    sparse = LinearSVM(alpha=0.01).fit(csr_array(X), y, weight)
    repeated = LinearSVM(alpha=0.01).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert dense.coef_.shape == (3, 3)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
    np.testing.assert_allclose(repeated.coef_, dense.coef_, atol=1e-6)


def test_where_rows_and_columns_are_many_the_rounded_hinge_is_nearly_as_good(monkeypatch):
    X, y = problem()
    exact = LinearSVM(alpha=0.01).fit(X, y)
    monkeypatch.setattr(svm, "FEW", 2)
    rounded = LinearSVM(alpha=0.01).fit(X, y)
    best = objective(exact, X, y, 0.01)
    assert best <= objective(rounded, X, y, 0.01) <= best + 5e-4
    np.testing.assert_allclose(rounded.coef_, exact.coef_, atol=0.02)
