"""Checking X, y and weights."""

import numpy as np
import pandas as pd
import pytest
import torch

from castalia import LinearRegression, LogisticRegression, MLPClassifier, MLPRegressor
from castalia.base.input_checks import check_target
from castalia.data import read
from castalia.errors import InvalidData, InvalidParameter

X = np.arange(12.0).reshape(6, 2)
FAST = {"hidden": (2,), "epochs": 1, "random_state": 0}


@pytest.mark.parametrize(
    "y, message",
    [
        ([0, 1, np.nan, 1, 0, np.inf], "got 2 of 6, first in row 2"),
        (np.array([0, None, 1, 1, 0, 1], dtype=object), "got 1 of 6, first in row 1"),
        ([0, 1, 0], "same number of rows; got 6 and 3"),
        (None, "requires y to be passed, but the target y is None"),
    ],
    ids=["nan", "none", "short", "absent"],
)
def test_a_target_that_cannot_be_used_is_named(y, message):
    for model in (MLPClassifier(**FAST), MLPRegressor(**FAST)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        with pytest.raises(ValueError, match=message):
            model.fit(pd.DataFrame(X, columns=["a", "b"]), y)


@pytest.mark.parametrize(
    "weight, message",
    [
        ([-1.0, 1, 1, 1, 1, 1], "at least 0"),
        (np.zeros(6), "above 0 somewhere|one non-zero"),
        ([1.0, 2.0], "shape"),
    ],
    ids=["negative", "zero", "short"],
)
def test_weights_that_cannot_be_used_are_named(weight, message):
    for table in (X, pd.DataFrame(X, columns=["a", "b"])):
        with pytest.raises(ValueError, match=message):
            MLPRegressor(**FAST).fit(table, np.arange(6.0), sample_weight=weight)


def test_a_dataset_brings_its_target():
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=[0, 1] * 3)
    named = MLPClassifier(**FAST).fit(read(table, target="y"))
    given = MLPClassifier(**FAST).fit(read(table), "y")
    assert named.feature_names_in_.tolist() == given.feature_names_in_.tolist() == ["a", "b"]
    rows = table[["a", "b"]]
    assert np.array_equal(named.predict_proba(rows), given.predict_proba(rows))


def test_a_dataset_without_a_target_asks_for_one():
    with pytest.raises(InvalidData, match=r"names no target; use read\(path, target=…\)"):
        MLPClassifier(**FAST).fit(read(pd.DataFrame(X, columns=["a", "b"])))


def test_a_frame_with_other_columns_is_refused():
    model = MLPRegressor(**FAST).fit(pd.DataFrame(X, columns=["a", "b"]), np.arange(6.0))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=["a", "c"]))


FRAME = pd.DataFrame(X**2, columns=["a", "b"])
LINE = X**2 @ [1.0, 2.0]


def test_a_dataset_is_read_by_column_names_by_linear_models_too():
    model = LinearRegression().fit(read(FRAME.assign(y=LINE), target="y"))
    turned = read(FRAME.assign(y=LINE)[["y", "b", "a"]], target="y")
    np.testing.assert_allclose(model.predict(turned), LINE)
    with pytest.raises(InvalidData, match="`a` is missing. Did you mean `aa`"):
        model.predict(read(FRAME.rename(columns={"a": "aa"})))


def test_words_in_a_table_for_a_linear_model_are_named():
    words = FRAME.assign(city=["Rome"] * 6)
    for table in (words, read(words)):
        with pytest.raises(InvalidData, match="numbers only; got 'Rome' in column `city`"):
            LinearRegression().fit(table, LINE)


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_of_a_tensor_must_be_finite(weight):
    with pytest.raises(InvalidData, match=f"must hold no NaN or infinity; got {weight}"):
        LinearRegression().fit(torch.tensor(X), LINE, sample_weight=[weight, 1, 1, 1, 1, 1])


@pytest.mark.parametrize(
    "y, message",
    [
        (pd.Series(["u", "v", pd.NA] * 2), "got 2 of 6, first in row 2"),
        (pd.Series([pd.NaT, "v", "u"] * 2, dtype=object), "got 2 of 6, first in row 0"),
        ([1, "a", 2, "a", 1, "a"], None),
        (np.array([1, "a"] * 3, dtype=object), "labels of one type; got int and str"),
        ("label", "a value for each row of X; got 'label'"),
    ],
    ids=["NA", "NaT", "list", "mixed", "name"],
)
def test_labels_that_cannot_be_sorted_into_classes_are_named(y, message):
    if message is None:  # numpy made words of them
        assert LogisticRegression().fit(X, y).classes_.tolist() == ["1", "2", "a"]
        return
    with pytest.raises(InvalidData, match=message):
        LogisticRegression().fit(X, y)


def test_missing_labels_among_words_are_no_class_of_their_own():
    X = np.zeros((4, 2))
    with pytest.raises(InvalidData, match="got 1 of 4, first in row 1"):
        check_target(MLPClassifier(), X, ["a", np.nan, "b", "a"])
    assert check_target(MLPClassifier(), X, ["a", "b", "b", "a"]).dtype.kind == "U"


def test_an_address_is_fitted_with_the_column_that_target_names(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    for i, part in enumerate((X[:25], X[25:])):
        frame = pd.DataFrame(part, columns=["a", "b"]).assign(y=part[:, 0] * 2)
        frame.to_csv(tmp_path / f"{i}.csv", index=False)
    address = f"{tmp_path}/*.csv"
    fitted = MLPRegressor(epochs=1, random_state=0).fit(address, target="y")
    wanted = MLPRegressor(epochs=1, random_state=0).fit(read(address, target="y"))
    assert fitted.history_[0]["loss"] == wanted.history_[0]["loss"]
    with pytest.raises(InvalidParameter, match="`y` must be None where `target` names a column"):
        MLPRegressor().fit(address, X[:, 0], target="y")
    for words in ((address,), (address, X[:, 0])):
        with pytest.raises(InvalidData, match=r"X must be rows; got the address .*target="):
            MLPRegressor().fit(*words)
    with pytest.raises(InvalidData, match=r"X must be rows; got the address .*castalia\.read"):
        fitted.predict(tmp_path / "0.csv")
