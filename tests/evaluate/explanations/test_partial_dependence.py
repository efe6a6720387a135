import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LogisticRegression

from castalia.data import read
from castalia.errors import InvalidParameter
from castalia.evaluate import PartialDependence


def test_mean_and_lines_are_scikit_learn_s_at_the_values_of_the_column():
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 6, 50), random.normal(size=(50, 2))])
    model = RandomForestRegressor(5, random_state=0).fit(X, X[:, 0] * X[:, 1])
    theirs = partial_dependence(model, X, [0], kind="both", grid_resolution=30, method="brute")
    ours = PartialDependence.from_estimator(model, X, "x0")
    np.testing.assert_allclose(ours.grid, theirs["grid_values"][0])
    np.testing.assert_allclose(ours.mean, theirs["average"][0])
    np.testing.assert_allclose(ours.lines, theirs["individual"][0])


def test_the_interval_is_that_of_a_mean_over_rows():
    X = np.random.default_rng(0).normal(size=(40, 2))

    class Product:
        def fit(self, X, y=None):
            return self

        def predict(self, X):
            return X[:, 0] * X[:, 1]

    shown = PartialDependence.from_estimator(Product(), X, 0)
    error = np.abs(shown.grid) * X[:, 1].std(ddof=1) / np.sqrt(40)
    np.testing.assert_allclose(shown.interval[:, 1] - shown.mean, 1.96 * error)


def test_categories_come_by_frequency_and_gaps_are_left_out():
    frame = pd.DataFrame({"colour": ["red", "blue", None, "blue", "red", "blue"], "n": range(6)})

    class Blue:
        def fit(self, X, y=None):
            return self

        def predict(self, X):
            return np.array([value == "blue" for value in X.column("colour")], dtype=float)

    shown = PartialDependence.from_estimator(Blue(), read(frame), "colour").plot()
    assert shown.grid.tolist() == ["blue", "red"]
    assert shown.mean.tolist() == [1.0, 0.0]
    assert not shown.ordered
    assert [text.get_text() for text in shown.ax_.get_xticklabels()] == ["blue", "red"]


def test_the_class_that_changes_most_is_shown_unless_one_is_named():
    X = np.linspace(-1, 1, 60)[:, None] * [1.0, 0.0]
    y = np.where(X[:, 0] < -0.9, "rare", np.where(X[:, 0] < 0, "low", "high"))
    model = LogisticRegression(C=100).fit(X, y)
    assert PartialDependence.from_estimator(model, X, 0).output in ("high", "low")
    shown = PartialDependence.from_estimator(model, X, 0, output="rare", points=5).plot()
    assert len(shown.grid) == 5
    assert "rare" in shown.ax_.get_ylabel()
    with pytest.raises(InvalidParameter, match="`output` must be `high`, `low` or `rare`; got 'x'"):
        PartialDependence.from_estimator(model, X, 0, output="x")
    with pytest.raises(InvalidParameter, match="`column` must be one of `x0` or `x1`; got 'x2'"):
        PartialDependence.from_estimator(model, X, "x2")
