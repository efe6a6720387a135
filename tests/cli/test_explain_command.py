"""``castalia explain``: rows of a table, and pages about findings."""

import json
import tomllib
from pathlib import Path

import pytest
from tests.cli.test_cli import QUICK, call, sentence
from tests.method.small import write_table

from castalia.diagnose import finding_pages
from castalia.diagnose.finding_codes import NAMES
from castalia.method import FitResult

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained")
    table = write_table(folder / "fruit.csv")
    done = call("fit", table, "--target", "kind", "--run", folder / "run", *QUICK)
    assert done.exit_code == 0, done.output
    return folder / "run", table


def test_the_report_of_the_fit_ranks_the_columns_under_their_names(run):
    found = FitResult.load(run[0]).report.importance
    assert set(found["columns"]) == {
        *("length", "width", "colour", "site", "when", "when (weekday)", "price")
    }
    assert found["metric"] == "accuracy"


def test_the_report_explains_the_model_that_it_recommends(run, tmp_path):
    result = FitResult.load(run[0])
    name = result.summary["models"][result.summary["recommended"]]
    assert result.summary["recommended"] != "model"
    assert result.report.explained == name
    assert f"What {name} uses" in result.page.read_text()


def test_an_evaluation_shows_the_columns_that_the_model_uses(run):
    done = call("evaluate", *run, "--explain")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    head = lines.index("Columns by what Accuracy loses when they are shuffled")
    first = lines[head + 2].split()[0]
    found = json.loads(call("evaluate", *run, "--explain", "--json").stdout)["importance"]
    assert found["columns"][0] == first in ("length", "colour", "price")
    assert found["values"] == sorted(found["values"], reverse=True)
    assert json.loads(call("evaluate", *run, "--json").stdout)["importance"] == {}


def test_each_row_lists_the_user_s_columns_by_their_effect(run):
    done = call("explain", *run, "--first", 2, "--most", 1)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert "fruit.csv, by Shapley" in lines[0]
    assert lines[1].startswith("row 0: kind ")
    assert "others" in done.stdout
    assert sum(line.startswith("row ") for line in lines) == 2


@pytest.mark.parametrize("method", ["shapley", "gradients"])
def test_the_effects_of_a_row_add_up(run, method):
    done = call("explain", run[0] / "model", run[1], "--method", method, "--first", 3, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert len(found["rows"]) == 3
    for row in found["rows"]:
        total = sum(column["effect"] for column in row["columns"])
        assert total == pytest.approx(row["output"] - row["background"], abs=2e-3)


def test_a_figure_is_written_where_it_is_asked_for(run, tmp_path):
    path = tmp_path / "why.svg"
    done = call("explain", *run, "--first", 2, "--plot", path)
    assert done.exit_code == 0, done.output
    assert "row 1:" in path.read_text()
    assert "must end in .png, .svg or .pdf" in call("explain", *run, "--plot", "why.txt").stderr


def test_without_the_training_table_rows_are_compared_with_themselves_or_another(run, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(run[1].read_text())
    moved = tmp_path / "run"
    moved.mkdir()
    for part in (run[0] / "model").iterdir():
        (moved / part.name).write_bytes(part.read_bytes())
    assert "the rows themselves" in call("explain", moved, other, "--first", 1).stdout
    asked = call("explain", moved, run[1], "--background", other, "--first", 1)
    assert "other.csv" in asked.stdout


def test_the_page_of_a_finding_is_printed():
    done = call("explain", "cst103")
    assert done.exit_code == 0
    assert done.stdout == (ROOT / "docs/findings/CST103.md").read_text()
    assert json.loads(call("explain", "CST103", "--json").stdout)["code"] == "CST103"


def test_every_finding_has_a_page_and_the_wheel_carries_them_where_they_are_sought():
    assert set(finding_pages.known_pages()) == set(NAMES)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    carried = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert ROOT / "src" / carried["docs/findings"] == finding_pages.BESIDE


def test_a_built_package_reads_the_pages_beside_its_code(tmp_path, monkeypatch):
    (tmp_path / "CST101.md").write_text("# from the wheel\n")
    monkeypatch.setattr(finding_pages, "BESIDE", tmp_path)
    assert finding_pages.finding_page("CST101") == "# from the wheel\n"
    monkeypatch.setattr(finding_pages, "BESIDE", tmp_path / "gone")
    assert finding_pages.finding_page("CST101").startswith("# CST101")


def test_errors_are_one_sentence(run):
    assert "Did you mean" in sentence("explain", "CST1033")
    assert "as in castalia explain" in sentence("explain", run[0])
    assert "`method` must be" in sentence("explain", *run, "--method", "guess")
    assert "`output` must be" in sentence("explain", *run, "--output", "pear tree")
