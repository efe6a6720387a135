import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from castalia.data import read
from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import PermutationImportance


def rows(n=80, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, X @ [2.0, 0.0, 0.5]


def test_the_means_are_scikit_learn_s_with_the_same_seed():
    X, y = rows()
    model = LinearRegression().fit(X, y + X[:, 0] ** 2)
    theirs = permutation_importance(model, X, y, n_repeats=4, random_state=3).importances_mean
    ours = PermutationImportance.from_estimator(model, X, y, repeats=4, random_state=3)
    order = np.argsort(-theirs)
    assert ours.columns == [f"x{i}" for i in order]
    np.testing.assert_allclose(ours.values, theirs[order], rtol=1e-9)


def test_a_loss_rises_where_a_score_falls():
    X, y = rows()
    model = LinearRegression().fit(X, y)
    for metric in ("mae", "rmse", "mse", "r2"):
        found = PermutationImportance.from_estimator(model, X, y, metric=metric)
        assert found.columns[0] == "x0"
        assert found.values[0] > 0
        assert found.intervals[0, 0] > 0


def test_intervals_hold_what_many_repeats_on_many_rows_find():
    """At the stated rate, over draws of the rows: 95 % within the noise of 30 trials."""
    X, y = rows(4000, seed=9)
    model = LinearRegression().fit(X, y)
    y = y + np.random.default_rng(1).normal(size=4000)
    whole = PermutationImportance.from_estimator(model, X, y, metric="mse", repeats=10, rounds=2)
    truth = dict(zip(whole.columns, whole.values, strict=True))["x2"]
    held = 0
    for trial in range(30):
        part = np.random.default_rng(trial).choice(4000, 100, replace=False)
        found = PermutationImportance.from_estimator(
            model, X[part], y[part], metric="mse", repeats=5, random_state=trial
        )
        low, high = found.intervals[found.columns.index("x2")]
        held += low <= truth <= high
    assert 26 <= held <= 30


def test_categories_are_one_column_under_their_own_name():
    n = 60
    frame = pd.DataFrame({"size in cm": np.arange(n) % 7, "colour": ["red", "blue", "sand"] * 20})
    y = (frame["colour"] == "red").to_numpy()
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough"),
        LogisticRegression(),
    ).fit(frame, y)
    found = PermutationImportance.from_estimator(model, frame, y)
    assert found.columns == ["colour", "size in cm"]
    assert found.values[1] == pytest.approx(0, abs=1e-12)


def polars(frame):
    return pytest.importorskip("polars").DataFrame(dict(frame))


@pytest.mark.parametrize("form", [pd.DataFrame, polars, read])
def test_frames_give_what_their_array_gives(form):
    X, y = rows(40)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=range(100, 140))
    table = form(frame)

    class Sum(LinearRegression):
        def predict(self, X):
            data = read(X)
            return np.column_stack([data.column(name) for name in data.columns]) @ [2, 0, 0.5]

    model = Sum().fit(X, y)
    ours = PermutationImportance.from_estimator(model, table, y, repeats=2)
    plain = PermutationImportance.from_estimator(model, X, y, repeats=2)
    assert ours.columns == ["a", "c", "b"]
    np.testing.assert_allclose(ours.values, plain.values)


def test_copies_share_their_importance_and_a_group_has_it_whole():
    X, y = rows(200)
    twice = np.column_stack([X[:, 0], X[:, 0], X[:, 1]])
    model = LinearRegression().fit(twice, X[:, 0])
    alone = PermutationImportance.from_estimator(model, twice, X[:, 0], metric="mse")
    group = PermutationImportance.from_estimator(
        model, twice, X[:, 0], metric="mse", groups={"both": ["x0", "x1"]}
    )
    assert group.columns[0] == "both"
    assert group.values[0] > 1.9 * alone.values[0]


def test_any_function_of_truth_and_prediction_may_score():
    X, y = rows(40)
    model = LinearRegression().fit(X, y)
    found = PermutationImportance.from_estimator(
        model, X, y, metric=lambda a, b: -np.abs(a - b).max(), repeats=2, rounds=20
    )
    assert found.columns[0] == "x0"


def test_more_rows_than_asked_for_are_drawn():
    X, y = rows(50)
    model = LinearRegression().fit(X, y)
    asked = []
    model.predict = lambda rows: asked.append(len(rows)) or rows @ model.coef_
    PermutationImportance.from_estimator(model, X, y, most=20, repeats=1)
    assert set(asked) == {20}


def test_the_figure_names_the_columns():
    X, y = rows(40)
    shown = PermutationImportance.from_estimator(LinearRegression().fit(X, y), X, y).plot(most=2)
    assert [text.get_text() for text in shown.ax_.get_yticklabels()] == ["x0", "x2"]


def test_errors_say_what_to_do():
    X, y = rows(20)
    model = LinearRegression().fit(X, y)
    with pytest.raises(InvalidData, match="same number of rows; got 20 and 19"):
        PermutationImportance.from_estimator(model, X, y[1:])
    with pytest.raises(InvalidParameter, match="`x9` is no column"):
        PermutationImportance.from_estimator(model, X, y, groups={"g": ["x9"]})
    with pytest.raises(InvalidParameter, match="stands in two groups"):
        PermutationImportance.from_estimator(model, X, y, groups={"g": ["x0"], "h": ["x0"]})
    with pytest.raises(InvalidData, match="shape"):
        PermutationImportance.from_estimator(model, y, y)
