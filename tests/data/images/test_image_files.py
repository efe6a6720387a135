"""Images in files: opened late, decoded in threads, broken ones named and counted."""

import pickle
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image
from torch.testing import assert_close

import castalia.data.images
from castalia.data.images import FileRows, ImageFiles, ImageRows, Images, decodable
from castalia.data.images.image_file_rows import fits_memory
from castalia.errors import DataWarning, InvalidData, InvalidParameter


def write_images(folder, n=6, kind="png"):
    """Write images of several sizes and return their names."""
    random = np.random.default_rng(0)
    for i in range(n):
        values = random.integers(0, 256, (10 + i, 12, 3), dtype=np.uint8)
        Image.fromarray(values).save(folder / f"{i}.{kind}")
    return [f"{i}.{kind}" for i in range(n)]


def test_building_a_set_opens_no_file(tmp_path):
    files = ImageFiles([f"{i}.jpg" for i in range(100_000)], tmp_path)
    assert len(files) == 100_000
    assert len(files.take([5, 7])) == 2
    assert "100,000 files" in repr(files)


def test_sizes_and_channels_come_from_headers(tmp_path):
    files = ImageFiles(write_images(tmp_path, 4), tmp_path)
    assert files.sizes().tolist() == [[10, 12], [11, 12], [12, 12], [13, 12]]
    assert files.channels == 3
    Image.new("L", (5, 5)).save(tmp_path / "grey.png")
    mixed = ImageFiles(["grey.png", "0.png"], tmp_path)
    assert mixed.channels == 3
    assert mixed.take([0]).channels == 3  # as in the whole set
    assert ImageFiles(["grey.png"], tmp_path).channels == 1


def test_pixels_are_those_of_pillow_in_the_order_asked_for(tmp_path):
    files = ImageFiles(write_images(tmp_path), tmp_path, workers=3)
    found = files.pixels([4, 1], (8, 9), 3)
    assert found.dtype == torch.uint8
    assert found.is_contiguous()
    for place, row in enumerate((4, 1)):
        with Image.open(tmp_path / f"{row}.png") as image:
            want = np.asarray(image.resize((9, 8), Image.Resampling.BILINEAR))
        np.testing.assert_array_equal(found[place].permute(1, 2, 0).numpy(), want)


def test_an_archive_is_read_as_a_folder_is(tmp_path):
    names = write_images(tmp_path)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in names:
            archive.write(tmp_path / name, name)
    packed, plain = (ImageFiles(names, root) for root in (tmp_path / "all.zip", tmp_path))
    assert_close(packed.pixels(range(6), (5, 5), 3), plain.pixels(range(6), (5, 5), 3))
    assert packed.fingerprint() == plain.fingerprint()
    again = pickle.loads(pickle.dumps(packed))
    assert_close(again.pixels([2], (5, 5), 3), plain.pixels([2], (5, 5), 3))


def test_broken_files_are_named_and_counted(tmp_path):
    names = write_images(tmp_path, 6, "jpg")
    whole = (tmp_path / "1.jpg").read_bytes()
    (tmp_path / "1.jpg").write_bytes(whole[:-60])
    (tmp_path / "4.jpg").write_bytes(b"hello")
    files = ImageFiles(names, tmp_path)
    with pytest.raises(
        InvalidData, match=r"2 of 6 cannot be decoded: `1.jpg` \(.*truncated.*4.jpg"
    ):
        files.pixels(range(6), (5, 5), 3)
    with pytest.raises(InvalidData, match=r"1 of 6 cannot be decoded: `4.jpg` \(not an image\)"):
        files.sizes()
    with pytest.warns(
        DataWarning, match=r"2 of 6 files of .* left out: `1.jpg` .*, `4.jpg`"
    ) as seen:
        left = decodable(Images(files, np.arange(6)))
    assert len(seen) == 1
    assert left.target.tolist() == [0, 2, 3, 5]
    assert left.source.names == ["0.jpg", "2.jpg", "3.jpg", "5.jpg"]
    assert decodable(left) is left
    strict = ImageFiles(names, tmp_path, broken="raise")
    with pytest.raises(InvalidData, match="2 of 6 .*Remove or replace them"):
        strict.whole()
    with pytest.raises(InvalidData, match="1 of 1"):
        ImageFiles(["4.jpg"], tmp_path).whole()


def test_files_that_are_not_there_are_broken_too(tmp_path):
    with pytest.raises(InvalidData, match=r"`gone.png` \(no such file\)"):
        ImageFiles(["gone.png"], tmp_path).pixels([0], (4, 4), 3)


def test_the_fingerprint_follows_names_and_lengths(tmp_path):
    names = write_images(tmp_path, 3)
    files = ImageFiles(names, tmp_path)
    before = files.fingerprint()
    assert ImageFiles(names, tmp_path).fingerprint() == before
    assert files.take([0, 1]).fingerprint() != before
    (tmp_path / "1.png").write_bytes(b"other")
    assert ImageFiles(names, tmp_path).fingerprint() != before


def both_rows(folder, n=10):
    files = ImageFiles(write_images(folder, n), folder)
    scale = torch.tensor([100.0, 120, 90]), torch.tensor([50.0, 60, 70])
    held = ImageRows(files.pixels(range(n), (8, 8), 3), *scale)
    return FileRows(files, (8, 8), *scale), held


def test_rows_from_files_are_those_in_memory_to_the_bit(tmp_path):
    rows, held = both_rows(tmp_path)
    order = torch.randperm(10, generator=torch.Generator().manual_seed(0))
    rows.plan(order.split(4))
    for index in order.split(4):
        assert_close(rows.take(index), held.take(index), rtol=0, atol=0)
    assert len(rows) == 10


def test_rows_are_right_when_the_loop_does_not_follow_the_plan(tmp_path):
    rows, held = both_rows(tmp_path)
    rows.plan(torch.arange(10).split(2))
    # in the middle, as after resuming; half batches; one twice; out of order; the rest
    for index in ([4, 5], [6], [7], [7], [0, 9], [3, 1], [8, 9]):
        wanted = torch.tensor(index)
        assert_close(rows.take(wanted), held.take(wanted), rtol=0, atol=0)
    assert_close(rows.to("cpu").take(torch.tensor([2])), held.take(torch.tensor([2])))


def test_rows_are_decoded_before_they_are_asked_for(tmp_path):
    rows, _ = both_rows(tmp_path)
    asked = []
    decode = rows.files.image
    rows.files.image = lambda row, size, channels: asked.append(row) or decode(row, size, channels)
    rows.plan(torch.arange(10).flip(0).split(2))
    rows.take(torch.tensor([9, 8]))
    for future in rows._ahead.futures:
        future.result()
    assert sorted(asked) == list(range(2, 10))  # the batch and three more


def test_a_broken_row_is_named_by_the_loop(tmp_path):
    rows, _ = both_rows(tmp_path)
    (tmp_path / "3.png").write_bytes(b"")
    with pytest.raises(InvalidData, match=r"1 of 2 cannot be decoded: `3.png`"):
        rows.take(torch.tensor([2, 3]))


def test_what_is_larger_than_memory_does_not_fit():
    assert fits_memory(1 << 20)
    assert not fits_memory(1 << 60)


def test_errors_name_the_value(tmp_path):
    with pytest.raises(InvalidParameter, match="`broken` must be 'raise' or 'skip'; got 'drop'"):
        ImageFiles([], tmp_path, broken="drop")
    with pytest.raises(InvalidParameter, match="`workers` must be at least 1; got 0"):
        ImageFiles([], tmp_path, workers=0)
    (tmp_path / "pets").mkdir()
    with pytest.raises(InvalidData, match=r"must be a folder .* not there. Did you mean `pets`"):
        ImageFiles([], tmp_path / "petz")
    (tmp_path / "bad.zip").write_bytes(b"PK nothing")
    with pytest.raises(InvalidData, match="must be a whole zip archive"):
        ImageFiles([], tmp_path / "bad.zip")


def test_the_old_name_of_decodable_warns_for_one_version():
    with pytest.warns(FutureWarning, match="is now called decodable"):
        assert castalia.data.images.sound is decodable
