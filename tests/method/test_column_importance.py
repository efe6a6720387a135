import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from castalia.data import read
from castalia.method.report import RunReport, render
from castalia.method.report.column_importance import column_importance, importance_rows


class Named(LinearRegression):
    """A regression that knows the columns `size` and `<b>`."""

    def predict(self, X):
        return 2 * X.column("size") + 0 * X.column("<b>")


@pytest.fixture(scope="module")
def found():
    random = np.random.default_rng(0)
    data = read(pd.DataFrame({"size": random.normal(size=60), "<b>": random.normal(size=60)}))
    return column_importance(Named(), data, 2 * data.column("size"), "r2")


def test_the_column_in_use_comes_first_and_its_effect_is_drawn(found):
    assert found["columns"] == ["size", "<b>"]
    assert found["values"][1] == 0
    (effect,) = found["effects"]
    np.testing.assert_allclose(effect["lines"].mean(axis=0), 2 * effect["grid"])


def test_the_page_has_a_figure_and_a_table_of_the_columns(found):
    report = RunReport("Sizes", "regression", "y", importance=found)
    assert RunReport.from_json(report.to_json()) == report
    page = render(report)
    assert "What the model uses" in page
    assert "Loss of R² when a column is shuffled" in page
    assert '<th scope="row">&lt;b&gt;</th>' in page
    assert [row["clear"] for row in importance_rows(report)] == [True, False]


def test_what_cannot_be_computed_does_not_cost_the_report(caplog):
    class Broken(Named):
        def predict(self, X):
            raise ValueError("no")

    data = read(pd.DataFrame({"size": [1.0, 2.0], "<b>": [1.0, 2.0]}))
    assert column_importance(Broken(), data, np.zeros(2), "r2") == {}
    assert "could not be computed: no" in caplog.text
