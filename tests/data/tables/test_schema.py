"""Kinds of columns, their figures, and the page that shows them."""

import numpy as np
import pandas as pd
import pytest

from castalia.data import Schema, read
from castalia.errors import InvalidData

N = 60


def kind_of(values, name="a"):
    return read(pd.DataFrame({name: values})).schema[name].kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 1] * 30, "numeric"),
        (np.linspace(0, 1, N), "numeric"),
        (["red", "blue"] * 30, "categorical"),
        ([True, False] * 30, "boolean"),
        (pd.date_range("2020-01-01", periods=N), "date"),
        ([f"a sentence about thing number {i}" for i in range(N)], "text"),
        ([f"A{i}" for i in range(N)], "identifier"),
        (["w" * 200 + str(i % 30) for i in range(N)], "text"),
        ([7] * N, "constant"),
        (["x"] * N, "constant"),
        ([None] * N, "constant"),
        ([np.nan] * N, "constant"),
        ([np.inf, 1.0] * 30, "numeric"),
        (pd.Categorical([f"c{i}" for i in range(N)]), "categorical"),
        ([1.0, None] * 30, "numeric"),  # where it is missing may matter
    ],
)
def test_kinds_follow_the_values(values, kind):
    assert kind_of(values) == kind


@pytest.mark.parametrize(
    "name", ["id", "PassengerId", "user_id", "ID", "row id", "unnamed_1", "index"]
)
def test_distinct_whole_numbers_named_like_ids_are_identifiers(name):
    assert kind_of(range(N), name) == "identifier"
    assert kind_of(np.random.default_rng(0).permutation(N), name) == "identifier"


@pytest.mark.parametrize("name", ["age", "paid", "humid", "year"])
def test_distinct_whole_numbers_with_other_names_stay_numeric(name):
    assert kind_of(range(N), name) == "numeric"


def test_repeated_numbers_named_like_ids_stay_numeric():
    assert kind_of([1, 2] * 30, "shop_id") == "numeric"


def test_figures_are_those_of_numpy():
    values = np.array([3.0, np.nan, 4.0, 8.0])
    column = read(pd.DataFrame({"a": values})).schema["a"]
    assert (column.missing, column.unique) == (1, 3)
    assert (column.minimum, column.maximum) == (3.0, 8.0)
    np.testing.assert_allclose([column.mean, column.std], [np.nanmean(values), np.nanstd(values)])


def test_categories_come_most_frequent_first_and_ties_in_order():
    schema = read(pd.DataFrame({"a": ["z", "b", "a", "z", None, "b", "z", "a"]})).schema
    assert schema["a"].categories == ("z", "a", "b")
    assert schema.balance("a") == {"z": 3, "a": 2, "b": 2}


def test_balance_of_a_numeric_target_keeps_numbers():
    assert read(pd.DataFrame({"y": [1, 0, 1]})).schema.balance("y") == {1: 2, 0: 1}


def test_too_many_distinct_values_are_not_all_counted():
    column = read(np.random.default_rng(0).normal(size=(20_000, 1))).schema["x0"]
    assert column.many
    assert column.unique == 10_000


def test_names_are_filtered_by_kind_and_unknown_ones_answered():
    schema = read(pd.DataFrame({"Age": [1, 2], "ok": [True, False]})).schema
    assert schema.names() == ["Age", "ok"]
    assert schema.names("boolean") == ["ok"]
    assert [c.name for c in schema] == ["Age", "ok"]
    with pytest.raises(
        InvalidData, match=r"`age` must be a column of the table.*Did you mean `Age`\?"
    ):
        schema["age"]


def test_the_summary_is_aligned_and_says_what_matters():
    frame = pd.DataFrame({"id": range(40), "age": [None, *range(20, 59)], "sex": ["m", "f"] * 20})
    frame["when"] = pd.date_range("2020-01-01", periods=40)
    frame["empty"] = None
    lines = read(frame, target="sex").summary().splitlines()
    assert lines[0].endswith("40 rows, 5 columns, target sex")
    starts = {
        line.index(word) for line, word in zip(lines[3:6], ["ident", "numer", "categ"], strict=True)
    }
    assert len(starts) == 1
    text = "\n".join(lines)
    for words in (
        "2.5 %",
        "20 … 58",
        "2020-01-01 … 2020-02-09",
        "all values are missing; not used",
    ):
        assert words in text
    assert lines[-1] == "sex: f 50.0 % (20), m 50.0 % (20)"


def test_an_empty_schema_still_prints():
    assert Schema(0, ()).summary().startswith("column")


def test_a_notebook_shows_every_column_and_no_markup_of_the_file():
    frame = pd.DataFrame({"<b>age</b>": [1.0, None], "city": ["Pisa", "Bern"]})
    schema = read(frame).schema
    shown = schema._repr_html_()
    assert "&lt;b&gt;age&lt;/b&gt;" in shown
    assert "<b>" not in shown
    assert shown.count("<tr>") == 3
    assert "50.0 %" in shown
