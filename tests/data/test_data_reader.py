"""Reading tables: formats that agree, and one clear sentence for everything that is wrong."""

import contextlib
import gzip
import json
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from castalia.data import Dataset, read
from castalia.data.tables import csv_source
from castalia.errors import DataWarning, InvalidData, InvalidParameter

ROWS = {
    "age": [22.0, None, 35.5, 41.0],
    "city": ["Rome", "Oslo", None, "Rome"],
    "n": [1, 2, 3, 4],
    "ok": [True, False, None, True],
}


@pytest.fixture
def write(tmp_path):
    def go(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return go


def fails(source, match, **options):
    with pytest.raises(InvalidData, match=match) as caught:
        read(source, **options)
    assert "\n" not in str(caught.value)


def test_every_format_gives_the_same_table(tmp_path):
    table = pa.table(ROWS)
    pacsv.write_csv(table, tmp_path / "a.csv")
    (tmp_path / "a.tsv").write_text((tmp_path / "a.csv").read_text().replace(",", "\t"))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    (tmp_path / "a.txt").write_text((tmp_path / "a.csv").read_text().replace(",", "|"))
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in table.to_pylist()))
    for path in sorted(tmp_path.iterdir()):
        assert read(path).table().to_pylist() == table.to_pylist(), path
        assert read(path, stream=True).table().to_pylist() == table.to_pylist(), path


@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
def test_frames_of_three_libraries_give_the_same_table(library):
    module = pytest.importorskip(library)
    frame = getattr(module, "table" if library == "pyarrow" else "DataFrame")(ROWS)
    assert read(frame).table().to_pylist() == pa.table(ROWS).to_pylist()


def test_numpy_columns_are_called_x0_x1_and_keep_their_numbers():
    data = read(np.array([[1.5, np.nan], [2.0, 3.0]]))
    assert data.columns == ["x0", "x1"]
    np.testing.assert_array_equal(data.column("x1"), [np.nan, 3.0])


def test_strings_in_an_array_get_the_types_they_would_have_in_a_file():
    data = read(np.array([["1", "red"], ["2", "blue"], ["?", "red"]]))
    assert data.table().to_pydict() == {"x0": [1, 2, None], "x1": ["red", "blue", "red"]}


def test_numbers_in_an_object_array_are_numeric():
    assert read(np.array([[1, 2.5], [None, 3]], object)).schema.names("numeric") == ["x0", "x1"]


def test_pandas_types_survive():
    frame = pd.DataFrame(
        {
            "nullable": pd.array([1, None, 3], "Int64"),
            "flag": pd.array([True, None, False], "boolean"),
            "grade": pd.Categorical([1, 2, 1]),
            "day": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
            "mixed": [1, "two", 3.0],
            "whole": pd.Series([1, 2.5, None], dtype=object),
        }
    )
    schema = read(frame).schema
    kinds = {c.name: c.kind for c in schema}
    assert kinds["nullable"] == "numeric"
    assert kinds["flag"] == "boolean"
    assert kinds["grade"] == "categorical"
    assert schema["grade"].categories == ("1", "2")
    assert kinds["day"] == "date"
    assert kinds["whole"] == "numeric"
    assert schema["mixed"].note.endswith("1 of 3 values is not a number, first at row 1: 'two'")


def test_nested_and_binary_columns_are_reported_as_text():
    table = pa.table({"a": [[1, 2], [3], None], "b": [b"x", b"\xff", None], "c": [{"k": 1}] * 3})
    read_back = read(table).table().to_pydict()
    assert read_back["a"] == ["[1, 2]", "[3]", None]
    assert read_back["b"] == ["x", "\\xff", None]
    assert read_back["c"][0] == '{"k": 1}'


def test_the_usual_markers_are_missing_values(write):
    data = read(write("a,b\n1,x\nNA,?\nN/A,None\nnan,null\nNaN,\n2,y\n"))
    assert data.table().to_pydict() == {"a": [1, *[None] * 4, 2], "b": ["x", *[None] * 4, "y"]}


def test_a_type_is_decided_by_the_whole_column_not_by_its_first_lines(write, monkeypatch):
    monkeypatch.setattr(csv_source, "_BLOCK", 1 << 14)  # bytes: the file has some blocks
    path = write("a,b\n" + "1,2\n" * 20_000 + "1.5,x\n")
    for stream in (False, True):
        data = read(path, stream=stream)
        assert [str(f.type) for f in data.arrow_schema] == ["double", "string"]
    assert data.schema["b"].note == "1 of 20,001 values is not a number, first at line 20002: 'x'"


def test_dates_with_and_without_zone_become_timestamps(write):
    data = read(
        write("a,b\n2020-01-01,2020-01-01T12:00:00Z\n2020-01-02 10:00,2020-01-02T12:00:00+02:00\n")
    )
    assert data.schema.names("date") == ["a", "b"]
    assert data.column("b")[1] == np.datetime64("2020-01-02T10:00:00")


def test_quoted_newlines_stay_in_their_field(write):
    data = read(write('a,b\n"one\ntwo",2\n"x, y",3\n'))
    assert data.column("a").tolist() == ["one\ntwo", "x, y"]


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_another_delimiter_in_the_header_is_understood(write, delimiter):
    assert read(write(f"a{delimiter}b\n1{delimiter}2\n")).columns == ["a", "b"]


@pytest.mark.parametrize("start", ["\ufeff", "\n\n", "\r\n"])
def test_marks_and_blank_lines_before_the_header_are_skipped(write, start):
    assert read(write(start + "a,b\r\n1,2\r\n")).table().to_pylist() == [{"a": 1, "b": 2}]


def test_lines_may_end_with_a_carriage_return_alone(write):
    assert len(read(write("a,b\r1,2\r3,4"))) == 2


def test_a_column_without_a_name_gets_one(write):
    assert read(write(",b\n1,2\n")).columns == ["unnamed_1", "b"]


# -- what is wrong is said in one sentence -------------------------------------------------------


def test_a_missing_file_is_named_and_a_near_one_suggested(write):
    path = write("a,b\n1,2\n", "titanic.csv")
    fails(
        path.with_name("titanik.csv"),
        r"titanik.csv` must be a file; there is none. Did you mean `titanic.csv`\?",
    )


def test_a_folder_without_images_is_nothing(tmp_path):
    fails(tmp_path, "must hold images; got no file")


def test_a_wrong_suffix_lists_the_right_ones(write):
    fails(write("a", "a.docx"), r"must end in `.csv`, `.tsv`.*got `.docx`")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_file_is_called_empty(write, name, content):
    fails(write(content, name), "the file is empty|whole Parquet file")


@pytest.mark.parametrize("content", ["a,b", "a,b\n", "a,b\r\n\r\n", '"a\nc",b\n'])
def test_a_header_alone_is_not_enough(write, content):
    fails(write(content), "must hold at least one row; it has a header and nothing below it")


def test_frames_without_rows_are_refused():
    fails(pd.DataFrame({"a": pd.Series([], dtype=float)}), "must have rows")
    fails(pd.DataFrame(), "must have columns")
    fails(np.empty((3, 0)), r"0 feature\(s\)")


def test_one_column_leaves_nothing_to_learn_from(write):
    path = write("a\n1\n2\n")
    assert len(read(path)) == 2
    fails(path, "must have a column beside the target `a`", target="a")


def test_a_target_that_is_not_there_is_answered_with_the_columns(write):
    path = write("Age,Survived\n1,2\n")
    fails(
        path,
        r"target `survivd` must be .*`Age` and `Survived`\. Did you mean `Survived`\?",
        target="survivd",
    )


def test_repeated_column_names_are_named(write):
    fails(write("a,b,a\n1,2,3\n"), "distinct column names; got `a` more than once")
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    fails(frame, "distinct column names; got `a` more than once")


def test_ragged_lines_are_counted_and_the_first_is_named(write):
    path = write('a,b\n\n"x\ny",2\n3\n4,5,6\n7,8\n')
    fails(path, r"a\.csv` line 5 must have 2 fields like the header; got 1 \('3'\); 2 lines")


def test_an_open_quotation_mark_is_found(write):
    fails(write('a,b\n1,2\n1,"2\n3,4\n5,6\n'), "line 3 opens a quotation mark that is never closed")


def test_undecodable_bytes_are_named_with_their_line(write):
    with pytest.warns(DataWarning, match="must be UTF-8; got byte 0xe9 at offset 8 .line 3"):
        read(write(b"a,b\n1,2\n\xe9,3\n"))


def test_a_first_line_of_numbers_is_warned_about(write):
    with pytest.warns(DataWarning, match="holds numbers only"):
        read(write("1,2\n3,4\n"))


def test_bad_json_lines_are_named(write):
    fails(
        write('{"a": 1}\n\n{a}\n', "a.jsonl"), r"a\.jsonl` line 3 must be a JSON object; Expecting"
    )
    fails(write('{"a": 1}\n[2]\n', "a.jsonl"), r"line 2 must be a JSON object such as .*got \[2\]")
    fails(write("{}\n{}\n", "a.jsonl"), "at least one key")


def test_json_keys_may_be_absent_nested_or_mixed(write):
    lines = '{"a": 1, "b": "NA"}\n{"a": 2.5, "c": [1]}\n{"a": "x", "b": true}\n'
    data = read(write(lines, "a.jsonl"))
    assert data.table().to_pydict() == {
        "a": ["1", "2.5", "x"],
        "b": [None, None, True],
        "c": [None, "[1]", None],
    }
    assert "1 of 3 values is not a number, first at row 2: 'x'" in data.schema["a"].note


def test_json_numbers_too_long_for_a_float_are_rounded(write):
    data = read(write('{"a": 9007199254740993}\n{"a": 0.5, "b": []}\n', "a.jsonl"))
    assert data.column("a").tolist() == [9007199254740992.0, 0.5]


def test_damaged_files_are_called_damaged(write, tmp_path):
    pq.write_table(pa.table(ROWS), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    fails(write(whole[: len(whole) // 2], "b.parquet"), "must be a whole Parquet file")
    fails(write(gzip.compress(b"a,b\n" * 99)[:-9], "a.csv.gz"), "must be a whole gzip file")
    fails(write(b"a,b\n1,2\n", "b.csv.gz"), "must be a whole gzip file")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (np.zeros(3), "2-dimensional.*Reshape your data"),
        (np.zeros((2, 2), complex), "Complex data not supported"),
        (np.zeros((2, 2), [("a", int)]), "numbers or strings; got dtype"),
        ([[1, 2], [3]], "same number of columns"),
        (object(), "must be a path.*got object"),
        (7, "must be a path.*got int"),
    ],
)
def test_other_things_are_refused_by_name(source, words):
    fails(source, words)


def test_sparse_matrices_are_refused_with_the_remedy():
    sparse = pytest.importorskip("scipy.sparse")
    fails(sparse.eye(3).tocsr(), r"sparse matrix. Convert it with `.toarray\(\)`")


def test_an_object_that_is_no_value_is_a_type_error_too():
    with pytest.raises(TypeError, match="argument must be .* string.* number"):
        read(np.array([[{"a": 1}], [2]], object))


def test_stream_takes_three_values():
    with pytest.raises(InvalidParameter, match="`stream` must be True, False or 'auto'; got 'yes'"):
        read(np.eye(2), stream="yes")


def test_a_data_set_is_returned_as_it_is_or_with_another_target():
    data = read(np.eye(3))
    assert read(data) is data
    assert read(data, target="x1").target == "x1"


def test_large_files_stream_by_themselves(write, monkeypatch):
    monkeypatch.setattr(sys.modules["castalia.data.tables.table_reader"], "STREAM_ABOVE", 5)
    path = write("a,b\n1,2\n")
    assert read(path).streaming
    assert not read(path, stream=False).streaming


# -- fuzzing ------------------------------------------------------------------------------------

quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
cells = st.text(st.sampled_from('ab1,.;"\n\r\t -+e\x00é?{}[]:'), max_size=6)


def survives(path):
    """Only InvalidData may escape, and what was read can be used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for stream in (False, True):
            try:
                data = read(path, stream=stream)
            except InvalidData:
                continue
            assert isinstance(data, Dataset)
            assert len(data) == data.table().num_rows == data.schema.rows
            assert data.summary()


@quick
@given(
    content=st.binary(max_size=200),
    suffix=st.sampled_from([".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"]),
)
def test_random_bytes_raise_nothing_but_invalid_data(tmp_path, content, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    survives(path)


@quick
@given(
    rows=st.lists(st.lists(cells, min_size=1, max_size=4), max_size=6),
    suffix=st.sampled_from([".csv", ".jsonl"]),
)
def test_text_like_tables_raise_nothing_but_invalid_data(tmp_path, rows, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes("\n".join(",".join(row) for row in rows).encode())
    survives(path)


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
values = (
    values
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.text(max_size=2), st.none(), max_size=1)
)


@quick
@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from(["a", "b", "é", ""]), values), min_size=1, max_size=6
    )
)
def test_json_lines_of_anything_raise_nothing_but_invalid_data(tmp_path, rows):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    survives(path)


@quick
@given(rows=st.lists(st.tuples(values, values), min_size=1, max_size=6))
def test_arrays_of_anything_raise_nothing_but_invalid_data(rows):
    array = np.empty((len(rows), 2), object)
    array[:] = rows
    with contextlib.suppress(InvalidData):
        assert len(read(array).schema.summary().splitlines()) == 3


def test_pandas_columns_may_be_named_by_numbers():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=[0, 1])
    assert read(frame).column("1").tolist() == [2.0, 4.0]
