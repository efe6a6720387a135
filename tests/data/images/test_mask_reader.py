"""Masks, matched to images by name."""

import zipfile

import numpy as np
import pytest
from PIL import Image

from castalia.data.images import read_masks
from castalia.errors import DataWarning, InvalidData


@pytest.fixture
def folders(tmp_path):
    images, masks = tmp_path / "images", tmp_path / "masks"
    images.mkdir()
    masks.mkdir()
    for i in range(3):
        Image.new("RGB", (6, 4), (i, i, i)).save(images / f"{i}.jpg")
        Image.fromarray(np.full((4, 6), 10 + i, np.uint8)).save(masks / f"{i}.png")
    return images, masks


def test_masks_are_matched_by_name_and_keep_their_values(folders):
    images = read_masks(*folders)
    assert images.target.shape == (3, 4, 6)
    assert images.target[:, 0, 0].tolist() == [10, 11, 12]
    assert images.take([2]).target[0, 0, 0] == 12


def test_folders_of_an_archive_are_read_too(folders):
    home = folders[0].parent
    with zipfile.ZipFile(home / "all.zip", "w") as archive:
        for file in home.glob("*/*"):
            archive.write(file, file.relative_to(home))
    found = read_masks(home / "all.zip" / "images", f"{home}/all.zip/masks")
    np.testing.assert_array_equal(found.target, read_masks(*folders).target)
    with pytest.raises(InvalidData, match="must have a folder `labels`"):
        read_masks(home / "all.zip" / "images", home / "all.zip" / "labels")


def test_masks_of_another_size_are_refused_or_brought_to_it(folders):
    large = np.kron(np.arange(24, dtype=np.uint8).reshape(4, 6), np.ones((2, 2), np.uint8))
    Image.fromarray(large).save(folders[1] / "1.png")
    with pytest.raises(InvalidData, match=r"1 of 3 have another: `1.jpg` \(8 x 12 for 4 x 6\)"):
        read_masks(*folders)
    found = read_masks(*folders, resize=True)
    np.testing.assert_array_equal(found.target[1], np.arange(24).reshape(4, 6))


def test_images_of_several_sizes_have_a_list_of_masks(folders):
    Image.new("RGB", (3, 3)).save(folders[0] / "3.png")
    Image.new("L", (3, 3), 5).save(folders[1] / "3.png")
    images = read_masks(*folders)
    assert [mask.shape for mask in images.target] == [(4, 6)] * 3 + [(3, 3)]


def test_what_is_alone_broken_or_coloured_is_named(folders):
    Image.new("RGB", (6, 4)).save(folders[0] / "alone.png")
    with pytest.warns(DataWarning, match="no image, or no mask, for 1 file: `alone`"):
        assert len(read_masks(*folders)) == 3
    (folders[0] / "alone.png").unlink()
    (folders[1] / "0.png").write_bytes(b"oops")
    with pytest.warns(DataWarning, match="cannot decode 1 file: `0.png`"):
        assert read_masks(*folders).target[:, 0, 0].tolist() == [11, 12]
    Image.new("RGB", (6, 4), (255, 0, 0)).save(folders[1] / "0.png")
    with pytest.raises(InvalidData, match="got colours in 1: `0.png`"):
        read_masks(*folders)
    for i in range(3):
        (folders[1] / f"{i}.png").rename(folders[1] / f"{i}_mask.png")
    with pytest.raises(InvalidData, match="of 3 files none is named as one of the 3 images"):
        read_masks(*folders)
