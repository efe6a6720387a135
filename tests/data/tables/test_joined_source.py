"""Several files of one table: folders, patterns and lists; data sets of pyarrow and lazy frames."""

import warnings

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.dataset as pads
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from castalia.data import read
from castalia.data.images import Images
from castalia.errors import DataWarning, InvalidData, InvalidParameter

TABLE = pa.table({"x": [1.5, None, 3.0, 4.0], "c": ["a", "b", None, "a"], "n": [1, 2, 3, 4]})
WRITERS = {
    "parquet": pq.write_table,
    "csv": pacsv.write_csv,
    "arrow": lambda table, path: feather.write_feather(table, str(path), compression="lz4"),
    "jsonl": lambda table, path: pl.from_arrow(table).write_ndjson(path),
}


def parts(folder, ending, *tables):
    folder.mkdir(exist_ok=True)
    found = tables or (TABLE.slice(0, 1), TABLE.slice(1, 2), TABLE.slice(3))
    for number, table in enumerate(found):
        WRITERS[ending](table, folder / f"part-{number}.{ending}")
    return folder


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("ending", WRITERS)
def test_a_folder_a_pattern_and_a_list_give_the_whole_table(tmp_path, ending, stream):
    folder = parts(tmp_path / "parts", ending)
    (folder / "_SUCCESS").touch()
    sources = (folder, f"{folder}/*.{ending}", sorted(folder.glob("part-*")))
    for source in sources:
        data = read(source, target="c", stream=stream)
        assert data.streaming == stream
        assert data.table().to_pylist() == TABLE.to_pylist()
        assert data.select(["n", "x"]).table().to_pylist() == TABLE.select(["n", "x"]).to_pylist()


def test_columns_are_found_by_name_and_take_the_wider_type(tmp_path):
    folder = parts(tmp_path, "csv", pa.table({"a": [1, 2], "b": ["x", "y"]}))
    (folder / "part-1.csv").write_text("b,a\nz,0.5\n,\n")
    assert read(folder).table().to_pylist() == [
        {"a": 1.0, "b": "x"},
        {"a": 2.0, "b": "y"},
        {"a": 0.5, "b": "z"},
        {"a": None, "b": None},
    ]


def test_folders_may_give_columns(tmp_path):
    for year in (2020, 2021):
        parts(tmp_path / f"year={year}", "parquet", pa.table({"x": [year / 2]}))
    data = read(tmp_path, stream=True)
    assert data.table().to_pylist() == [{"x": 1010.0, "year": 2020}, {"x": 1010.5, "year": 2021}]
    assert data.select(["year"]).table().to_pylist() == [{"year": 2020}, {"year": 2021}]


@pytest.mark.parametrize(
    "second, message",
    [
        ({"x": ["one"], "n": [1]}, r"column `x` of `.*part-1.parquet` must be double as in `.*-0"),
        (
            {"x": [1.0]},
            r"part-1.parquet` must have the columns of `.*-0.parquet`; it lacks `n`",
        ),
        ({"x": [1.0], "n": [1], "z": [1]}, r"part-1.parquet` must have .*; it has `z`"),
    ],
)
def test_a_file_that_is_not_like_the_first_is_named(tmp_path, second, message):
    folder = parts(tmp_path, "parquet", pa.table({"x": [1.0], "n": [1]}), pa.table(second))
    with pytest.raises(InvalidData, match=message) as caught:
        read(folder)
    assert "\n" not in str(caught.value)


def test_a_file_that_was_cut_off_and_an_empty_one_are_named(tmp_path):
    folder = parts(tmp_path, "parquet")
    empty = folder / "part-1.parquet"
    pq.write_table(TABLE.slice(0, 0), empty)
    with pytest.warns(DataWarning, match=r"1 file of .* without a row, such as .*part-1"):
        assert len(read(folder)) == 2
    empty.write_bytes(empty.read_bytes()[:-9])
    with pytest.raises(InvalidData, match=r"part-1.parquet` must be a whole Parquet file"):
        read(folder)
    with pytest.warns(DataWarning, match=r"1 of 3 files cannot be read .*part-1.parquet` must be"):
        assert len(read(folder, broken="skip")) == 2
    empty.write_bytes(b"")
    with pytest.raises(InvalidData, match=r"part-1.parquet` must hold a table; the file is empty"):
        read(folder)
    with pytest.warns(DataWarning, match="1 of 3 files"):
        assert len(read(folder, broken="skip")) == 2
    with pytest.raises(InvalidParameter, match="`broken` must be 'raise' or 'skip'; got 'drop'"):
        read(folder, broken="drop")


def test_a_pattern_that_matches_nothing_says_so(tmp_path):
    with pytest.raises(InvalidData, match=r"\*.parquet` must match a file; it matches none"):
        read(f"{tmp_path}/*.parquet")


def test_a_folder_with_images_beside_a_table_stays_one_of_images(tmp_path):
    from PIL import Image

    for name in "ab":
        (tmp_path / name).mkdir()
        Image.new("L", (4, 4)).save(tmp_path / name / "1.png")
    parts(tmp_path / "a", "csv", TABLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(read(tmp_path), Images)


def test_a_data_set_of_pyarrow_keeps_its_filter_and_streams(tmp_path):
    found = pads.dataset(parts(tmp_path, "parquet")).filter(pc.field("n") > 2)
    data = read(found, target="n")
    assert data.streaming
    assert data.table().to_pylist() == TABLE.slice(2).to_pylist()
    assert not read(found, stream=False).streaming


def test_a_lazy_frame_and_a_reader_of_batches_are_collected():
    lazy = pl.from_arrow(TABLE).lazy().filter(pl.col("n") > 2)
    assert read(lazy).table().to_pylist() == TABLE.slice(2).to_pylist()
    assert read(TABLE.to_reader()).table().to_pylist() == TABLE.to_pylist()
