"""Long tables: one step a row."""

import numpy as np
import pyarrow
import pytest

from castalia.data import read_sequences
from castalia.data.sequences import season_of
from castalia.data.sequences.long_frames import DIFFERENCE
from castalia.errors import InvalidData, InvalidParameter


def table(**columns):
    return pyarrow.table(columns)


def hours(*numbers):
    return (np.datetime64("2024-03-31T00") + np.array(numbers)).astype("datetime64[s]")


def test_groups_are_put_in_the_order_of_time_and_keep_their_target():
    data = table(
        id=["b", "a", "b", "a"], t=[2, 1, 1, 2], v=[4.0, 1.0, 3.0, 2.0], label=["n", "y", "n", "y"]
    )
    found = read_sequences(data, group="id", time="t", target="label")
    assert found.ids.tolist() == ["b", "a"]
    assert found.target.tolist() == ["n", "y"]
    assert [part.ravel().tolist() for part in found] == [[3.0, 4.0], [1.0, 2.0]]
    assert any("sorted" in note for note in found.notes)


def test_a_target_that_changes_inside_a_sequence_is_one_a_step():
    data = table(id=["a", "a", "b"], t=[1, 2, 1], v=[0.0, 1.0, 2.0], state=["on", "off", "on"])
    found = read_sequences(data, group="id", time="t", target="state")
    assert [part.tolist() for part in found.target] == [["on", "off"], ["on"]]


@pytest.mark.parametrize("library", ["pandas", "polars", "csv", "parquet"])
def test_every_kind_of_table_gives_the_same(library, tmp_path):
    data = table(id=["a", "a", "b"], when=hours(0, 1, 0), v=[0.5, 1.5, 2.5])
    given = data
    if library == "pandas":
        pytest.importorskip("pandas")
        given = data.to_pandas()
    elif library == "polars":
        given = pytest.importorskip("polars").from_arrow(data)
    elif library == "csv":
        from pyarrow import csv

        given = tmp_path / "log.csv"
        csv.write_csv(data, given)
    else:
        from pyarrow import parquet

        given = tmp_path / "log.parquet"
        parquet.write_table(data, given)
    found = read_sequences(given, group="id", time="when")
    assert [part.ravel().tolist() for part in found] == [[0.5, 1.5], [2.5]]
    assert found.times[0][1] - found.times[0][0] == np.timedelta64(1, "h")


def test_missing_steps_are_said():
    found = read_sequences(table(t=hours(0, 1, 2, 5, 6), v=[0.0] * 5), time="t")
    assert found.channels == ["v"]
    assert found.notes == ["2 steps of 7 are missing, in gaps of 2 at most, of 1 h each."]


def test_uneven_times_become_a_channel():
    times = hours(0, 1, 2, 3) + np.array([0, 500, 40, 900]).astype("timedelta64[s]")
    found = read_sequences(table(t=times, v=[0.0, 1.0, 2.0, 3.0]), time="t")
    assert found.channels == ["v", DIFFERENCE]
    assert found[0][:, 1].tolist() == [0.0, 4100.0, 3140.0, 4460.0]
    assert "uneven" in found.notes[0]


def test_mixed_frequencies_are_said():
    data = table(id=["a"] * 3 + ["b"] * 3, t=hours(0, 1, 2, 0, 6, 12), v=[0.0] * 6)
    notes = read_sequences(data, group="id", time="t").notes
    assert notes[0] == "Sequences have different steps: 1 h to 6 h between rows."


@pytest.mark.parametrize(
    "columns, how, words",
    [
        (
            {"t": [1, 1], "v": [0.0, 1.0]},
            {"time": "t"},
            "twice in 1 place, first 1",
        ),
        ({"t": ["noon", "one"], "v": [0.0, 1.0]}, {"time": "t"}, "dates or numbers; got 'noon'"),
        ({"t": [1.0, None], "v": [0.0, 1.0]}, {"time": "t"}, "first in row 1"),
        ({"g": ["a", None], "v": [0.0, 1.0]}, {"group": "g"}, "`g` must name .* first in row 1"),
    ],
)
def test_times_that_make_no_order_are_refused(columns, how, words):
    with pytest.raises(InvalidData, match=words):
        read_sequences(table(**columns), **how)


def test_a_column_that_is_not_there_is_refused_with_a_near_one():
    with pytest.raises(InvalidParameter, match="Did you mean `when`"):
        read_sequences(table(when=[1], v=[0.0]), time="wen")


def test_time_zones_are_one_clock():
    zoned = pyarrow.array([0, 3600, 7200], pyarrow.timestamp("s", tz="Europe/Rome"))
    found = read_sequences(table(t=zoned, v=[0.0, 1.0, 2.0]), time="t")
    assert np.diff(found.times[0]).astype("timedelta64[s]").astype(int).tolist() == [3600, 3600]
    assert found.notes == ["Times of `t` with an offset are taken in UTC."]


def test_texts_with_offsets_are_one_clock_and_said_to_be():
    texts = ["2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00", "2024-03-31T02:30:00Z"]
    found = read_sequences(table(t=texts, v=[0.0, 1.0, 2.0]), time="t")
    assert np.diff(found.times[0]).astype("timedelta64[s]").astype(int).tolist() == [3600, 3600]
    assert found.notes == ["Times of `t` with an offset are taken in UTC."]


@pytest.mark.parametrize("unit, season", [("h", 24), ("D", 7), ("M", 12), ("m", 60), ("Y", 1)])
def test_the_usual_season_of_a_step(unit, season):
    times = np.arange(40).astype(f"datetime64[{unit}]").astype("datetime64[s]")
    assert season_of(times) == season
