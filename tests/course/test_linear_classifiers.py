"""Rows of the course on linear classifiers that belong to no single file."""

import numpy as np
import pytest

from castalia import LinearRegression, LogisticRegression, Perceptron


def test_regressing_one_hot_targets_approaches_the_posterior():
    """With P(c | x) linear in the features, least squares on one-hot targets converges to it."""

    def error(n, seed):
        random = np.random.default_rng(seed)
        x = random.uniform(size=n)
        posterior = np.column_stack([x**2, x * (1 - x), 1 - x])  # sums to one
        y = (random.uniform(size=(n, 1)) > posterior.cumsum(axis=1)).sum(axis=1)
        model = LinearRegression().fit(np.column_stack([x, x**2]), np.eye(3)[y])
        grid = np.linspace(0, 1, 101)
        true = np.column_stack([grid**2, grid * (1 - grid), 1 - grid])
        return np.sqrt(np.mean((model.predict(np.column_stack([grid, grid**2])) - true) ** 2))

    errors = [np.mean([error(n, seed) for seed in range(5)]) for n in (200, 3_200, 51_200)]
    assert errors[2] < 0.005
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.6)  # falls as 1 / sqrt(n)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.6)


def test_one_against_all_and_the_argmax_rule_agree_on_separable_classes():
    random = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = 8 * np.array([[0.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])[y] + random.normal(size=(300, 2))
    scores = [
        Perceptron(multiclass=kind).fit(X[:150], y[:150]).score(X[150:], y[150:])
        for kind in ("ovr", "argmax")
    ]
    assert scores == [1.0, 1.0]


def test_the_gradient_of_logistic_regression_vanishes_at_the_minimum():
    """sum_n (p_n - y_n) x_n = 0 without a penalty, and there is no closed form for it."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    y = (X[:, 0] + random.logistic(size=300) > 0).astype(int)
    model = LogisticRegression(C=np.inf).fit(X, y)
    gap = model.predict_proba(X)[:, 1] - y
    np.testing.assert_allclose(gap @ np.column_stack([X, np.ones(300)]), 0, atol=1e-8)
