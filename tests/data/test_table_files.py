"""Tables as people have them: encodings, packings, workbooks, JSON, addresses; against pandas."""

import bz2
import gzip
import io
import json
import lzma
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest

from castalia.data import read
from castalia.errors import DataWarning, InvalidData, InvalidParameter

CSV = "name,größe,n\nZoë,1.5,1\nÉmile,2.5,2\n日,3.5,3\n"
WEST = "name,größe,n\nZoë,1.5,1\nÉmile – €,2.5,2\n"


def same(found, frame):
    """Whether a data set holds what a frame holds, to the bit."""
    assert found.columns == [str(name) for name in frame.columns]
    for name in found.columns:
        ours, theirs = found.column(name), frame[name].to_numpy()
        if ours.dtype.kind in "biuf":
            assert np.array_equal(ours, theirs.astype(ours.dtype), equal_nan=True), name
        else:
            none = [None if v != v or v is None else v for v in theirs.tolist()]
            assert ours.tolist() == none, name


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_an_encoding_that_says_itself_is_read_without_a_word(tmp_path, encoding):
    path = tmp_path / "a.csv"
    path.write_bytes(CSV.encode(encoding))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(read(path), pd.read_csv(path, encoding=encoding))


def test_utf16_without_a_mark_is_recognised(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(WEST.encode("utf-16-le"))
    same(read(path), pd.read_csv(path, encoding="utf-16-le"))


def test_what_is_not_utf8_is_read_as_windows_writes_it_and_said_aloud(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(WEST.encode("cp1252"))
    with pytest.warns(DataWarning, match=r"byte 0xf6 at offset 7 \(line 1\).*Windows-1252.*--enc"):
        same(read(path), pd.read_csv(path, encoding="cp1252"))
    path.write_bytes(b"a,b\n\x81,1\n")
    with pytest.warns(DataWarning, match="Latin-1"):
        assert read(path).column("a").tolist() == ["\x81"]


def test_an_encoding_that_is_given_is_used(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("a,b\nПетр,1\n".encode("cp1251"))
    same(read(path, encoding="cp1251"), pd.read_csv(path, encoding="cp1251"))
    with pytest.raises(InvalidData, match=r"must be utf-8; got byte 0xcf.*Leave `encoding` out"):
        read(path, encoding="utf8")
    with pytest.raises(InvalidParameter, match="one that Python knows.*got 'klingon'"):
        read(path, encoding="klingon")


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zip"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_packed_table_is_what_pandas_unpacks(tmp_path, ending, encoding):
    path, raw = tmp_path / f"a.csv{ending}", CSV.encode(encoding)
    if ending == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inner.csv", raw)
    else:
        path.write_bytes(PACKERS[ending](raw))
    same(read(path), pd.read_csv(path, encoding=encoding))
    same(read(path, stream=True), pd.read_csv(path, encoding=encoding))


def test_a_zip_file_of_one_table_is_that_table_and_of_two_is_refused(tmp_path):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/", "")
        archive.writestr("folder/rows.csv", "a,b\n1,2\n")
        archive.writestr("__MACOSX/._rows.csv", "x")
    assert read(path).columns == ["a", "b"]
    two = tmp_path / "two.csv.zip"
    with zipfile.ZipFile(two, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "b\n1\n")
    with pytest.raises(InvalidData, match="must hold one file; it holds 2: `a.csv` and `b.csv`"):
        read(two)


@pytest.mark.parametrize("ending, kind", [(".gz", "gzip"), (".bz2", "bzip2"), (".xz", "xz")])
def test_a_damaged_packing_is_named(tmp_path, ending, kind):
    path = tmp_path / f"a.csv{ending}"
    path.write_bytes(PACKERS[ending](CSV.encode() * 500)[:-20])
    with pytest.raises(InvalidData, match=f"must be a whole {kind} file"):
        read(path)
    path.write_bytes(b"no such packing")
    with pytest.raises(InvalidData, match=f"must be a whole {kind} file"):
        read(path)


# ---- values as people write them ----


def column(tmp_path, values, delimiter=","):
    path = tmp_path / "v.csv"
    quoted = "".join(f'"{value}"{delimiter}x\n' for value in values)
    path.write_text(f"v{delimiter}w\n{quoted}", encoding="utf-8")
    return read(path)


def test_money_and_thousands_are_what_pandas_makes_of_them(tmp_path):
    found = column(tmp_path, ["$1,234", "-$5.50", "7", "1,234,567.8 USD", "(1,000)", ""])
    assert found.column("v")[:5].tolist() == [1234.0, -5.5, 7.0, 1234567.8, -1000.0]
    assert np.isnan(found.column("v")[5])
    plain = "v\tw\n1,234\tx\n2,000\ty\n31,234,567\tz\n"
    theirs = pd.read_csv(io.StringIO(plain), sep="\t", thousands=",")
    ours = column(tmp_path, ["1,234", "2,000", "31,234,567"])
    assert ours.column("v").tolist() == theirs["v"].tolist()
    assert "thousands" in ours.schema["v"].note


def test_decimal_commas_are_what_pandas_makes_of_them(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a;b\n3,14;1.234,5\n-2,0;7,25\n10;1.000.000,0\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read(path)
    same(found, pd.read_csv(path, sep=";", decimal=",", thousands="."))


def test_percentages_are_shares(tmp_path):
    found = column(tmp_path, ["12%", "3.5 %", "-100%"])
    assert found.column("v").tolist() == pytest.approx([0.12, 0.035, -1.0])
    assert found.schema["v"].kind == "numeric"


@pytest.mark.parametrize(
    "values, options",
    [
        (["31/12/2020", "01/02/2021"], {"dayfirst": True}),
        (["12/31/2020", "01/02/2021"], {}),
        (["31.12.2020", "01.02.2021"], {"dayfirst": True}),
        (["31/12/2020 10:30", "01/02/2021 00:05"], {"dayfirst": True}),
        (["2020/12/31", "2021/02/01"], {}),
        (["5 Mar 2020", "17 Nov 2021"], {}),
        (["March 5, 2020", "June 17, 2021"], {}),
        (["1749-01", "1749-02"], {}),
    ],
)
def test_dates_are_what_pandas_makes_of_them(tmp_path, values, options):
    found = column(tmp_path, values)
    expected = [pd.to_datetime(value, **options) for value in values]
    assert found.schema["v"].kind == "date"
    assert found.column("v").tolist() == [date.to_pydatetime() for date in expected]


def test_a_column_that_can_be_read_in_two_ways_is_said_aloud(tmp_path):
    with pytest.warns(DataWarning, match="`v` .* may hold dates written %d/%m/%Y; it is read"):
        found = column(tmp_path, ["01/02/2020", "03/04/2020"])
    assert str(found.column("v")[0])[:10] == "2020-01-02"  # as pandas
    with pytest.warns(DataWarning, match="may hold numbers with a decimal comma"):
        assert column(tmp_path, ["1,234", "5,678"]).column("v").tolist() == [1234, 5678]


@pytest.mark.parametrize(
    "values",
    [["192.168.100", "10.100.200"], ["a,b", "c"], ["1/2", "3/4"], ["12%", "high"], ["$", "5"]],
)
def test_what_only_resembles_numbers_stays_text(tmp_path, values):
    assert column(tmp_path, values).column("v").tolist() == values


def test_formats_are_decided_by_the_whole_column(tmp_path):
    values = [f"{i:,}" for i in range(900, 1100)] + ["n/a?"]
    assert column(tmp_path, values).column("v")[-1] == "n/a?"


# ---- workbooks and JSON ----


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [0.5, np.nan, 2.25],
            "word": ["a", "b", None],
            "yes": [True, False, True],
            "when": pd.to_datetime(["2020-12-31", "2021-01-01", "2021-02-03"]),
        }
    )


def test_a_workbook_is_what_pandas_reads(tmp_path, frame):
    path = tmp_path / "book.xlsx"
    frame.to_excel(path, index=False)
    found, theirs = read(path, target="n"), pd.read_excel(path)
    same(found.select(["n", "x", "word", "yes"]), theirs[["n", "x", "word", "yes"]])
    assert found.column("when").tolist() == [d.to_pydatetime() for d in theirs["when"]]
    assert found.schema["when"].kind == "date"


def test_the_first_of_several_sheets_is_read_and_the_others_are_named(tmp_path, frame):
    with pd.ExcelWriter(tmp_path / "b.xlsx") as writer:
        frame.to_excel(writer, sheet_name="rows", index=False)
        frame.to_excel(writer, sheet_name="notes", index=False)
    with pytest.warns(DataWarning, match="first sheet of .*, `rows`, is read; `notes` not"):
        assert len(read(tmp_path / "b.xlsx")) == 3
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(InvalidData, match="must be a whole Excel workbook"):
        read(tmp_path / "bad.xlsx")


@pytest.mark.parametrize("orient", ["records", "columns", "list"])
def test_json_is_what_pandas_reads(tmp_path, frame, orient):
    path, kept = tmp_path / "a.json", frame[["n", "x", "word", "yes"]]
    if orient == "list":
        cells = kept.astype(object).where(kept.notna(), None)
        path.write_text(json.dumps({name: cells[name].tolist() for name in cells}))
        same(read(path), kept)
        return
    kept.to_json(path, orient=orient)
    same(read(path), pd.read_json(path))


def test_json_lines_and_wrapped_records_are_read_too(tmp_path):
    rows = [{"a": 1, "b": "x"}, {"a": 2.5}]
    (tmp_path / "lines.json").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "wrapped.json").write_text(json.dumps({"count": 2, "rows": rows}))
    for name in ("lines.json", "wrapped.json"):
        found = read(tmp_path / name)
        assert found.column("a").tolist() == [1.0, 2.5]
        assert found.column("b").tolist() == ["x", None]
    (tmp_path / "bad.json").write_text('[{"a": 1},\n {"a": }]')
    with pytest.raises(InvalidData, match="line 2 must be JSON"):
        read(tmp_path / "bad.json")
    (tmp_path / "scalar.json").write_text("3")
    with pytest.raises(InvalidData, match="must hold a list of objects.*got 3"):
        read(tmp_path / "scalar.json")


# ---- addresses ----


def test_an_address_is_fetched(frame):
    import fsspec

    with fsspec.open("memory://folder/rows.csv.gz", "wb") as file:
        file.write(gzip.compress(b"a,b\n1,x\n2,y\n"))
    found = read("memory://folder/rows.csv.gz", target="b")
    assert found.column("a").tolist() == [1, 2]
    assert found.source == "memory://folder/rows.csv.gz"
    with pytest.raises(InvalidData, match="`memory://nowhere.csv` must be a file that can"):
        read("memory://nowhere.csv")
    with pytest.raises(InvalidData, match="`nosuch://a.csv` must be|cannot be opened"):
        read("nosuch://a.csv")


# ---- words that fit the file ----


@pytest.mark.parametrize(
    "name, raw, said",
    [
        ("a.csv", b"PK\x03\x04rest", "those of a zip archive or an Excel workbook.*.zip or .xlsx"),
        (
            "a.csv",
            gzip.compress(b"a,b\n1,2\n", mtime=0),
            "those of a gzip file. Give it the ending .gz",
        ),
        ("a.csv", b"PAR1....", "those of a Parquet file"),
        ("a.csv", b"a,b\n1,\x00\n", "holds the byte 0x00 at offset 6"),
        ("a.xls", b"\xd0\xcf\x11\xe0", r"got `\.xls`. Save it as \.xlsx or CSV"),
        ("a.pkl", b"x", "pickles are programs"),
        ("a.docx", b"x", "Export the table as CSV"),
        ("a.parquet.gz", b"x", "before the ending of its packing"),
    ],
)
def test_an_error_fits_the_file(tmp_path, name, raw, said):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(InvalidData, match=said) as caught:
        read(tmp_path / name)
    assert "translator" not in str(caught.value)
    assert "LATIN" not in str(caught.value)


def test_only_files_of_a_kind_are_suggested(tmp_path):
    for name in ("inf.csv", "info.txt"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(InvalidData) as caught:
        read(tmp_path / "infos.parquet")
    assert "Did you mean" not in str(caught.value)
    with pytest.raises(InvalidData, match="Did you mean `inf.csv`"):
        read(tmp_path / "inff.csv")
