"""Data files that claim or unpack to far more than they are."""

import bz2
import gzip
import io
import lzma
import os
import struct
import time
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from pyarrow import parquet
from tests.base.test_saved_bombs import little_memory

import castalia
from castalia.data import packed_files
from castalia.data.images import image_decoder, read_idx
from castalia.data.images.file_stores import Folder
from castalia.data.images.image_decoder import decode, decode_labels, header
from castalia.data.prompts import ChatTemplate
from castalia.data.text.web_text import clean_page, drop_repeated
from castalia.data.utf8_files import read_text
from castalia.data.word_vectors import read_word_vectors
from castalia.errors import CastaliaError, InvalidData, InvalidParameter
from castalia.nn import BottleneckAdapters, LoRA

ROWS = b"a,b\n" + b"1,2\n" * (1 << 20)  # 4 MB


def zipped(raw, name="table.csv"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, raw)
    return out.getvalue()


PACKED = {
    "gz": lambda raw: gzip.compress(raw, 6),
    "bz2": bz2.compress,
    "xz": lambda raw: lzma.compress(raw, preset=0),
    "zip": zipped,
}


@pytest.fixture
def small_bounds(monkeypatch):
    monkeypatch.setattr(packed_files, "FEW", 2**18)


def test_the_bound_is_that_of_the_documents():
    assert packed_files.most_unpacked(0) == 2**25
    assert packed_files.most_unpacked(10) == 2**25 + 2560


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("ending", PACKED)
def test_a_packed_table_may_not_grow_without_end(tmp_path, ending):
    (tmp_path / f"t.csv.{ending}").write_bytes(PACKED[ending](ROWS))
    with little_memory(), pytest.raises(InvalidData, match="256 times its own size"):
        castalia.read(tmp_path / f"t.csv.{ending}")


@pytest.mark.parametrize("ending", PACKED)
def test_a_packed_table_within_the_bound_is_read(tmp_path, ending):
    (tmp_path / f"t.csv.{ending}").write_bytes(PACKED[ending](ROWS[: 4 * 20_000]))
    assert len(castalia.read(tmp_path / f"t.csv.{ending}")) == 19_999


def test_streams_of_xz_that_follow_one_another_are_read(tmp_path):
    one, two = lzma.compress(b"a,b\n1,2\n"), lzma.compress(b"3,4\n")
    (tmp_path / "t.csv.xz").write_bytes(one + bytes(8) + two + bytes(4))
    assert castalia.read(tmp_path / "t.csv.xz").column("a").tolist() == [1, 3]
    (tmp_path / "t.csv.xz").write_bytes(one + two[:-3])
    with pytest.raises(InvalidData, match="damaged or cut off"):
        castalia.read(tmp_path / "t.csv.xz")


def test_an_xz_file_with_a_huge_window_is_refused(tmp_path):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]
    packer = lzma.LZMACompressor(lzma.FORMAT_XZ, filters=filters)
    try:
        raw = packer.compress(b"a,b\n1,2\n") + packer.flush()
    except MemoryError:
        pytest.skip("the machine is too small to write one")
    (tmp_path / "t.csv.xz").write_bytes(raw)
    with little_memory(), pytest.raises(InvalidData, match="[Mm]emory"):
        castalia.read(tmp_path / "t.csv.xz")


@pytest.mark.usefixtures("small_bounds")
def test_a_run_of_equal_values_in_parquet_has_a_bound(tmp_path):
    column = pa.array(np.zeros(1_000_000, np.int8))
    parquet.write_table(pa.table({"a": column}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 6_000
    with pytest.raises(InvalidData, match="1,000,000 values"):
        castalia.read(tmp_path / "t.parquet")


def workbook(path, sheet):
    from openpyxl import Workbook

    book = Workbook()
    book.active.append(["a", "b"])
    book.active.append([1, 2])
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    parts[name] = sheet(parts[name])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in parts.items():
            archive.writestr(name, raw)
    return path


def test_the_size_that_a_workbook_claims_does_not_matter(tmp_path):
    pytest.importorskip("openpyxl")
    path = workbook(
        tmp_path / "b.xlsx",
        lambda raw: raw.replace(b'<dimension ref="A1:B2"', b'<dimension ref="A1:XFD1048576"'),
    )
    with little_memory():
        assert len(castalia.read(path)) == 1


@pytest.mark.usefixtures("small_bounds")
def test_far_cells_of_a_workbook_and_long_parts_are_refused(tmp_path):
    pytest.importorskip("openpyxl")
    rows = b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (i, i) for i in range(3, 800))
    path = workbook(
        tmp_path / "b.xlsx", lambda raw: raw.replace(b"</sheetData>", rows + b"</sheetData>")
    )
    with little_memory(), pytest.raises(InvalidData, match="apart"):
        castalia.read(path)
    path = workbook(tmp_path / "c.xlsx", lambda raw: raw + b" " * (8 << 20))
    with little_memory(), pytest.raises(InvalidData, match="unpacks to"):
        castalia.read(path)


# -- images and arrays --


def png(width, height):
    """Return a PNG that claims a size and holds next to nothing."""

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("read", [header, decode_labels, lambda file: decode(file, None, 3)])
def test_more_pixels_than_a_file_could_tell_apart_are_refused(read):
    with little_memory(), pytest.raises(InvalidData, match="8,000 x 8,000 pixels are more than"):
        read(io.BytesIO(png(8000, 8000)))


def test_a_folder_leaves_such_images_out(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / name / "1.png")
    (tmp_path / "cat" / "2.png").write_bytes(png(9_000, 9_000))
    os.mkfifo(tmp_path / "cat" / "3.png")
    images = castalia.read(tmp_path)
    with pytest.warns(castalia.errors.DataWarning, match="2 of 4 files"):
        assert len(castalia.data.images.decodable(images)) == 2


@pytest.mark.parametrize("mode", ["P", "LA", "I;16", "CMYK", "RGBA", "F"])
def test_images_converted_in_strips_are_those_converted_whole(mode, monkeypatch):
    values = np.random.default_rng(0).integers(0, 256, (37, 11, 4), dtype=np.uint8)
    image = Image.fromarray(values, "RGBA")
    image = image.convert("L").convert(mode) if mode in ("I;16", "F") else image.convert(mode)
    if mode == "P":
        image.info["transparency"] = 3
    whole = image_decoder.as_decoded(image)
    monkeypatch.setattr(image_decoder, "STRIP", 55)  # five rows
    np.testing.assert_array_equal(image_decoder.as_decoded(image), whole)


def test_a_folder_that_links_to_itself_is_walked_once(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.png").write_bytes(b"")
    for name in ("one", "two"):
        (tmp_path / "cat" / name).symlink_to(tmp_path)
    (tmp_path / "dog").symlink_to(tmp_path / "cat")
    assert Folder(str(tmp_path)).names() == ["cat/1.png", "dog/1.png"]


@pytest.mark.usefixtures("small_bounds")
def test_an_image_of_an_archive_may_not_grow_without_end(tmp_path):
    raw = Image.new("RGB", (8, 8))
    with zipfile.ZipFile(tmp_path / "i.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("cat/1.png", "dog/1.png"):
            with archive.open(name, "w") as file:
                raw.save(file, "png")
        archive.writestr("cat/2.bmp", bytes(4 << 20))
    images = castalia.read(tmp_path / "i.zip")
    with little_memory(), pytest.raises(InvalidData, match="unpacks to 4,194,304 bytes"):
        images.source.sizes()


def npz(path, shape, data=b"\0" * 8, kind="|u1"):
    head = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode() + b"\n"
    raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data
    path.write_bytes(zipped(raw, "x.npy"))
    return path


@pytest.mark.parametrize("shape", [(10**9, 1, 1), (2**40, 2**40, 1), (-1, 2, 4), (2**63, 0, 1)])
def test_the_shape_of_an_array_is_compared_with_its_bytes(tmp_path, shape):
    assert len(castalia.read(npz(tmp_path / "whole.npz", (2, 2, 2)))) == 2
    with little_memory(), pytest.raises(InvalidData, match="whole NPZ file"):
        castalia.read(npz(tmp_path / "a.npz", shape))


@pytest.mark.usefixtures("small_bounds")
def test_arrays_of_objects_and_long_arrays_are_refused(tmp_path):
    with pytest.raises(InvalidData, match="plain"):
        castalia.read(npz(tmp_path / "a.npz", (1, 1, 1), kind="|O"))
    with little_memory(), pytest.raises(InvalidData, match="unpacks to"):
        castalia.read(npz(tmp_path / "a.npz", (4 << 20, 1, 1), bytes(4 << 20)))


def test_shapes_of_idx_files_and_word_vectors_are_compared_with_their_bytes(tmp_path):
    sizes = np.array([2**31, 2**31, 4], ">u4").tobytes()  # 2^64 wraps around to nothing
    (tmp_path / "i-idx3").write_bytes(b"\0\0\x08\x03" + sizes)
    with pytest.raises(CastaliaError):
        read_idx(tmp_path / "i-idx3")
    for name in ("v.txt", "v.bin"):
        for first in (b"100000000 300", b"9" * 5000 + b" 1", b"1 99999999999999"):
            (tmp_path / name).write_bytes(first + b"\ncat 1 2\n")
            with little_memory(), pytest.raises(CastaliaError, match="do not fit into"):
                read_word_vectors(tmp_path / name)


# -- pipes --


def test_pipes_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(InvalidData, match="not a regular file"):
        read_text(tmp_path / "a.txt")
    os.mkfifo(tmp_path / "chat_template.jinja")
    with pytest.raises(CastaliaError, match="not a regular file"):
        ChatTemplate.load(tmp_path)


# -- patterns and templates of files --


def test_a_long_text_without_sentences_is_searched_once():
    start = time.process_time()
    assert clean_page("the word goes on " * 20_000, words=1) is None
    assert list(drop_repeated(["go on " * 50_000 + "now. Go on!\nlast"]))[0].endswith("last")
    assert time.process_time() - start < 5


@pytest.mark.parametrize("pattern", ["(a+)+$", "(.*)*x", "a*b*c*d*e*f*", "(", "(a|b){9,}"])
def test_patterns_that_could_search_for_ever_are_refused(pattern):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    for adaptation in (LoRA(pattern=pattern), BottleneckAdapters(pattern=pattern)):
        with pytest.raises(InvalidParameter, match="without repeated groups"):
            adaptation.apply(net)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 10000000000 }}",
        "{{ ('a' * 900000) * 900000 }}",
        "{{ 10 ** 10000000 }}",
        "{{ '%9999999999d' % 1 }}",
        "{% for i in range(90000) %}{{ i }}{% endfor %}",
    ],
)
def test_a_template_may_not_compute_much(source):
    with little_memory(), pytest.raises(InvalidData, match="no template may"):
        ChatTemplate(source).render([{"role": "user", "content": "Hi"}])
    few = "{{ 2 * 3 ** 2 }}{{ '-' * 3 }}{{ 7 % 4 }}{% for i in range(3) %}{{ i }}{% endfor %}"
    assert ChatTemplate(few).render([]) == "18---3012"


@pytest.mark.parametrize("place, value", [(8, 99), (6, 1)])  # compression; encrypted
def test_a_zip_that_cannot_be_unpacked_is_said_to_be_damaged(tmp_path, place, value):
    raw = bytearray(zipped(b"a,b\n1,2\n"))
    raw[place] = value
    entry = raw.index(b"PK\x01\x02")
    raw[entry + place + 2] = value
    path = tmp_path / "table.csv.zip"
    path.write_bytes(raw)
    with pytest.raises(InvalidData, match="table.csv.zip"):
        castalia.read(path)


def test_a_zip_whose_name_is_no_text_is_said_to_be_damaged(tmp_path):
    raw = bytearray(zipped(b"a,b\n1,2\n"))
    raw[7], raw[30] = raw[7] | 8, 0xFC  # says UTF-8, and is not
    path = tmp_path / "table.csv.zip"
    path.write_bytes(raw)
    with pytest.raises(InvalidData, match="table.csv.zip"):
        castalia.read(path)
