"""The command line: parsing, JSON, exit codes, and one clear sentence for every bad input."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.method.small import write_table
from typer.testing import CliRunner

from castalia.cli import app

QUICK = ["--set", "epochs=2", "--set", "hidden=8", "--seeds", "1", "--boosting-rounds", "5"]
QUICK += ["--preflight-seconds", "0", "--quiet", "--time", "none"]
SOURCE = Path(__file__).parents[2] / "src"


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def sentence(*words):
    """Run a command that must fail by the user's fault; return what it says."""
    done = call(*words)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def table(folder):
    return write_table(folder / "fruit.csv")


@pytest.fixture(scope="module")
def fitted(folder, table):
    done = call("fit", table, "--target", "kind", "--run", folder / "runs" / "fruit", *QUICK)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture
def bad(tmp_path):
    def write(text, name="bad.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def fail_fit(path, target="kind", *more):
    return sentence(
        "fit", path, "--target", target, "--run", Path(path).parent / "r", *QUICK, *more
    )


# ---- verbs ----


def test_fit_tells_baselines_scores_verdict_and_the_report(fitted, folder):
    for words in (
        "Baselines (Accuracy",
        "Guessing",
        "Gradient boosting",
        "Scores on the 16",
        "Verdict",
    ):
        assert words in fitted.stdout
    assert fitted.stdout.splitlines()[-1] == f"Report: {folder / 'runs' / 'fruit' / 'report.html'}"


def test_json_is_the_only_thing_on_standard_output(fitted, folder, table):
    done = call(
        "fit", table, "--target", "kind", "--run", folder / "runs" / "fruit", *QUICK, "--json"
    )
    found = json.loads(done.stdout)
    assert found["task"] == "classification"
    assert found["outcome"] in ("better", "equal", "worse", "none")
    assert "Verdict" in done.stderr


def test_predictions_can_be_printed_written_and_given_as_json(fitted, folder, table):
    run = folder / "runs" / "fruit"
    printed = call("predict", run, table)
    assert printed.stdout.splitlines()[0] == "prediction,probability_pear,probability_plum"
    assert len(printed.stdout.splitlines()) == 81
    for ending in ("csv", "parquet", "jsonl"):
        assert call("predict", run, table, "--out", folder / f"p.{ending}").exit_code == 0
    import castalia

    first = castalia.read(folder / "p.csv").column("prediction").tolist()
    assert castalia.read(folder / "p.parquet").column("prediction").tolist() == first
    assert castalia.read(folder / "p.jsonl").column("prediction").tolist() == first
    found = json.loads(call("predict", run, table, "--json").stdout)
    assert [row["prediction"] for row in found["predictions"]] == first


def test_evaluate_scores_new_rows(fitted, folder):
    fresh = write_table(folder / "fresh.csv", seed=1)
    found = json.loads(call("evaluate", folder / "runs" / "fruit", fresh, "--json").stdout)
    assert found["rows"] == 80
    assert found["target"] == "kind"
    assert 0 <= found["interval"][0] <= found["scores"]["accuracy"] <= found["interval"][1] <= 1
    assert "Accuracy" in call("evaluate", folder / "runs" / "fruit", fresh).stdout


def test_report_is_written_again(fitted, folder):
    page = folder / "runs" / "fruit" / "report.html"
    before = page.read_text()
    page.unlink()
    assert json.loads(call("report", page.parent, "--json").stdout)["report"] == str(page)
    assert page.read_text() == before


def test_runs_are_listed(fitted, folder):
    found = json.loads(call("runs", folder / "runs", "--json").stdout)["runs"]
    assert [(run["name"], run["status"]) for run in found] == [("fruit", "finished")]
    score = found[0]["score"]
    summary = json.loads((folder / "runs" / "fruit" / "result.json").read_text())["summary"]
    own = {model["name"]: model["scores"] for model in summary["contenders"]}
    assert score["value"] == own[score["by"]]["accuracy"]
    assert f"accuracy {score['value']:.4g}" in call("runs", folder / "runs").stdout


def test_a_short_name_means_one_system_or_lists_several():
    assert "Rumelhart" in call("models", "mlpclassifier").stdout
    found = json.loads(call("models", "mlp", "--json").stdout)["models"]
    assert [row["name"] for row in found] == ["MLPClassifier", "MLPRegressor"]
    assert json.loads(call("models", "logreg", "--json").stdout)["name"] == "LogisticRegression"
    assert json.loads(call("models", "U-Net", "--json").stdout)["name"] == "UNetSegmenter"
    assert "`mlp` may be `MLPClassifier` or `MLPRegressor`" in sentence(
        "models", "mlp", "--describe"
    )


def test_models_are_listed_searched_and_described():
    assert "MLPClassifier" in call("models").stdout
    found = json.loads(call("models", "--search", "mlp regress", "--json").stdout)
    assert [row["name"] for row in found["models"]] == ["MLPRegressor"]
    assert "Rumelhart" in call("models", "MLPClassifier").stdout
    assert "Did you mean `MLPClassifier`?" in sentence("models", "MLPClasifier")
    assert "residual" in call("models", "resnet").stdout.lower()


def test_the_layers_of_a_system_are_shown_without_training_it():
    shown = call("models", "MLPClassifier", "--describe").stdout
    assert "dense 20->64" in shown
    total = next(line for line in shown.splitlines() if "total" in line).split()
    assert total[:4] == ["total", "10", "6,016", "138"]
    asked = ("--describe", "--input", "5", "--outputs", "1", "--json")
    layers = json.loads(call("models", "DistributionRegressor", *asked).stdout)["layers"]
    assert layers[1]["kind"] == "dense 5->64"
    assert layers[0]["output"] == [5]
    asked = ("--describe", "--size", "GPT-2", "--input", "8", "--json")
    layers = json.loads(call("models", "GPTLanguageModel", *asked).stdout)["layers"]
    assert sum(layer["weights"] + layer["biases"] for layer in layers) == 124_439_808  # published


def test_what_has_no_layers_to_show_is_said():
    assert "must be given one system; got none" in sentence("models", "--describe")
    assert "a network; `Ridge` is none" in sentence("models", "Ridge", "--describe")
    assert "a network; `Bagging` is none" in sentence("models", "Bagging", "--describe")
    assert "Did you mean `mlp`?" in sentence("models", "mlpp")
    assert "--input must be COLUMNS, such as 20; got '3x4'" in sentence(
        "models", "MLPClassifier", "--describe", "--input", "3x4"
    )
    assert "got 'huge'" in sentence("models", "MLPClassifier", "--describe", "--size", "huge")
    assert "takes sequence data" in sentence("models", "AdaptiveFilter", "--describe")
    for name in ("T5", "ImageCaptioner"):
        assert "a network that reads one input" in sentence("models", name, "--describe")
    assert "one row of tokens" in sentence("models", "BERTTagger", "--describe")
    assert "a network; `Word2Vec` is none" in sentence("models", "Word2Vec", "--describe")


def test_fit_takes_any_model_of_the_catalogue_by_its_name(folder, table):
    words = ("fit", table, "--target", "price", "--model", "ridge", "--set", "alpha=0.1")
    run = folder / "runs" / "ridge"
    done = call(*words, "--run", run, "--boosting-rounds", "5", "--quiet", "--json")
    found = json.loads(done.stdout)
    assert found["contenders"][-1]["name"] == "Ridge"
    assert call("predict", run, table).stdout.splitlines()[0] == "prediction"
    said = sentence("fit", table, "--target", "price", "--model", "rigde")
    assert "must be a system for regression on tables" in said
    assert said.endswith("got 'rigde'. Did you mean `ridge`?")
    said = sentence("fit", table, "--target", "price", "--model", "perceptron")
    assert "`model` must do regression on tables; Perceptron does `classification`" in said


def test_tune_tells_trials_the_best_settings_and_what_the_best_model_scores(folder, table):
    run = folder / "runs" / "tuned"
    words = ["tune", table, "--target", "price", "--model", "ridge", "--run", run, "--folds", "2"]
    words += ["--boosting-rounds", "5", "--try", "alpha=0.01|1|100"]
    done = call(*words, "--trials", "3", "--search", "grid")
    assert done.exit_code == 0, done.output
    for said in (
        "Search",
        "  3/3  ",
        "Best settings (3 trials; R² on held-out training rows)",
        "alpha=0.01",
        "What mattered: too few trials",
        "Scores on the 16",
        "Verdict",
    ):
        assert said in done.stdout
    again = call(*words, "--trials", "3", "--search", "grid", "--seconds", "60", "--json")
    found = json.loads(again.stdout)
    assert found["best"]["alpha"] in (0.01, 1)
    assert found["counts"] == {"complete": 3, "pruned": 0, "fail": 0}
    assert "  3/3  " not in again.stderr  # no trial is done twice
    assert call("predict", run, table).exit_code == 0


def test_a_wrong_search_is_one_sentence(table):
    base = ("tune", table, "--target", "price", "--model", "ridge")
    assert sentence(*base, "--search", "gird").endswith("got 'gird'. Did you mean `grid`?")
    assert "must be NAME=LOW..HIGH or NAME=VALUE|VALUE" in sentence(*base, "--try", "alpha")
    assert "`trials` must be a whole number of at least 1" in sentence(*base, "--trials", "0")
    assert sentence(*base[:-1], "rigde").endswith("Did you mean `ridge`?")


def test_ctrl_c_in_a_search_says_how_to_go_on(table, tmp_path, monkeypatch):
    import castalia

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(castalia.Ridge, "fit", interrupted)
    done = call("tune", table, "-t", "price", "--model", "ridge", "--run", tmp_path / "r")
    assert done.exit_code == 2
    said = f"castalia: Interrupted; run the same command to continue (run folder {tmp_path / 'r'})."
    assert done.stderr.splitlines()[-1] == said


def test_the_course_is_counted_and_listed():
    found = json.loads(call("course", "--json").stdout)
    assert found["total"]["rows"] == sum(area["rows"] for area in found["areas"])
    rows = json.loads(call("course", "--area", "LIN", "--open", "--json").stdout)["rows"]
    assert all(row["id"].startswith("LIN-") and row["open"] for row in rows)
    assert "`area` must be `LIN`" in sentence("course", "--area", "nowhere")


def test_help_is_quick_and_imports_no_torch():
    code = "import sys; sys.argv=['castalia','--help']\nfrom castalia.cli import main\n"
    code += "try:\n main()\nexcept SystemExit: pass\n"
    code += "assert not {'torch', 'rich', 'sklearn'} & set(sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "predict" in done.stdout


# ---- bad input ----


def test_a_missing_file_is_named_with_a_near_miss(table):
    words = fail_fit(table.with_name("friut.csv"))
    assert words.endswith("must be a file; there is none. Did you mean `fruit.csv`?")
    assert fail_fit(table.with_name("fig.csv")).endswith("must be a file; there is none.")


def test_an_empty_file_is_said_to_be_empty(bad):
    assert fail_fit(bad("")).endswith("must hold a table; the file is empty.")


def test_one_column_leaves_nothing_to_learn_from(bad):
    assert "it has only that one, so nothing is left to learn from" in fail_fit(bad("kind\na\nb\n"))


def test_a_target_that_is_not_there_gets_the_near_miss(table):
    assert fail_fit(table, "knid").endswith("Did you mean `kind`?")


def rows(*lines, times=8):
    return "\n".join(["a,b,kind", *(lines * times)]) + "\n"


def test_a_table_without_a_usable_column_says_why(bad):
    words = fail_fit(bad(rows("1,,x", "1,,y")))
    assert "must have a column to learn from" in words


def test_constant_empty_and_mixed_columns_are_noted(bad, tmp_path):
    text = "a,b,c,kind\n" + "".join(f"1,,{i % 7},{'xy'[i % 2]}\n" for i in range(30))
    done = call(
        "fit", bad(text + "1,,ten,x\n"), "--target", "kind", "--run", tmp_path / "r", *QUICK
    )
    assert done.exit_code == 0, done.output
    assert "Not used: a (a single value), b (all values are missing)." in done.stdout
    assert "Column `c`: 1 of 31 values is not a number, first at line 32: 'ten'." in done.stdout


def test_a_gap_in_the_target_is_named_by_row(bad):
    words = fail_fit(bad(rows("1,2,0.5", "2,3,1.5") + "4,5,\n"))
    assert "1 of 17 value is missing (NaN), first in row 16" in words


def test_infinity_in_the_target_is_named_by_row(bad):
    words = fail_fit(bad(rows("1,2,0.5", "2,3,1.5") + "4,5,inf\n"))
    assert "1 of 17 value is infinite (inf), first in row 16" in words


def test_infinity_in_a_column_is_named(bad):
    words = fail_fit(bad(rows("1,2,x", "2,3,y") + "inf,5,x\n"))
    assert "column `a` must hold finite numbers; got inf in row 16" in words


def test_one_class_is_nothing_to_predict(bad):
    assert "all 16 rows hold 'x', so there is nothing to predict" in fail_fit(
        bad(rows("1,2,x", "2,3,x"))
    )


def test_more_classes_than_rows_allow_are_counted(bad):
    text = "a,b,kind\n" + "".join(f"{i},{i * i % 7},c{i % 15}\n" for i in range(45))
    assert "the target has 15 classes and the test part 9 rows" in fail_fit(bad(text))


def test_a_ragged_line_is_named(bad):
    words = fail_fit(bad(rows("1,2,x", "2,3,y") + "1,2,3,4\n"))
    assert "line 18" in words


def test_a_file_without_names_is_refused_with_the_remedy(bad):
    path = bad("".join(f"{i + 2},{i % 7},{(i + 1) % 2}\n" for i in range(30)))
    assert "If it is data, say --no-header" in fail_fit(path)
    assert (
        call(
            "fit", path, "-t", "column_3", "--no-header", "--run", path.parent / "r", *QUICK
        ).exit_code
        == 0
    )


def test_missing_columns_at_prediction_are_named(fitted, folder, bad):
    words = sentence("predict", folder / "runs" / "fruit", bad("lenght,width\n1,2\n"))
    assert (
        "`length`, `when`, `price`, `colour` and `site` are missing. Did you mean `lenght`?"
        in words
    )


def test_unseen_categories_are_named_and_refused_when_strict(fitted, folder, table, bad):
    lines = table.read_text().splitlines()[:2]
    path = bad(
        "\n".join([lines[0], lines[1].replace("red", "teal").replace("blue", "teal")]) + "\n"
    )
    run = folder / "runs" / "fruit"
    done = call("predict", run, path)
    assert done.exit_code == 0
    said = "Column `colour` holds values unseen in training in 1 row, taken as missing: `teal`."
    assert said in done.stderr
    assert said in sentence("predict", run, path, "--strict")


def copy_of_model(fitted_folder, tmp_path):
    import shutil

    return Path(shutil.copytree(fitted_folder / "runs" / "fruit" / "model", tmp_path / "model"))


def test_a_damaged_model_is_refused(fitted, folder, table, tmp_path):
    model = copy_of_model(folder, tmp_path)
    weights = model / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    assert "is truncated or was altered. Restore it from a copy." in sentence(
        "predict", model, table
    )


def test_a_model_of_an_unknown_class_is_refused(fitted, folder, table, tmp_path):
    from castalia.base.store import _checksum

    model = copy_of_model(folder, tmp_path)
    head = json.loads((model / "model.json").read_text())
    head["class"] = "EvilClassifier"
    head["checksum"] = _checksum(head)
    (model / "model.json").write_text(json.dumps(head))
    assert "EvilClassifier" in sentence("predict", model, table)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    assert "must be the folder of a run; there is none" in sentence("report", tmp_path / "none")
    assert "it has no `castalia.db`" in sentence("runs", tmp_path)


def test_a_full_disk_is_one_sentence_and_the_same_command_goes_on(table, tmp_path, monkeypatch):
    import errno

    import castalia.utils.atomic_files as files

    real = os.replace

    def full(source, target):
        if Path(target).name == "result.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(source, target)

    words = ("fit", table, "--target", "kind", "--run", tmp_path / "r", *QUICK)
    monkeypatch.setattr(files.os, "replace", full)
    done = call(*words)
    assert done.exit_code == 2
    assert "No space left on device" in done.stderr.splitlines()[-1]
    monkeypatch.undo()
    assert (tmp_path / "r" / "model").is_dir()
    assert call(*words).exit_code == 0


def test_ctrl_c_says_how_to_go_on(table, tmp_path, monkeypatch):
    import castalia

    def interrupted(*_):
        raise KeyboardInterrupt

    words = ("fit", table, "--target", "kind", "--run", tmp_path / "r", *QUICK)
    monkeypatch.setattr(castalia.TabularClassifier, "fit", interrupted)
    done = call(*words)
    assert done.exit_code == 2
    said = f"castalia: Interrupted; run the same command to continue (run folder {tmp_path / 'r'})."
    assert done.stderr.splitlines()[-1] == said


def test_a_bug_has_exit_code_one_and_a_traceback_file(table, monkeypatch):
    import castalia.method.kinds.table_kind as module

    monkeypatch.setattr(module, "find_task", lambda *_: 1 / 0)
    done = call("fit", table, "--target", "kind", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["exit_code"] == 1
    log = Path(found["error"].partition("the traceback is in ")[2].rstrip("."))
    assert "ZeroDivisionError" in log.read_text()
    log.unlink()


def test_warnings_of_other_libraries_stay_off_the_terminal(capsys):
    import warnings

    from castalia.cli.error_exit import guarded
    from castalia.errors import DataWarning

    def verb():
        warnings.simplefilter("always")
        warnings.warn("Unknown section Shapes", UserWarning, stacklevel=1)
        warnings.warn("a column is empty", DataWarning, stacklevel=1)

    guarded(verb)()
    assert capsys.readouterr().err == "Note: a column is empty\n"


def test_errors_are_json_too_when_asked_for(table):
    done = call("fit", table, "--target", "knid", "--json")
    assert json.loads(done.stdout)["exit_code"] == 2
    assert done.exit_code == 2


def test_a_wrong_option_has_exit_code_two(table):
    assert call("fit", table, "--targt", "kind").exit_code == 2
    assert "must be NAME=VALUE" in fail_fit(table, "kind", "--set", "lr")


def test_python_m_castalia_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "castalia", "--version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout == CliRunner().invoke(app, ["--version"]).stdout
