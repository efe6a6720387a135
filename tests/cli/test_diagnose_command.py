"""``castalia diagnose``, ``castalia cure`` and the doctor in ``castalia fit``."""

import json

import pytest
from tests.method.small import write_table
from typer.testing import CliRunner

from castalia.cli import app
from castalia.diagnose import Diagnosis

SLOW = [
    "--goal",
    "0.999",
    "--set",
    "lr=1e-6",
    "--set",
    "epochs=15",
    "--set",
    "hidden=8",
    "--seeds",
    "1",
    "--quiet",
]
SLOW += ["--time", "none", "--goal", "0.999", "--boosting-rounds", "5", "--preflight-seconds", "0"]


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doctor")
    table = write_table(folder / "fruit.csv", rows=150)
    done = call("fit", table, "-t", "kind", "--run", folder / "runs" / "slow", *SLOW)
    assert done.exit_code == 0, done.output
    return folder / "runs" / "slow", done.output


def test_a_fit_ends_with_findings_and_remedies_on_screen_and_in_the_report(run):
    folder, output = run
    assert "CST102  learning-rate-too-low (error)" in output
    assert "→ lr=1e-06 → " in output
    page = (folder / "report.html").read_text()
    assert "CST102" in page
    assert "learning-rate-too-low" in page


def test_a_fit_says_whether_its_goal_was_reached(run):
    assert "Goal: Accuracy" in run[1]
    assert "not reached" in run[1]


def test_the_diagnosis_of_a_run_is_printed_and_written(run, tmp_path):
    page, file = tmp_path / "d.html", tmp_path / "d.json"
    done = call("diagnose", run[0], "--html", page, "--json", file)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Diagnosis of TabularClassifier: 1 error.")
    assert "CST102" in page.read_text()
    assert Diagnosis.from_json(file.read_text()).findings[0].code == "CST102"


def test_the_diagnosis_goes_to_the_screen_as_json_and_can_be_muted(run):
    found = Diagnosis.from_json(call("diagnose", run[0], "--json", "-", "--mute", "CST102").stdout)
    assert "CST102" not in found


def test_a_folder_without_a_diagnosis_is_one_sentence(run, tmp_path):
    done = call("diagnose", run[0].with_name("slaw"))
    assert done.exit_code == 2
    assert "there is none. Did you mean" in done.stderr
    done = call("diagnose", tmp_path)
    assert done.exit_code == 2
    assert "no `diagnosis.json`" in done.stderr


def test_a_cure_keeps_what_helps_and_shows_the_trail(run):
    done = call("cure", run[0], "--quiet", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    first = found["cure"][0]
    assert (first["code"], first["kept"]) == ("CST102", True)
    assert first["after"] > first["before"]
    ours = found["contenders"][-1]["scores"]["accuracy"]
    assert ours > 0.7
    assert found["run"].endswith("slow-cured")
    report = (run[0].with_name("slow-cured") / "report.html").read_text()
    assert "Doctor: learning-rate-too-low" in report


def test_the_doctor_has_no_remedies_for_a_model_that_is_no_network_and_says_so(run, tmp_path):
    table, folder = run[0].parents[1] / "fruit.csv", tmp_path / "logistic"
    words = ["--model", "LogisticRegression", "--run", folder, "--quiet", "--boosting-rounds", "5"]
    done = call("fit", table, "-t", "kind", "--doctor", *words)
    assert done.exit_code == 0, done.output
    assert "LogisticRegression is not one network: no remedies were tried." in done.output
    assert "LogisticRegression was not watched" in call("diagnose", folder).output


def test_nothing_is_fitted_again_where_there_is_nothing_to_cure(run, monkeypatch):
    from types import SimpleNamespace

    from castalia.method import doctor_steps, flow

    monkeypatch.setattr(
        doctor_steps, "cure", lambda *_, **__: SimpleNamespace(steps=(), changes={})
    )
    monkeypatch.setattr(flow, "complete", None)  # a call would fail
    out = run[0].with_name("healthy")
    done = call("cure", run[0], "--out", out, "--quiet")
    assert done.exit_code == 0, done.output
    assert "Nothing to cure was found." in done.stdout
    assert f"{run[0]} stays as it is" in done.stdout
    assert "Scores on the" not in done.stdout
