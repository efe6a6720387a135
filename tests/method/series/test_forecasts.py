"""`castalia fit` on series: what is forecast from what, honestly tested, and predicted again."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from castalia import WindowRegressor
from castalia.base import load
from castalia.data.sequences import Sequences
from castalia.data.sequences.series_adapter import series_windows
from castalia.diagnose import preflight
from castalia.diagnose.preflight_checks import CHECKS
from castalia.errors import InvalidData, InvalidParameter
from castalia.method import FitPlan, TunePlan, evaluate, predict, run, tune
from castalia.method.answer_scores import measure
from castalia.method.kinds import LabelledSequences, SeriesForecast, Table, open_data
from castalia.method.problem import pose_problem
from castalia.method.settings_search import folds, pose_search
from castalia.method.tune_plan import parse_space

DAYS = np.arange("2024-01-01", "2024-09-01", dtype="datetime64[D]")
QUICK = {
    "seeds": 1,
    "boosting_rounds": 5,
    "preflight_seconds": 0,
    "settings": {"epochs": 3, "hidden": (8,), "context": 35},
}


def daily(days=DAYS, seed=0, **more):
    random = np.random.default_rng(seed)
    week = np.tile([5.0, 6, 7, 6, 5, 1, 0], len(days) // 7 + 1)[: len(days)]
    values = week + np.arange(len(days)) / 100 + 0.2 * random.normal(size=len(days))
    return pa.table({"day": days.astype("datetime64[s]"), "sales": values, **more})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forecast")
    path = folder / "sales.csv"
    wave = 5 + np.sin(np.arange(len(DAYS)) / 1.6)  # of ten days, not of weeks
    pa.csv.write_csv(daily().set_column(1, "sales", pa.array(wave)), path)
    own = {**QUICK, "run": folder / "run", "preflight_seconds": 2}
    return path, run(FitPlan(data=path, target="sales", time="day", horizon=7, **own))


def test_a_fit_reports_mase_skill_and_a_forecast(finished):
    _, result = finished
    names = [contender.name for contender in result.report.contenders]
    assert names[:3] == ["Seasonal naive", "Last value", "Drift"]
    assert result.summary["metric"] == "mase"
    assert "skill against seasonal naive" in result.report.verdict.lower()
    shown = result.report.forecasts
    assert len(shown["forecast"]) == len(shown["by_step"]) == 7
    assert "A season of 7 steps is taken" in " ".join(result.report.data["notes"])


@pytest.mark.parametrize("name", ["model", "seasonal", "linear", "boosting"])
def test_every_contender_goes_on_from_the_end_of_the_file(finished, name):
    path, result = finished
    found = predict(result.folder, path, name=name)
    assert found.columns["time"].tolist()[0] == "2024-09-01"
    assert len(found) == 7
    assert np.abs(found.columns["prediction"]).max() < 20


def test_new_steps_are_scored_by_mase(finished):
    path, result = finished
    found = evaluate(result.folder, path)
    assert 0 < found.scores["mase"] < 3


def test_no_future_that_is_tested_is_trained_on():
    kind = SeriesForecast(FitPlan(data=daily(), target="sales", time="day", horizon=5))
    assert len(kind.parts) == 3
    end = kind.X.start + kind.context + kind.horizon
    for part in kind.parts:
        first = (kind.X.start[part.test] + kind.context).min()
        assert end[part.train].max() <= first
        kept, held = kind.hold_validation(part.train, 0.2)
        assert end[kept].max() <= (kind.X.start[held] + kind.context).min()


def test_mase_is_the_error_over_that_of_the_last_season():
    y = np.array([[1.0, 2.0, 0.5], [3.0, 3.0, 2.0]])  # two futures, each with its scale
    said = np.array([[1.5, 2.0], [3.0, 5.0]])
    assert measure("mase")(y, said) == np.mean([0.5 / 0.5, 0, 0, 2 / 2])


def test_groups_are_series_and_short_ones_are_named():
    parts = [daily(seed=i) for i in range(2)] + [daily(DAYS[:5])]
    names = np.repeat(["a", "b", "tiny"], [len(p) for p in parts])
    table = pa.concat_tables(parts).append_column("shop", pa.array(names))
    kind = SeriesForecast(FitPlan(data=table, target="sales", time="day", group="shop", horizon=7))
    assert kind.series.ids.tolist() == ["a", "b"]
    assert any("`tiny`" in note for note in kind.notes)


def test_columns_that_never_change_are_named():
    table = daily(price=np.full(len(DAYS), 2.0), rain=DAYS.astype(float))
    found = SeriesForecast(FitPlan(data=table, target="sales", time="day", horizon=7))
    assert found.series.channels == ["sales", "rain"]
    assert "`price` never changes: left out." in found.notes


def test_missing_days_are_inserted_and_said():
    kept = np.delete(np.arange(len(DAYS)), [50, 51])
    plan = FitPlan(data=daily().take(kept), target="sales", time="day", horizon=7)
    kind = SeriesForecast(plan)
    assert kind.series.lengths.tolist() == [len(DAYS)]
    notes = " ".join(kind.notes)
    assert "2 steps of 244 are missing" in notes
    assert "2 missing values filled in" in notes


@pytest.mark.parametrize(
    "columns, how, kind",
    [
        ({}, {"horizon": 7}, SeriesForecast),
        ({}, {"time": "day"}, SeriesForecast),
        ({"price": np.arange(len(DAYS)) / 7}, {"time": "day"}, Table),
        ({"shop": ["a", "b"] * (len(DAYS) // 2)}, {"time": "day", "group": "shop"}, SeriesForecast),
        ({}, {}, Table),
    ],
)
def test_a_forecast_is_made_where_it_is_asked_for(columns, how, kind):
    plan = FitPlan(data=daily(**columns), target="sales", **how)
    assert type(open_data(plan)) is kind


@pytest.mark.parametrize(
    "table, how, error, words",
    [
        (daily(), {"horizon": 400}, InvalidData, "the longest has 244. Give a shorter --horizon"),
        (daily(), {"horizon": 7, "cv": 3}, InvalidParameter, "`cv` must be None"),
        (daily(DAYS[[0, 1, 1, 2]]), {"horizon": 1, "time": "day"}, InvalidData, "twice in 1 place"),
        (
            pa.table({"t": [1, 2, 3], "sales": ["a", "b", "c"]}),
            {"horizon": 1},
            InvalidData,
            "must hold numbers; `sales` holds 'a'",
        ),
    ],
)
def test_series_that_cannot_be_forecast_are_refused(table, how, error, words):
    with pytest.raises(error, match=words):
        open_data(FitPlan(data=table, target="sales", **how))


def logs(n=36, seed=0):
    random, rows = np.random.default_rng(seed), []
    for i in range(n):
        steps = int(random.integers(6, 12))
        wave = (1 + i % 2) * np.sin(np.arange(steps)) + 0.1 * random.normal(size=steps)
        kind = ["run", "fail"][i % 2]
        rows += [(f"m{i}", float(t), float(v), kind) for t, v in enumerate(wave)]
    return pa.table(dict(zip(["machine", "t", "v", "label"], zip(*rows, strict=True), strict=True)))


def test_sequences_of_groups_are_classified_and_predicted_by_group(tmp_path):
    plan = FitPlan(
        data=tmp_path / "logs.parquet",
        target="label",
        group="machine",
        time="t",
        run=tmp_path / "run",
        seeds=1,
        boosting_rounds=5,
        settings={"epochs": 3, "hidden": 16},
    )
    pa.parquet.write_table(logs(), plan.data)
    assert type(open_data(plan)) is LabelledSequences
    result = run(plan)
    assert [c.name for c in result.report.contenders][1:3] == [
        "Linear model on random convolutions",
        "Gradient boosting on summaries",
    ]
    assert "tiny-fit" in {check["name"] for check in result.report.preflight}
    for name in ("convolutions", "boosting", "model"):
        found = predict(result.folder, logs(4, seed=1).drop(["label"]), name=name)
        assert found.columns["machine"].tolist() == ["m0", "m1", "m2", "m3"]
        assert set(found.columns["prediction"]) <= {"run", "fail"}
    assert evaluate(result.folder, plan.data, name="convolutions").scores["accuracy"] > 0.8


def test_the_linear_baseline_is_ridge_with_intervals(finished):
    path, result = finished
    model = load(result.folder / "contenders" / "linear")
    assert model.solver == "ridge"
    found = predict(result.folder, path, name="linear").columns
    assert (found["low"] < found["high"]).all()


def test_settings_of_a_forecast_are_searched_by_windows_that_come_later(tmp_path):
    plan = FitPlan(
        data=daily(), target="sales", time="day", horizon=7, run=tmp_path / "run", **QUICK
    )
    found = tune(TunePlan(fit=plan, trials=2, search="random", space=parse_space(["lr=1e-3|1e-2"])))
    assert found.counts["complete"] == 2
    assert found.metric == "mase"
    assert 0 < found.score == found.trials[0]["score"] <= found.trials[1]["score"]
    search = pose_search(TunePlan(fit=plan), pose_problem(open_data(plan)))
    ((kept, held),) = folds(search)
    start = search.problem.kind.X.start[search.train]
    assert start[kept].max() + 35 + 7 <= start[held].min() + 35  # no future of theirs is trained on


def test_a_forecaster_is_checked_before_it_is_trained(finished):
    _, result = finished
    assert {check["name"] for check in result.report.preflight} <= set(CHECKS)
    assert result.report.preflight
    series = np.random.default_rng(0).normal(size=200)
    model = WindowRegressor(horizon=3, context=8, hidden=(64,), batch_size=64)
    found = {check.name: check.passed for check in preflight(model, windows_of(series), None, 60)}
    assert found["tiny-fit"]
    assert not found["input-matters"]  # noise says nothing about what follows


def windows_of(series):
    return series_windows(Sequences([series[:, None]]), 8, 3, "test")
