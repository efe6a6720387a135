"""The linear support vector machine against libsvm and liblinear."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.svm import SVC, LinearSVC
from tests.processes import run_code

from castalia import LinearSVM
from castalia.models.linear import svm
from castalia.models.linear.solvers.affine_design import Affine


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


def test_many_columns_are_taken_a_block_at_a_time_and_give_the_same_hyperplane():
    X, y = problem(40, 80)
    X[:, 50:60] = 0
    X[3] = X[4] + X[5]  # rows that span less than there are of them
    y[3] = y[4]
    theirs = SVC(kernel="linear", C=0.5, tol=1e-8).fit(X, y)
    for rows in (X, csr_array(X)):
        ours = LinearSVM(alpha=1 / (0.5 * len(X))).fit(rows, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    for block in (7, 16, 80):
        for rows in (torch.from_numpy(X), csr_array(X)):
            R = Affine(rows, True).row_triangle(block)
            torch.testing.assert_close(R.T @ R, torch.from_numpy(X @ X.T))
            assert not R.tril(-1).any()


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from scipy.sparse import csr_array
from castalia import LinearSVM
from castalia.models.linear.solvers.affine_design import Affine
random = np.random.default_rng(0)
n, d, each = 300, 10**6, 2000
rows = np.repeat(np.arange(n), each)
X = csr_array((random.normal(size=n * each), (rows, random.integers(0, d, n * each))), (n, d))
begin = Affine.row_triangle
def announced(self):
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    global started
    started = time.perf_counter()
    return begin(self)
Affine.row_triangle = announced
try:
    LinearSVM().fit(X, np.arange(n) % 2)
except KeyboardInterrupt:
    print(time.perf_counter() - started)
"""


def test_ctrl_c_ends_a_fit_on_a_million_sparse_columns_within_seconds(zygote, tmp_path):
    done = run_code(zygote, tmp_path, INTERRUPTED)
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(done.stdout) < 5.0
