"""Options on tables: what decides, how a file is read, what is kept and what is left out."""

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score
from tests.cli.test_cli import QUICK, call, sentence
from tests.method.small import write_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("options")


@pytest.fixture(scope="module")
def table(folder):
    """Write a table in Windows' encoding, with an identifier and two targets that are missing."""
    rows = write_table(folder / "plain.csv").read_text().splitlines()
    lines = [f"row_id,{rows[0]}", *(f"{i},{row}" for i, row in enumerate(rows[1:], start=100))]
    lines = [line.replace(",red,", ",größer,") for line in lines]
    for i in (4, 9):
        lines[i] = lines[i].rpartition(",")[0] + ","
    path = folder / "fruit.csv"
    path.write_bytes(("\n".join(lines) + "\n").encode("cp1252"))
    return path


@pytest.fixture(scope="module")
def fitted(folder, table):
    done = call(
        *("fit", table, "--target", "kind", "--metric", "average_precision", "--drop-missing"),
        *("--encoding", "cp1252", "--run", folder / "run", "--json", *QUICK),
    )
    assert done.exit_code == 0, done.output
    return done


def test_any_scorer_decides(fitted):
    summary = json.loads(fitted.stdout)
    assert summary["metric"] == "average_precision"
    guess = next(c for c in summary["contenders"] if "uess" in c["name"])
    assert 0 < guess["scores"]["average_precision"] < 1
    assert "average precision" in fitted.stderr
    assert all("average_precision" in c["scores"] for c in summary["contenders"])


def test_a_scorer_of_another_task_or_of_none_is_refused(table):
    said = sentence("fit", table, "--target", "kind", "--metric", "r2", "--drop-missing")
    assert "for a classification, or a scorer of scikit-learn; got 'r2'" in said
    said = sentence("fit", table, "--target", "kind", "--metric", "roc_acu")
    assert "Did you mean `roc_auc`?" in said


def test_rows_without_a_target_are_left_out_by_choice_and_counted(fitted, table):
    assert "2 rows of 80 have no `kind`: left out." in json.loads(fitted.stdout)["notes"]
    assert "--drop-missing" in sentence("fit", table, "--target", "kind")


def test_columns_are_kept_beside_predictions(fitted, folder, table):
    words = ("predict", folder / "run", table, "--encoding", "cp1252", "--json")
    found = json.loads(call(*words, "--keep", "row_id", "--keep", "site").stdout)["predictions"]
    assert [row["row_id"] for row in found[:3]] == [100, 101, 102]
    assert list(found[0])[:3] == ["row_id", "site", "prediction"]
    assert "Did you mean `row_id`" in sentence(*words[:-1], "--keep", "rowid")


def test_an_evaluation_leaves_rows_out_too(fitted, folder, table):
    words = ("evaluate", folder / "run", table, "--encoding", "cp1252")
    assert json.loads(call(*words, "--drop-missing", "--json").stdout)["rows"] == 78
    assert "--drop-missing" in sentence(*words)


def test_a_wrong_encoding_is_named(table):
    said = sentence("fit", table, "--target", "kind", "--encoding", "ascii")
    assert "must be ascii; got byte 0xf6" in said


def test_the_score_is_that_of_scikit_learn():
    from castalia.method.answer_scores import Answers, mean_scores, measure, stacked
    from castalia.method.task import Task

    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 50), rng.random(50)
    said = [Answers((p > 0.5).astype(int), np.column_stack([1 - p, p]))] * 2
    expected = average_precision_score(y, p)
    task = Task("classification", "", y, np.arange(2), scorer="average_precision")
    assert mean_scores(task, y, said)["average_precision"] == pytest.approx(expected)
    some = rng.permutation(50)[:30]
    found = measure("average_precision")(y[some], stacked(y, said)[some])
    assert found == pytest.approx(average_precision_score(y[some], p[some]))
