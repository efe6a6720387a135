import csv
import io

import numpy as np

from castalia.method.predictions import Predictions

CELLS = ["=cmd|' /C calc'!A0", "+x", "-1.5", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "plain", "", "a=1"]
FOUND = Predictions(
    {
        "=name": np.array(CELLS, dtype=object),
        "probability": np.linspace(-1, 1, len(CELLS)),
        "count": np.arange(-5, 5),
    }
)


def cells(raw):
    return list(csv.reader(io.StringIO(raw.decode(), newline="")))


def test_text_that_spreadsheets_would_run_is_kept_from_it():
    names, *rows = cells(FOUND.to_bytes(".csv"))
    assert names == ["'=name", "probability", "count"]
    risky = ("=", "+", "@", "\t", "\r")
    assert not any(row[0].startswith(risky) for row in rows)
    assert [row[0] for row in rows] == [
        *("'" + cell for cell in CELLS[:2]), "-1.5", *("'" + cell for cell in CELLS[3:7]),
        *("plain", "", "a=1"),
    ]  # fmt: skip


def test_numbers_stay_numbers():
    _, *rows = cells(FOUND.to_bytes(".csv"))
    np.testing.assert_array_equal([float(row[1]) for row in rows], np.linspace(-1, 1, len(CELLS)))
    assert [row[2] for row in rows] == [str(i) for i in range(-5, 5)]


def test_formulas_are_left_alone_where_asked_and_in_other_formats(tmp_path):
    path = FOUND.write(tmp_path / "out.csv", formulas=True)
    assert [row[0] for row in cells(path.read_bytes())] == ["=name", *CELLS]
    assert b'"=name": "+x"' in FOUND.to_bytes(".jsonl")
