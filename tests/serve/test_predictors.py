"""Models without a graph behind the server: scikit-learn's, and blends of them with a network."""

import csv

import numpy as np
import pytest
from tests.method.small import write_table
from tests.serve.running import running

import castalia
from castalia import MLPClassifier
from castalia.errors import InvalidData
from castalia.method.blend import Blend
from castalia.method.saved_contender import save_contender
from castalia.method.table_baselines import table_baseline
from castalia.serve.predictors import GraphPredictor, TablePredictor, predictor_of
from castalia.serve.served_model import ServedModel

COLUMNS = ["length", "width", "colour", "when", "when (weekday)"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = write_table(tmp_path_factory.mktemp("data") / "fruit.csv")
    data = castalia.read(path, target="kind")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    numbers = ("length", "width")
    return data, [row | {n: float(row[n]) if row[n] else None for n in numbers} for row in rows]


@pytest.fixture(scope="module")
def models(table):
    from castalia.data.tables.calendar_columns import with_calendar

    data = table[0]
    X, y = with_calendar(data, every=True).select(COLUMNS), data.labels()
    found = {
        key: table_baseline(key, X, "classification", 5, 0).fit(X, y)
        for key in ("linear", "boosting")
    }
    network = MLPClassifier(hidden=(4,), epochs=2, random_state=0).fit(X, y)
    blend = Blend({**found, "model": network}, {"linear": 0.3, "boosting": 0.3, "model": 0.4})
    return found | {"blend": blend, "network": network}, X


@pytest.mark.parametrize("key", ["linear", "boosting", "blend"])
def test_rows_of_several_requests_are_answered_as_predict_does(models, table, key):
    model, X = models[0][key], models[1]
    predictor = predictor_of(model)
    assert isinstance(predictor, TablePredictor)
    parts = [predictor.parse(table[1][:1]), predictor.parse(table[1][1:30])]  # one has no gaps
    found = predictor.answer(predictor.join(parts))
    rows = X.take(np.arange(30))
    np.testing.assert_array_equal(found["prediction"], model.predict(rows))
    np.testing.assert_allclose(found["probability"], model.predict_proba(rows), atol=1e-6)
    assert predictor.classes == ["pear", "plum"]


def test_a_network_is_answered_by_its_graph(models):
    assert isinstance(predictor_of(models[0]["network"]), GraphPredictor)


@pytest.mark.parametrize(
    "change, like",
    [
        ({"length": "1.5"}, {"length": 1.5}),
        ({"length": ""}, {"length": None}),
        ({"length": True}, {"length": 1}),
        ({"colour": "green"}, {"colour": None}),
        ({"when": "2024-01-07T00:00"}, {"when": "2024-01-07"}),
    ],
)
def test_values_that_mean_the_same_get_the_same_answer(models, table, change, like):
    predictor = predictor_of(models[0]["boosting"])
    said = [
        predictor.answer(predictor.join([predictor.parse([table[1][0] | each])]))["probability"]
        for each in (change, like)
    ]
    np.testing.assert_array_equal(*said)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"length": "forty"}, "column `length` must hold finite numbers or dates .* got 'forty'"),
        ({"length": 1e999}, "column `length` must hold finite numbers"),
        ({"colour": ["red"]}, "column `colour` must hold words"),
        ({"when": "yesterday"}, "column `when` must hold dates"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_before_it_meets_others(models, table, change, said):
    with pytest.raises(InvalidData, match=said):
        predictor_of(models[0]["boosting"]).parse([table[1][0] | change])


def test_the_server_answers_by_it(models, table, tmp_path):
    save_contender(models[0]["boosting"], tmp_path / "fruit")
    with running({"fruit": ServedModel("fruit", tmp_path / "fruit")}) as ask:
        status, found = ask("POST", "/predict", {"rows": table[1][:3]})
        assert status == 200, found
        said = [row["probability_plum"] for row in found["predictions"]]
        wanted = models[0]["boosting"].predict_proba(models[1].take(np.arange(3)))[:, 1]
        np.testing.assert_allclose(said, wanted)
        status, found = ask("POST", "/predict", [{"length": 1.0}])
        assert status == 422
        assert "`width`" in found["error"]
