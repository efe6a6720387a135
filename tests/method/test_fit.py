"""The whole method: stages, resuming, splits, and what is left on disk."""

import json

import numpy as np
import pytest
from tests.method.small import quick_plan, write_table

import castalia
from castalia.errors import InvalidData, InvalidParameter
from castalia.method import FitResult, Narrator, run
from castalia.method.kinds import open_data
from castalia.method.problem import pose_problem
from castalia.method.saved_model import load_model


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("data") / "fruit.csv")


@pytest.fixture(scope="module")
def finished(table, tmp_path_factory):
    return run(quick_plan(table, run=tmp_path_factory.mktemp("runs") / "fruit", seeds=2))


class Record(Narrator):
    def __init__(self):
        self.events = []

    def training(self, number, of, words):
        self.events.append(words)


def test_a_run_leaves_a_model_a_page_and_results(finished):
    assert finished.model.is_dir()
    assert finished.page.read_text().startswith("<!doctype html>")
    assert json.loads((finished.folder / "result.json").read_text())["format"] == 1
    assert [c.name for c in finished.report.contenders][:4] == [
        "Guessing",
        "Logistic regression",
        "Gradient boosting",
        "TabularClassifier",
    ]
    assert finished.summary["rows"] == {"all": 80, "tested": 32}


def test_the_saved_model_gives_the_answers_of_the_report(finished, table):
    fit = pose_problem(open_data(quick_plan(table, seeds=2)))
    test = fit.parts[0].test
    again = load_model(finished.folder).predict(fit.kind.X.take(test))
    assert again.tolist() == finished.report.y_pred[: len(test)]


def test_a_finished_run_is_read_and_not_done_again(finished, table):
    record = Record()
    again = run(quick_plan(table, run=finished.folder, seeds=2), record)
    assert record.events == []
    assert again.summary == finished.summary


def test_another_plan_in_the_same_folder_gets_a_folder_of_its_own(finished, table):
    other = run(quick_plan(table, run=finished.folder, seeds=2, seed=5))
    assert other.folder.name == "fruit-2"
    assert FitResult.load(finished.folder).summary == finished.summary


def test_an_interrupted_run_goes_on_and_ends_alike(table, tmp_path, monkeypatch):
    settings = {"settings": {"epochs": 6, "hidden": (8,)}, "seeds": 2}
    whole = run(quick_plan(table, run=tmp_path / "whole", **settings))
    plan = quick_plan(table, run=tmp_path / "cut", **settings)
    cut_in_epoch(monkeypatch, training=2, epoch=4)
    with pytest.raises(KeyboardInterrupt):
        run(plan)
    monkeypatch.undo()
    record = Record()
    resumed = run(plan, record)
    assert len(record.events) == 1  # the first seed and the baselines are not done twice
    assert resumed.report.probability == whole.report.probability
    assert weights(resumed) == weights(whole)


def cut_in_epoch(monkeypatch, training, epoch):
    """Press Ctrl-C in an epoch of a training; checkpoints are written every three steps."""
    from castalia.method import training_run as module
    from castalia.train import Callback

    class Cut(Callback):
        def on_batch_end(self, state):
            if state.epoch == epoch and state.step == 1:
                raise KeyboardInterrupt

    count, fit = [0], castalia.TabularClassifier.fit

    def counted(self, X, y=None, sample_weight=None):
        count[0] += 1
        if count[0] == training:
            self.training.callbacks = (Cut(),)
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(castalia.TabularClassifier, "fit", counted)
    monkeypatch.setattr(module, "CHECKPOINT_STEPS", 3)


def weights(result):
    module = castalia.load(result.model).module_
    return {name: value.tolist() for name, value in module.state_dict().items()}


def test_a_damaged_stage_is_done_again(table, tmp_path):
    plan = quick_plan(table, run=tmp_path / "run")
    first = run(plan)
    (first.folder / "result.json").unlink()
    (first.folder / "stages" / "linear.json").write_text("{")
    assert run(plan).summary["contenders"][1]["scores"] == first.summary["contenders"][1]["scores"]


def test_folds_test_every_row_once(table, tmp_path):
    result = run(quick_plan(table, run=tmp_path / "run", cv=4))
    assert result.summary["rows"]["tested"] == 80
    assert len(result.report.y_true) == 80
    assert (result.folder / "final" / "model").is_dir()


def test_a_regression_is_inferred_from_its_fractions(table, tmp_path):
    result = run(quick_plan(table, "price", run=tmp_path / "run"))
    assert result.report.task == "regression"
    assert result.summary["why"] == "`price` holds numbers with fractions"
    assert result.report.contenders[1].name == "Ridge regression"


def test_groups_stay_together_and_their_column_is_not_learnt_from(table):
    fit = prepared(table, group="site")
    sites = castalia.read(table).column("site")
    part = fit.parts[0]
    assert set(sites[part.train]).isdisjoint(sites[part.test])
    assert "site" not in fit.kind.used


def test_by_time_the_latest_rows_are_tested(table):
    fit = prepared(table, time="when")
    when = castalia.read(table).column("when")
    part = fit.parts[0]
    assert when[part.train].max() <= when[part.test].min()


def test_classes_keep_their_proportions(table):
    fit = prepared(table)
    shares = [
        np.bincount(fit.task.codes[rows]) / len(rows)
        for rows in (fit.parts[0].train, fit.parts[0].test)
    ]
    assert np.abs(shares[0] - shares[1]).max() < 0.07


def prepared(table, **settings):
    return pose_problem(open_data(quick_plan(table, **settings)))


def test_a_time_limit_ends_trainings_and_leaves_later_seeds_out(table, tmp_path):
    plan = quick_plan(
        table,
        run=tmp_path / "run",
        seeds=3,
        time_limit=1e-6,
        settings={"epochs": 50, "hidden": (8,)},
    )
    result = run(plan)
    assert result.summary["seeds"]["n"] == 1
    assert len(result.report.history) == 1
    assert "The time limit left no time for training 2 and later ones." in result.summary["notes"]
    assert castalia.load(result.model).training.callbacks == ()


def test_a_wrong_setting_is_refused_before_any_work(table, tmp_path):
    plan = quick_plan(table, run=tmp_path / "run", settings={"hiden": 3})
    with pytest.raises(
        InvalidParameter,
        match="`hiden` must be a setting of TabularClassifier .* Did you mean `hidden`",
    ):
        run(plan)
    assert not (tmp_path / "run").exists()


def test_a_model_for_another_task_is_refused(table, tmp_path):
    with pytest.raises(
        InvalidParameter, match="`model` must do classification on tables; MLPRegressor does"
    ):
        run(quick_plan(table, run=tmp_path / "run", model="MLPRegressor"))


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"seeds": 0}, "`seeds` must be a whole number of at least 1; got 0"),
        ({"cv": 1}, "`cv` must be a whole number of at least 2; got 1"),
        ({"test": 1.5}, "`test` must be a share between 0 and 1; got 1.5"),
        ({"task": "regresion"}, "Did you mean `regression`"),
        ({"horizon": 0}, "`horizon` must be a whole number of at least 1"),
        ({"time_limit": 0}, "`time_limit` must be above 0 seconds; got 0"),
    ],
)
def test_a_plan_refuses_wrong_values(settings, words):
    with pytest.raises(InvalidParameter, match=words):
        quick_plan("x.csv", **settings)


def test_a_group_with_gaps_is_refused(table):
    with pytest.raises(
        InvalidData, match="column `width` must have a value in every row to split by"
    ):
        prepared(table, time="width")
