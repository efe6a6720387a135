"""A table with words, gaps, booleans and dates as an ONNX file, checked against the model."""

import json
import runpy

import numpy as np
import onnx
import pandas as pd
import pytest
from typer.testing import CliRunner

import castalia
from castalia.cli.app import app
from castalia.errors import InvalidData
from castalia.export import OnnxModel, export_model
from castalia.export.exported_model import _compared
from castalia.export.model_graph import graph_of


def table(rows=80):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 9, rows).round(1),
            "city": rng.choice(["Pisa", "Lucca", "Siena"], rows),
            "member": rng.choice([True, False], rows),
            "since": pd.date_range("2020-01-01", periods=rows, freq="3D"),
            "prediction": rng.normal(size=rows),  # a column that is called as an output is
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::9, "city"] = None
    return frame, np.where(frame["age"].fillna(40) > 40, "old", "young")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    X, y = table()
    model = castalia.MLPClassifier(hidden=(4,), epochs=2, random_state=0).fit(X, y)
    folder = tmp_path_factory.mktemp("onnx")
    made = export_model(model, folder / "m.onnx", rows=X)
    castalia.save(model, folder / "model")
    X.to_csv(folder / "rows.csv", index=False)
    return model, made, folder


def test_columns_are_inputs_and_labels_outputs(exported):
    _, made, _ = exported
    assert made.inputs == ("age", "member", "since", "prediction", "city")
    assert made.outputs == ("probability", "prediction_answer")
    assert made.rows == 80
    assert made.difference < 1e-5
    assert made.opset >= 18
    assert made.path.stat().st_size == made.size


def test_new_rows_with_gaps_and_unseen_words_are_answered_as_the_model_does(exported):
    model, made, _ = exported
    X, _ = table(30)
    X.loc[3, "city"], X.loc[4, "city"], X.loc[5, "age"] = "Roma", None, np.nan
    found = OnnxModel(made.path).answers(X)
    assert found["prediction"].tolist() == model.predict(X).tolist()
    both = np.stack([found["probability_old"], found["probability_young"]], axis=1)
    np.testing.assert_allclose(both, model.predict_proba(X), atol=1e-6)


def test_a_file_holds_no_path_of_the_machine_that_wrote_it(exported):
    _, made, _ = exported
    assert b"site-packages" not in made.path.read_bytes()
    assert b"/castalia/" not in made.path.read_bytes()
    onnx.checker.check_model(onnx.load(made.path), full_check=True)


def test_the_command_line_runs_a_file(exported):
    model, made, folder = exported
    runner = CliRunner()
    done = runner.invoke(app, ["run", str(made.path), str(folder / "rows.csv"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["predictions"]
    assert [row["prediction"] for row in found] == model.predict(table()[0]).tolist()
    wrong = folder / "wrong.csv"
    wrong.write_text("age,town,member,since,prediction\n1,Pisa,True,2020-01-01,0\n")
    done = runner.invoke(app, ["run", str(made.path), str(wrong)])
    assert done.exit_code == 2
    assert "`city` is missing" in done.output


def test_the_script_beside_answers_rows_with_dates_as_the_model_does(exported, capsys):
    model, made, folder = exported
    assert [file.name for file in made.runner] == ["m.json", "m_run.py"]
    runpy.run_path(str(made.runner[1]))["main"](folder / "rows.csv")
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    X, _ = table()
    assert [row["prediction_answer"] for row in found] == model.predict(X).tolist()
    both = np.array([row["probability"] for row in found])
    np.testing.assert_allclose(both, model.predict_proba(X), atol=1e-6)


def test_a_column_of_words_where_numbers_were_is_named(exported):
    _, made, _ = exported
    X, _ = table(3)
    X["age"] = ["a", "b", "c"]
    with pytest.raises(InvalidData, match="column `age` must hold numbers"):
        OnnxModel(made.path).answers(X)


def test_a_file_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "x.onnx").write_bytes(b"not a graph")
    with pytest.raises(InvalidData, match="must be an ONNX file that `castalia export` wrote"):
        OnnxModel(tmp_path / "x.onnx")


def test_a_graph_that_answers_otherwise_is_refused():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0])
    graph = graph_of(castalia.LinearRegression().fit(X, y))
    assert _compared(graph, X, [y]) == (3, pytest.approx(0, abs=1e-12))
    with pytest.raises(InvalidData, match="it differs by 0.02"):
        _compared(graph, X, [y + 0.1])
