"""Kernel ridge, logistic and support vector machines against scikit-learn's and closed forms."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.kernel_ridge import KernelRidge as SkRidge
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from castalia import KernelRidge, LogisticKernelMachine, Ridge, SupportVectorMachine
from castalia.models.kernel import RBF, Constant, Linear

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(80, 3))
Y = np.sin(X[:, 0]) + X[:, 1] ** 2
XOR, LABELS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])


def test_kernel_ridge_is_the_closed_form_and_scikit_learn_s():
    weight = RANDOM.uniform(0.5, 2, 80)
    ours = KernelRidge(kernel=RBF(1.1), alpha=0.3).fit(X, Y, weight)
    theirs = SkRidge(alpha=0.3, kernel="rbf", gamma=1 / 2 / 1.21).fit(X, Y, weight)
    np.testing.assert_allclose(ours.predict(X[:9] + 0.1), theirs.predict(X[:9] + 0.1), atol=1e-10)
    K = RBF(1.1)(X)
    plain = KernelRidge(kernel=RBF(1.1), alpha=0.3).fit(X, Y)
    np.testing.assert_allclose(plain.dual_[:, 0], np.linalg.solve(K + 0.3 * np.eye(80), Y))


def test_a_linear_kernel_is_ridge_regression_and_an_rbf_fits_xor():
    ours = KernelRidge(kernel=Linear(), alpha=2.0).fit(X, Y)
    ridge = Ridge(alpha=2.0, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X), ridge.predict(X), atol=1e-10)
    np.testing.assert_allclose(X.T @ ours.dual_[:, 0], ridge.coef_, atol=1e-10)
    fit = KernelRidge(kernel=RBF(0.5), alpha=1e-6).fit(XOR, LABELS)
    np.testing.assert_allclose(fit.predict(XOR), LABELS, atol=1e-4)
    line = KernelRidge(kernel=Linear() + Constant(), alpha=1e-6).fit(XOR, LABELS)
    np.testing.assert_allclose(line.predict(XOR), 0.5, atol=1e-4)
    for machine in (SupportVectorMachine(kernel=RBF(0.5), C=100.0), LogisticKernelMachine(
        kernel=RBF(0.5), alpha=0.01)):  # fmt: skip
        assert machine.fit(XOR, LABELS).score(XOR, LABELS) == 1
    assert SupportVectorMachine(kernel=Linear()).fit(XOR, LABELS).score(XOR, LABELS) < 1


def test_the_support_vector_machine_equals_scikit_learn_s():
    y = (Y > 1).astype(int)
    ours = SupportVectorMachine(kernel=RBF(1.3), C=2.0, tol=1e-8).fit(X, y)
    theirs = SVC(C=2.0, gamma=1 / 2 / 1.69, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    assert np.array_equal(ours.support_, np.sort(theirs.support_))
    rows, labels = load_iris(return_X_y=True)
    ours = SupportVectorMachine(kernel=RBF(1.0), tol=1e-8).fit(rows, labels)
    rest = OneVsRestClassifier(SVC(gamma=0.5, tol=1e-8)).fit(rows, labels)
    np.testing.assert_allclose(
        ours.decision_function(rows), rest.decision_function(rows), atol=1e-5
    )
    few = SupportVectorMachine(kernel=RBF(1.3)).fit(X, y)
    assert len(few.X_train_) < 80


def test_the_logistic_machine_with_a_linear_kernel_is_logistic_regression():
    y = (X @ [1.0, -0.5, 0.2] + 0.5 * RANDOM.normal(size=80) > 0).astype(int)
    ours = LogisticKernelMachine(kernel=Linear(), alpha=0.5).fit(X, y)
    theirs = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    balanced = LogisticKernelMachine(kernel=Linear(), alpha=0.5, class_weight="balanced")
    other = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, class_weight="balanced")
    few = y * (RANDOM.random(80) < 0.3)
    np.testing.assert_allclose(
        balanced.fit(X, few).predict_proba(X), other.fit(X, few).predict_proba(X), atol=1e-6
    )


def test_several_classes_get_probabilities():
    rows, labels = load_iris(return_X_y=True)
    model = LogisticKernelMachine(kernel=RBF(1.0), alpha=0.1).fit(rows[::2], labels[::2])
    p = model.predict_proba(rows[1::2])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert model.score(rows[1::2], labels[1::2]) > 0.9
    assert model.decision_function(rows[:4]).shape == (4, 3)
    assert model.decision_function(rows[:4])[0].argmax() == pytest.approx(0)
