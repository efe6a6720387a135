"""The next rows to label, as a table."""

import csv

import numpy as np
import pandas as pd
import pytest
from tests.cli.test_cli import call, sentence

import castalia
import castalia.method
from castalia import MLPClassifier, Training
from castalia.testing.toys import moons


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Save a classifier of two columns, and a pool with an identifier."""
    folder = tmp_path_factory.mktemp("ask")
    X, y = moons(120)
    table = castalia.read(
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.array(["no", "yes"])[y]})
    )
    model = MLPClassifier(hidden=(8,), epochs=15, lr=0.03, training=Training(validation=0))
    castalia.save(model.fit(table.with_target("y")), folder / "model")
    lines = [f"r{i},{a},{b}" for i, (a, b) in enumerate(moons(40, seed=3)[0])]
    (folder / "pool.csv").write_text("\n".join(["id,a,b", *lines]) + "\n")
    return folder


def test_the_rows_that_are_nearest_to_a_draw_are_written_first(files):
    said = call("ask", files / "model", files / "pool.csv", "--n", "5", "--out", files / "next.csv")
    assert "5 rows to label" in said.stdout
    rows = list(csv.DictReader((files / "next.csv").read_text().splitlines()))
    gaps = [abs(float(r["probability_no"]) - float(r["probability_yes"])) for r in rows]
    assert gaps == sorted(gaps)
    assert [f"r{int(r['row']) - 1}" for r in rows] == [r["id"] for r in rows]
    everything = castalia.method.ask(files / "model", files / "pool.csv", n=40)
    chances = everything.columns["probability_no"]
    assert np.abs(2 * chances - 1).min() == pytest.approx(gaps[0], abs=1e-6)


def test_more_rows_than_there_are_and_an_unknown_query_are_refused(files):
    pool = files / "pool.csv"
    assert "from 1 to the 40 rows of the table; got 41" in sentence(
        "ask", files / "model", pool, "--n", "41"
    )
    assert "`query` must be" in sentence("ask", files / "model", pool, "--query", "bold")
