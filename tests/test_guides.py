"""The Python and the commands of the guides run as they stand, on small data."""

import re
import shlex
from pathlib import Path

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
