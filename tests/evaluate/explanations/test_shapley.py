from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

from castalia.data import read
from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import shapley_values


class Bumpy:
    """A function with interactions of several columns."""

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        X = np.asarray(X, dtype=float)
        return np.sin(X[:, 0] * X[:, 1]) + np.maximum(X, 0).prod(axis=1) + X[:, -1] ** 2


def brute(model, x, background):
    """The mean gain of each column over all orders in which columns become known."""
    found = np.zeros(len(x))
    orders = list(permutations(range(len(x))))
    for order in orders:
        rows = background.copy()
        before = model.predict(rows).mean()
        for j in order:
            rows[:, j] = x[j]
            after = model.predict(rows).mean()
            found[j] += (after - before) / len(orders)
            before = after
    return found


def test_exact_values_are_the_mean_gain_over_all_orders():
    random = np.random.default_rng(0)
    X, background = random.normal(size=(3, 5)), random.normal(size=(7, 5))
    found = shapley_values(Bumpy(), X, background)
    for row in range(3):
        np.testing.assert_allclose(found.values[row], brute(Bumpy(), X[row], background))
    assert found.exact


@pytest.mark.parametrize("exact", [True, False])
def test_values_add_up_to_the_output_minus_the_mean_of_the_background(exact):
    random = np.random.default_rng(1)
    X, background = random.normal(size=(4, 6)), random.normal(size=(9, 6))
    found = shapley_values(Bumpy(), X, background, exact=exact, rounds=2)
    wanted = Bumpy().predict(X) - Bumpy().predict(background).mean()
    np.testing.assert_allclose(found.values.sum(axis=1), wanted)
    np.testing.assert_allclose(found.outputs - found.base, wanted)
    assert found.gap < 1e-12


def test_a_column_without_effect_gets_nothing_and_equal_ones_the_same():
    class Pair(Bumpy):
        def predict(self, X):
            return X[:, 0] * X[:, 1]

    background = np.random.default_rng(0).normal(size=(6, 3))
    background[:, 1] = background[:, 0]
    found = shapley_values(Pair(), np.array([[2.0, 2.0, 9.0]]), background).values[0]
    assert found[0] == pytest.approx(found[1])
    assert found[2] == 0


def test_intervals_of_sampled_values_cover_the_exact_ones_at_their_rate():
    """95 % of 40 draws x 4 rows x 4 columns, within four standard deviations of a binomial."""
    random = np.random.default_rng(2)
    X, background = random.normal(size=(4, 4)), random.normal(size=(5, 4))
    exact = shapley_values(Bumpy(), X, background).values
    held = []
    for seed in range(40):
        found = shapley_values(Bumpy(), X, background, exact=False, rounds=8, random_state=seed)
        low, high = np.moveaxis(found.intervals, 2, 0)
        held.append((low <= exact) & (exact <= high))
    assert 0.915 <= np.mean(held) <= 0.99


def test_intervals_shrink_with_the_root_of_the_rounds():
    random = np.random.default_rng(3)
    X, background = random.normal(size=(2, 5)), random.normal(size=(8, 5))
    wide, narrow = (
        shapley_values(Bumpy(), X, background, exact=False, rounds=n).intervals for n in (10, 160)
    )
    ratio = np.ptp(narrow, axis=2).mean() / np.ptp(wide, axis=2).mean()
    assert 0.15 < ratio < 0.35


def test_the_predicted_class_is_divided_unless_another_is_named():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    found = shapley_values(model, X[:5], X)
    assert found.names == model.predict(X[:5]).tolist()
    np.testing.assert_allclose(found.outputs, model.predict_proba(X[:5]).max(axis=1))
    asked = shapley_values(model, X[:5], X, output="b")
    np.testing.assert_allclose(asked.outputs, model.predict_proba(X[:5])[:, 1])
    total = sum(shapley_values(model, X[:5], X, output=name).values for name in "abc")
    np.testing.assert_allclose(total, 0, atol=1e-12)


def test_categories_keep_their_names_and_groups_stand_for_their_columns():
    frame = pd.DataFrame({"colour": ["red", "blue"] * 4, "n": range(8), "m": range(8)})

    class Counted(Bumpy):
        def predict(self, X):
            red = np.array([value == "red" for value in X.column("colour")])
            return 10.0 * red + X.column("n") + X.column("m")

    data = read(frame)
    found = shapley_values(Counted(), data.take([0]), data, groups={"both": ["n", "m"]})
    assert found.columns == ["colour", "both"]
    np.testing.assert_allclose(found.values, [[5.0, -7.0]])
    assert found.cells.tolist() == [["red", "0, 0"]]
    assert found.ranked()[0][:3] == ("both", "0, 0", -7.0)


def test_the_figure_shows_columns_with_their_values():
    X = np.array([[0.0, 0.0], [2.0, 2.0], [4.0, 1.0]])
    model = LinearRegression().fit(X, X @ [3.0, 1.0])
    shown = shapley_values(model, X[2:], X).plot()
    assert shown.ax_.get_yticklabels()[0].get_text() == "x0 = 4"
    assert shown.ax_.get_title() == "7 on average, 13 here"
    with pytest.raises(InvalidParameter, match="`row` must be between 0 and 0; got 3"):
        shown.plot(row=3)


def test_errors_say_what_to_do():
    X = np.zeros((2, 2))
    with pytest.raises(InvalidParameter, match="`rounds` must be at least 2; got 1"):
        shapley_values(Bumpy(), X, X, rounds=1)
    with pytest.raises(InvalidData, match="same columns; got 2 and shape"):
        shapley_values(Bumpy(), X, np.zeros((2, 3)))
    with pytest.raises(InvalidData, match="of one kind; got ndarray and DataFrame"):
        shapley_values(Bumpy(), X, pd.DataFrame(X))
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    with pytest.raises(InvalidData, match="it lacks `b`"):
        shapley_values(Bumpy(), frame, frame[["a"]])
