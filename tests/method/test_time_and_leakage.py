"""Dates are found, split by and taken apart; columns that give the target away are named."""

import numpy as np
import pyarrow as pa
import pytest
from tests.method import small

import castalia
from castalia.data import read
from castalia.data.tables.calendar_columns import calendar_columns
from castalia.method import evaluate, predict, run
from castalia.method.kinds import open_data
from castalia.method.leakage import find_leaks
from castalia.method.task import find_task
from castalia.method.time_column import find_time


def quick_plan(data, target, **settings):
    return small.quick_plan(data, target, **({"time": None} | settings))


@pytest.mark.parametrize(
    "first, second",
    [
        ("1749-01", "1749-02"),
        ("31/12/2020", "01/01/2021"),
        ("12/31/2020", "01/01/2021"),
        ("Jan 1949", "Feb 1949"),
        ("2020-03-05 07:30", "2020-03-05 08:30"),
    ],
)
def test_time_is_found_in_the_formats_that_files_have(tmp_path, first, second):
    (tmp_path / "t.csv").write_text(f"a,when,y\n1,{first},2\n3,{second},5\n")
    assert find_time(read(tmp_path / "t.csv"), "y") == "when"


def test_words_and_numbers_are_no_time():
    data = read(pa.table({"a": ["x1", "x2"] * 5, "b": ["12.5", "1/2"] * 5, "c": [1, 2] * 5}))
    assert find_time(data) is None
    born = np.arange("1990-01-01", "1990-01-11", dtype="datetime64[D]")
    assert find_time(read(pa.table({"birth_date": born, "y": list(range(10))}))) is None


def test_calendar_columns_agree_with_pandas():
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2020-01-01", "2022-06-01", freq="7h")
    found = calendar_columns("t", times.to_numpy())
    assert list(found) == ["t (month)", "t (weekday)", "t (hour)"]
    for part, expected in (
        ("month", times.month),
        ("weekday", times.day_of_week + 1),
        ("hour", times.hour),
    ):
        assert found[f"t ({part})"].to_pylist() == [str(n) for n in expected]


def test_only_cycles_that_the_dates_show_more_than_once_become_columns():
    months = np.arange("1949-01", "1961-01", dtype="datetime64[M]").astype("datetime64[us]")
    assert list(calendar_columns("m", months)) == ["m (month)"]
    assert list(calendar_columns("m", months[:6])) == []
    assert len(calendar_columns("m", months[:1], every=True)) == 3  # for a model that asks for them


def test_climbing_numbers_are_time_by_their_name_only():
    table = {"year": list(range(1900, 1930)), "Id": list(range(30)), "y": list(range(30))}
    assert find_time(read(pa.table(table)), "y") == "year"
    assert find_time(read(pa.table({"Id": table["Id"], "y": table["y"]})), "y") is None
    years = {"year": [2007, 2008, 2009] * 10, "y": table["y"]}  # a few years, many rows each
    assert find_time(read(pa.table(years)), "y") is None


@pytest.fixture(scope="module")
def passengers(tmp_path_factory):
    """Months with a trend and a season, which a straight line with months continues."""
    path, rng = tmp_path_factory.mktemp("time") / "passengers.csv", np.random.default_rng(0)
    lines = ["Month,Passengers"]
    for i in range(96):
        season = 30 * np.sin(2 * np.pi * i / 12)
        lines.append(f"{1949 + i // 12}-{i % 12 + 1:02d},{100 + 2 * i + season + rng.normal():.1f}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_dates_split_forwards_by_default_and_that_is_said(passengers):
    kind = open_data(quick_plan(passengers, "Passengers", seeds=3))
    when = kind.data.column("Month")
    assert len(kind.parts) == 3
    assert all(when[part.train].max() < when[part.test].min() for part in kind.parts)
    assert "later than those they were trained on" in " ".join(kind.notes)
    assert "always later than those trained on" in kind.split_words()
    assert kind.used == ["Month", "Month (month)"]
    aside = open_data(quick_plan(passengers, "Passengers", seeds=1, time="none"))
    assert aside.keys.order is None
    assert when[aside.parts[0].train].max() > when[aside.parts[0].test].min()


def test_a_model_of_dates_answers_new_dates(passengers, tmp_path):
    found = run(quick_plan(passengers, "Passengers", seeds=2, run=tmp_path / "run"))
    assert found.summary["recommended"] == "linear"
    assert evaluate(found.folder, passengers).scores["r2"] > 0.95
    (tmp_path / "next.csv").write_text("Month\n1957-01\n")
    (said,) = predict(found.folder, tmp_path / "next.csv").columns["prediction"]
    assert said == pytest.approx(100 + 2 * 96, abs=15)
    network = castalia.load(found.model)  # in Python, dates are taken apart as well
    named = predict(found.folder, passengers, name="model").columns["prediction"]
    np.testing.assert_allclose(network.predict(read(passengers)), named)


def test_days_and_months_keep_the_order_they_had_in_training(passengers, tmp_path):
    lines = [line.split(",") for line in passengers.read_text().splitlines()[1:]]
    turned = [f"{15 + i % 9}/{when[5:]}/{when[:4]},{y}" for i, (when, y) in enumerate(lines)]
    (tmp_path / "turned.csv").write_text("\n".join(["Month,Passengers", *turned]) + "\n")
    found = run(quick_plan(tmp_path / "turned.csv", "Passengers", run=tmp_path / "run"))
    for name, when in (("doubtful", "05/02/1957"), ("sure", "1957-02-05"), ("other", "2/15/1957")):
        (tmp_path / f"{name}.csv").write_text(f"Month\n{when}\n")
    said = {n: predict(found.folder, tmp_path / f"{n}.csv") for n in ("doubtful", "sure", "other")}
    assert said["doubtful"].columns["prediction"] == said["sure"].columns["prediction"]
    assert said["doubtful"].notes == []
    (note,) = said["other"].notes
    assert "must hold dates written %d/%m/%Y, as before; it holds dates written %m/%d/%Y" in note


def test_time_that_leaves_one_class_to_learn_from_is_left_aside():
    table = pa.table(
        {
            "date": np.arange("2020-01-01", "2020-02-10", dtype="datetime64[D]"),
            "x": list(range(40)),
            "y": ["a"] * 34 + ["b"] * 6,
        }
    )
    kind = open_data(quick_plan(table, "y", seeds=1))
    assert kind.keys.order is None


def task_of(table):
    data = read(table, target="y")
    return data, [name for name in data.columns if name != "y"], find_task(data)


def test_copies_and_functions_of_the_target_are_found():
    rng = np.random.default_rng(0)
    y = rng.uniform(-1, 1, size=300)
    near = y + rng.normal(size=300) / 9
    table = {"copy": y, "scaled": 3 * y - 2, "cubed": y**3, "near": near}
    data, columns, task = task_of(pa.table(table | {"y": y}))
    assert set(find_leaks(data, columns, task)) == {"copy", "scaled", "cubed"}
    label = np.where(y > 0.2, "yes", "no")
    outcome = np.where(label == "yes", "paid", "unpaid")
    noisy = np.where(rng.random(300) < 0.02, "paid", outcome)
    table = {"outcome": outcome, "noisy": noisy, "code": (label == "yes").astype(int)}
    data, columns, task = task_of(pa.table(table | {"y": label}))
    assert set(find_leaks(data, columns, task)) == {"outcome", "code"}


def test_strong_columns_of_real_tables_are_no_leaks():
    from sklearn.datasets import load_iris

    iris = load_iris()
    columns = {f"x{i}": iris.data[:, i] for i in range(4)}
    assert find_leaks(*task_of(pa.table(columns | {"y": iris.target.astype(str)}))) == {}
    rare = np.array(["a"] * 5 + ["b"] * 4995)
    noise = np.random.default_rng(0).normal(size=5000)
    assert find_leaks(*task_of(pa.table({"x": noise, "y": rare}))) == {}


def test_a_leak_is_said_before_anything_else_and_can_be_dropped(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 60))
    rows = "\n".join(f"{a:.4f},{b * 2:.4f},{b:.4f}" for a, b in zip(x, y, strict=True))
    (tmp_path / "leak.csv").write_text(f"x,total_after,y\n{rows}\n")
    found = run(quick_plan(tmp_path / "leak.csv", "y", run=tmp_path / "run"))
    said = "Column total_after alone predicts y almost perfectly"
    assert found.verdict.startswith(said)
    assert "--drop total_after" in found.verdict
    kind = open_data(quick_plan(tmp_path / "leak.csv", "y", drop=("total_after",)))
    assert (kind.used, list(kind.warnings)) == (["x"], [])
