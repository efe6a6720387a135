"""The Python and the commands of the guides run as they stand, on small data."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from tests.method.small import write_images
from tests.method.text_samples import write_book
from typer.testing import CliRunner

from castalia.cli import app

DOCS = Path(__file__).parents[1] / "docs"
QUICK = ["--set", "epochs=2", "--seeds", "1", "--boosting-rounds", "2", "--preflight-seconds", "0"]


@pytest.fixture
def pets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write_images(tmp_path / "pets", each=12)
    (folder / "rows").rename(folder / "cat")
    (folder / "columns").rename(folder / "dog")
    return tmp_path


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), flags=re.S)


def test_the_python_of_the_page_on_images_runs(pets):
    names = {}
    for block in blocks("images.md", "python"):
        exec(compile(block, "images.md", "exec"), names)
    assert names["result"].page.is_file()
    assert names["model"].predict_proba(names["test"].features()).shape == (8, 2)


def test_the_commands_of_the_page_on_images_run(pets):
    lines = "".join(blocks("images.md", "sh")).splitlines()
    assert len(lines) == 6
    for line in lines:
        words = shlex.split(line)[1:] + (QUICK if line.startswith("castalia fit") else [])
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    assert (pets / "labels.csv").read_text().startswith("path,label,probability\n")
    assert (pets / "castalia-runs" / "pets-resnet" / "report.html").is_file()


def test_the_python_of_the_tutorial_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("tutorial.md", "python"):
        short = re.sub(r"epochs=\d+", "epochs=2", block).replace("cv=3", "cv=2")
        exec(compile(short, "tutorial.md", "exec"), names)
    assert [finding.code for finding in names["found"].findings][:1] == ["CST301"]


@pytest.fixture
def customers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["id,age,income,plan,city,churned"]
    for i in range(60):
        age, plan = rng.integers(18, 80), rng.choice(["basic", "plus"])
        city = rng.choice(["Zürich", "Genève", "Bern"])
        churned = "" if i in (5, 17) else "yes" if age + 20 * (plan == "plus") > 60 else "no"
        lines.append(f'{i + 1},{age},"${rng.integers(20, 90):,},200",{plan},{city},{churned}')
    (tmp_path / "customers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    new = "\n".join(lines[:11]).replace(",churned", "")
    new = re.sub(r",(yes|no|)$", "", new, flags=re.M)
    (tmp_path / "new.csv").write_text(new + "\n", encoding="utf-8")
    return tmp_path


def test_the_commands_of_the_page_on_tables_run(customers):
    lines = "".join(blocks("tables.md", "sh")).splitlines()
    assert len(lines) == 9
    said = {}
    for line in lines:
        fits = line.startswith("castalia fit")
        words = shlex.split(line)[1:] + ([*QUICK, "--set", "hidden=8"] if fits else [])
        drops = ["--drop-missing"] if "customers.csv" in line and "--drop" not in line else []
        done = CliRunner().invoke(app, [*words, *drops])
        assert done.exit_code == 0, done.output
        said[words[0], "--metric" in words] = done.output
    head, first = (customers / "answers.csv").read_text().splitlines()[:2]
    assert head == "id,prediction,probability_no,probability_yes"
    assert first.startswith("1,")
    assert "2 rows of 60 have no `churned`: left out." in said["fit", False]
    assert "ROC AUC" in said["fit", True]
    assert "roc auc" in said["runs", False] or "accuracy" in said["runs", False]
    assert "MLPRegressor" in said["models", False]


def test_the_python_of_the_page_on_tables_runs(customers, capsys):
    names = {}
    for block in blocks("tables.md", "python"):
        exec(compile(block, "tables.md", "exec"), names)
    assert names["missing"] == 2
    assert len(names["net"].history_) == 11
    request = {"id": 7, "age": 40, "income": 5e4, "plan": "plus"}
    (answer,) = names["answer"]([{**request, "city": "Bern"}])
    assert sum(answer.values()) == pytest.approx(1.0, abs=1e-5)
    assert set(answer) == {"no", "yes"}


def test_the_python_of_the_page_on_text_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_book(tmp_path / "book.txt")
    names = {}
    for block in blocks("text.md", "python"):
        exec(compile(block, "text.md", "exec"), names)
    assert names["result"].report.metric == "bits_per_character"


def test_the_python_of_the_page_on_explanations_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("explain.md", "python"):
        exec(compile(block, "explain.md", "exec"), names)
    assert (tmp_path / "importance.png").is_file()
    assert names["why"].gap < 1e-6


def test_the_python_of_the_page_on_learning_paradigms_runs():
    names = {}
    for block in blocks("paradigms.md", "python"):
        exec(compile(block, "paradigms.md", "exec"), names)
    assert names["asking"].labels_ == 15
    assert names["steady"].table_.shape == (2, 2)
    assert names["world"].final[8]
    assert names["learnt"].predict(names["x"][:3]).shape == (3,)


def test_the_python_of_the_page_on_probabilistic_models_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("probabilistic.md", "python"):
        exec(compile(block, "probabilistic.md", "exec"), names)
    assert names["posterior"]["rain"]["yes"] == pytest.approx(0.6923, abs=1e-4)
    assert {frozenset(edge) for edge in names["learnt"].edges_} == {
        frozenset(("rain", "wet")),
        frozenset(("rain", "litres")),
    }
    assert (names["restored"].image != names["image"]).mean() < 0.02


@pytest.fixture
def sensors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, hours = np.random.default_rng(0), np.arange("2016-07-01", "2016-07-15", dtype="M8[h]")
    lines = [f"{h}:00:00,{np.sin(i / 4):.3f},{rng.normal():.3f}" for i, h in enumerate(hours)]
    (tmp_path / "station.csv").write_text("\n".join(["date,OT,HUFL", *lines]))
    rows = [
        f"m{i},{t},{(1 + i % 2) * np.sin(t) + 0.1 * rng.normal():.3f},{['run', 'fail'][i % 2]}"
        for i in range(24)
        for t in range(rng.integers(5, 9))
    ]
    (tmp_path / "logs.csv").write_text("\n".join(["machine,t,v,label", *rows]))
    return tmp_path


def test_the_python_and_the_commands_of_the_page_on_sequences_run(sensors):
    names = {}
    for block in blocks("sequences.md", "python"):
        exec(compile(block, "sequences.md", "exec"), names)
    assert names["ahead"].shape == names["low"].shape == (24, 1)
    lines = "".join(blocks("sequences.md", "sh")).splitlines()
    assert len(lines) == 4
    for line in lines:
        words = shlex.split(line)[1:] + (QUICK if line.startswith("castalia fit") else [])
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    assert (sensors / "ahead.csv").read_text().startswith("time,step,prediction")


def test_the_python_of_the_page_on_graphs_runs(capsys):
    names = {}
    for block in blocks("graphs-networks.md", "python"):
        exec(compile(block, "graphs-networks.md", "exec"), names)
    assert names["model"].score(names["graph"][80:], names["y"][80:]) > 0.9
    assert len(capsys.readouterr().out.splitlines()) > 3


def test_the_python_of_the_page_on_generative_models_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("generative.md", "python"):
        exec(compile(block, "generative.md", "exec"), names)
    assert names["model"].detect([[0.0, 9.0, 0.0]]).tolist() == [True]
    shown = {"samples.png", "back.png", "between.png", "codes.png", "field.png"}
    assert {path.name for path in tmp_path.iterdir()} == shown
