"""Data sets: the same table in memory and on disk."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from castalia.data import read
from castalia.errors import InvalidData


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "a": rng.normal(size=1000).round(3),
            "b": rng.choice(["x", "y", None], 1000),
            "y": rng.integers(0, 2, 1000),
        }
    )


@pytest.fixture(params=["memory", "csv", "parquet"])
def data(request, table, tmp_path):
    if request.param == "memory":
        return read(table, target="y")
    path = tmp_path / f"t.{request.param}"
    if request.param == "csv":
        pacsv.write_csv(table, path)
    else:
        pq.write_table(table, path, row_group_size=333)
    return read(path, target="y", stream=True)


@pytest.mark.parametrize("rows", [1, 7, 333, 1000, 5000])
def test_chunks_have_exactly_the_rows_asked_for(data, table, rows):
    chunks = list(data.chunks(rows))
    assert {len(chunk) for chunk in chunks[:-1]} <= {rows}
    assert pa.concat_tables(chunks).to_pylist() == table.to_pylist()


def test_columns_features_and_length_agree(data, table):
    assert len(data) == 1000
    assert data.features().columns == ["a", "b"]
    assert data.features().target is None
    np.testing.assert_array_equal(data.column("a"), table["a"].to_numpy())
    assert data.column("b").tolist() == table["b"].to_pylist()
    assert data.select(["b"]).columns == ["b"]


def test_the_schema_is_the_same_everywhere(data, table):
    assert data.schema == read(table).schema
    assert data.features().schema["a"] == data.schema["a"]


def test_labels_are_whole(data, table):
    np.testing.assert_array_equal(data.labels(), table["y"].to_numpy())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.0, np.nan, 2.0], r"1 of 3 value is missing \(NaN\), first in row 1"),
        ([1.0, np.inf, -np.inf], r"2 of 3 values are infinite \(inf\), first in row 1"),
        (["a", "b", None], r"1 of 3 value is missing \(NaN\), first in row 2"),
        ([None, True, False], r"missing \(NaN\), first in row 0"),
        (
            pd.to_datetime(["2020-01-01", None, None]),
            r"2 of 3 values are missing \(NaN\), first in row 1",
        ),
        ([None, None, None], r"3 of 3 values are missing"),
    ],
)
def test_bad_targets_are_counted_and_the_first_row_named(values, words):
    data = read(pd.DataFrame({"x": [1, 2, 3], "y": values}), target="y")
    with pytest.raises(InvalidData, match=words):
        data.labels()


def test_dates_and_words_may_be_targets():
    frame = pd.DataFrame(
        {"x": [1, 2], "d": pd.to_datetime(["2020-01-01", "2020-01-02"]), "w": ["a", "b"]}
    )
    assert read(frame, target="d").labels().dtype.kind == "M"
    assert read(frame, target="w").labels().tolist() == ["a", "b"]


def test_labels_need_a_target(table):
    with pytest.raises(InvalidData, match="must have a target"):
        read(table).labels()


def test_take_selects_rows_by_position_or_mask(table):
    data = read(table, target="y")
    assert data.take([2, 0]).table().to_pylist() == [table.to_pylist()[2], table.to_pylist()[0]]
    assert data.take([-1]).table().to_pylist() == table.to_pylist()[-1:]
    mask = np.arange(1000) < 5
    assert len(data.take(mask)) == 5
    assert data.take(mask).target == "y"


def test_take_is_refused_while_streaming(table, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(
        InvalidData, match="must be in memory; it is streamed. Read it with `stream=False`"
    ):
        read(tmp_path / "t.parquet", stream=True).take([0])


def test_the_fingerprint_follows_the_content_not_the_layout(table):
    data = read(table)
    halves = pa.concat_tables([table.slice(0, 500), table.slice(500)])
    assert data.fingerprint() == read(halves).fingerprint()
    assert data.fingerprint() != data.take(np.arange(1000)[::-1]).fingerprint()
    assert data.fingerprint() != read(table.rename_columns(["a", "c", "y"])).fingerprint()


def test_the_fingerprint_ignores_what_lies_under_a_gap():
    valid = pa.array([True, False]).buffers()[1]
    one, two = (
        pa.Array.from_buffers(pa.int64(), 2, [valid, pa.py_buffer(np.array([1, under]))])
        for under in (5, 6)
    )
    assert read(pa.table({"a": one})).fingerprint() == read(pa.table({"a": two})).fingerprint()


def test_the_fingerprint_of_a_file_follows_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    before = read(path, stream=True).fingerprint()
    path.write_text("a,b\n1,2\n3,4\n")
    assert read(path, stream=True).fingerprint() != before


def test_repr_names_source_size_and_target(data):
    assert "1,000 rows x 3 columns, target='y'" in repr(data)


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    data = read(path, stream=True)
    path.write_text("a,b\nx,2\n")
    with pytest.raises(InvalidData, match="must not change while it is read"):
        data.table()


def test_the_mark_of_a_streamed_folder_and_data_set_follows_their_files(tmp_path):
    for i in range(2):
        pq.write_table(pa.table({"a": [1.0, 2.0], "y": [i, 1]}), tmp_path / f"{i}.parquet")
    sources = [tmp_path, pads.dataset(tmp_path)]
    before = [read(source, stream=True).fingerprint() for source in sources]
    assert before == [read(source, stream=True).fingerprint() for source in sources]
    pq.write_table(pa.table({"a": [1.0, 3.0], "y": [1, 1]}), tmp_path / "1.parquet")
    after = [read(source, stream=True).fingerprint() for source in sources]
    assert all(one != other for one, other in zip(before, after, strict=True))
