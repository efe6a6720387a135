"""Any system of the catalogue that does the task: which is meant, how it is set, what it leaves."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor
from tests.method.small import quick_plan, write_table

import castalia
from castalia.catalog import SYSTEMS, system_for
from castalia.data.table_adapter import TableAdapter
from castalia.errors import InvalidParameter
from castalia.method import evaluate, predict, run
from castalia.method.table_model import build_model
from castalia.method.task import find_task


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("data") / "fruit.csv")


@pytest.mark.parametrize(
    "task, name, meant",
    [
        ("regression", "ridge", "Ridge"),
        ("regression", "mlp", "MLPRegressor"),
        ("classification", "MLP", "MLPClassifier"),
        ("classification", "logistic", "LogisticRegression"),
        ("classification", "gradient-boost", "GradientBoost"),
        ("regression", "Linear Regression", "LinearRegression"),
        ("classification", "LinearSVM", "LinearSVM"),
    ],
)
def test_a_system_is_found_by_its_name_or_a_short_form(task, name, meant):
    assert system_for(task, name).name == meant


def test_every_system_on_tables_is_found_by_its_own_name():
    for record in SYSTEMS.values():
        for task in {"classification", "regression"} & set(record.tasks):
            if record.data == "table":
                assert system_for(task, record.name.lower()) is record


@pytest.mark.parametrize(
    "name, said",
    [
        ("rigde", r"got 'rigde'. Did you mean `ridge`"),
        ("gradientbost", "Did you mean `gradientboost`"),
        ("perceptron", "must do regression on tables; Perceptron does `classification` on table"),
        ("kmeans", "KMeans does `clustering` and `features` on table data"),
        ("zzz", r"`LinearRegression`, `Ridge`.*got 'zzz'\.$"),
    ],
)
def test_a_name_that_cannot_be_meant_is_answered_with_those_that_can(name, said):
    with pytest.raises(InvalidParameter, match=said):
        system_for("regression", name)


def built(table, target, rows=80, **plan):
    task = find_task(castalia.read(table).with_target(target))
    return build_model(quick_plan(table, target, **{"settings": {}, **plan}), task, rows)


def test_ensembles_wrap_a_network_for_the_task_and_settings_find_their_place(table):
    settings = {"members": 3, "lr": 0.02, "weight_decay": 0.5, "estimator__hidden": 16}
    model = built(table, "price", model="bagging", settings=settings)
    assert isinstance(model.estimator, castalia.MLPRegressor)
    assert (model.members, model.estimator.lr, model.estimator.hidden) == (3, 0.02, (16,))
    assert model.estimator.training.weight_decay == 0.5
    with pytest.raises(InvalidParameter, match="of Bagging .* or of MLPRegressor .*`hidden`"):
        built(table, "price", model="bagging", settings={"hiden": 3})
    with pytest.raises(InvalidParameter, match=r"setting of Ridge \(`.*\)\. Did you mean `alpha`"):
        built(table, "price", model="ridge", settings={"alhpa": 3})


@pytest.mark.parametrize("name", [None, "mlp"])
@pytest.mark.parametrize("target", ["kind", "price"])
def test_a_fit_trains_what_python_code_gets_without_a_setting(table, target, name):
    model = built(table, target, model=name)
    usual = type(model)()
    same = {"random_state", "training"}
    found, wanted = model.get_params(deep=False), usual.get_params(deep=False)
    assert {k: v for k, v in found.items() if k not in same} == {
        k: v for k, v in wanted.items() if k not in same
    }
    loop = replace(model.training, device="auto", verbose="auto")
    assert loop == usual.usual_training
    assert type(model).__name__.startswith("Tabular" if name is None else "MLP")


def test_boosting_is_a_classifier_where_classes_are_asked_for(table):
    assert is_classifier(built(table, "kind", model="gradientboost"))
    assert is_regressor(built(table, "price", model="gradientboost"))
    assert isinstance(built(table, "kind", model="deepensemble").estimator, castalia.MLPClassifier)


def test_categories_become_columns_of_zeros_and_ones(table):
    data = castalia.read(table).select(["length", "width", "colour"])
    adapter = TableAdapter().fit(data)
    found = adapter.matrix(data)
    assert found.shape == (80, 5)  # two numbers, one mark of what is missing, two colours
    red = data.column("colour") == "red"
    np.testing.assert_array_equal(found[:, 3:], np.column_stack([~red, red]))
    teal = pd.DataFrame({"length": [0.0], "width": [np.nan], "colour": ["teal"]})
    assert adapter.matrix(teal)[0, 1:].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("name, target", [("ridge", "price"), ("perceptron", "kind")])
def test_a_direct_model_is_fitted_saved_and_asked_like_a_network(table, tmp_path, name, target):
    result = run(quick_plan(table, target, model=name, settings={}, seeds=None, run=tmp_path / "r"))
    assert result.summary["models"]["model"] == SYSTEMS[name.title()].name
    assert result.summary["seeds"]["n"] == 3  # the split plays a part
    assert "network" not in result.summary["verdict"]
    model = castalia.load(result.model)
    rows = castalia.read(table)
    answers = predict(result.folder, table, name="model").columns["prediction"]
    np.testing.assert_array_equal(model.predict(rows), answers)
    scores = evaluate(result.folder, table, name="model").scores
    assert scores["r2" if target == "price" else "accuracy"] > 0.8
    assert run(quick_plan(table, target, model=name, settings={}, seeds=None, run=result.folder))


def test_a_model_fitted_on_numbers_again_forgets_the_table(table, tmp_path):
    plan = quick_plan(table, "price", model="ridge", settings={}, run=tmp_path / "r", cv=2)
    model = castalia.load(run(plan).model)
    X = np.random.default_rng(0).normal(size=(20, 2))
    assert not hasattr(model.fit(X, X[:, 0]), "adapter_")
    assert model.predict(X).shape == (20,)


def test_an_ensemble_of_trees_reads_a_table_with_words_and_gaps(table, tmp_path):
    plan = quick_plan(
        table, model="AdaBoost", settings={"members": 5}, seeds=None, run=tmp_path / "r"
    )
    result = run(plan)
    assert result.report.probability is not None
    found = predict(result.folder, table)
    assert {"prediction", "probability_pear", "probability_plum"} == set(found.columns)
