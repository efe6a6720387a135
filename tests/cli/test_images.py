"""The command line on folders of images."""

import csv
import json

import pytest
from tests.cli.test_cli import call, sentence
from tests.method.small import write_images

QUICK = ["--set", "epochs=2", "--set", "widths=4", "--set", "convs=1", "--seeds", "1"]
QUICK += ["--boosting-rounds", "2", "--preflight-seconds", "0", "--quiet"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    found = tmp_path_factory.mktemp("images")
    write_images(found / "stripes")
    (found / "stripes" / "rows" / "broken.png").write_bytes(b"nothing")
    return found


@pytest.fixture(scope="module")
def fitted(place):
    done = call("fit", place / "stripes", "--run", place / "runs" / "stripes", *QUICK)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_one_command_fits_a_folder_and_says_what_it_found(fitted):
    assert "24 images, 12 x 12 pixels, in colour" in fitted
    assert "Target: class (classification, 2 classes)" in fitted
    assert "20 % of the images tested (4)" in fitted
    assert "rows/broken.png" in fitted
    assert "Scores on the 4 test images" in fitted
    assert "Report: " in fitted


def test_predict_writes_path_label_and_probability(fitted, place):
    images = place / "stripes"
    one = images / "columns" / "3.png"
    done = call("predict", place / "runs" / "stripes", images / "rows", one)
    lines = list(csv.DictReader(done.stdout.splitlines()))
    assert len(lines) == 13
    assert lines[-1]["path"] == str(one)
    assert lines[-1]["label"] in ("rows", "columns")
    assert 0.5 <= float(lines[-1]["probability"]) <= 1
    assert "broken.png" in done.stderr


def test_evaluate_scores_a_folder(fitted, place):
    done = call("evaluate", place / "runs" / "stripes", place / "stripes", "--json")
    found = json.loads(done.stdout)
    assert (found["rows"], found["unit"]) == (24, "image")


@pytest.mark.parametrize("verb", ["report", "diagnose"])
def test_a_finished_run_is_reported_again(fitted, place, verb):
    done = call(verb, place / "runs" / "stripes")
    assert done.exit_code == 0, done.output


def test_bad_input_gets_one_sentence(fitted, place):
    run = place / "runs" / "stripes"
    done = call("fit", place / "stripes" / "rows")
    assert done.exit_code == 2
    assert done.stdout == "Reading rows …\n"
    (line,) = done.stderr.splitlines()
    assert "must hold a folder for each class" in line
    assert "must be an image or a folder" in sentence("predict", run, place / "gone")
    assert "cannot be decoded" in sentence(
        "predict", run, place / "stripes" / "rows" / "broken.png"
    )


def test_several_tables_are_refused(tmp_path):
    from tests.method.small import write_table

    table, run = write_table(tmp_path / "a.csv"), tmp_path / "run"
    words = ("--set", "epochs=1", "--set", "hidden=4", "--seeds", "1", "--preflight-seconds", "0")
    call("fit", table, "-t", "kind", "--run", run, "--boosting-rounds", "2", "-q", *words)
    assert "takes one table; got 2" in sentence("predict", run, table, table)


def test_a_table_without_a_target_gets_one_sentence(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    assert "`target` must name the column" in sentence("fit", tmp_path / "a.csv")
