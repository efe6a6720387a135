"""One door: `castalia.data.read` knows what a folder holds."""

import numpy as np
import pytest
from PIL import Image

from castalia.data import read
from castalia.data.images import Boxes, Images
from castalia.errors import InvalidData, InvalidParameter


def write(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (4, 4), 1).save(folder / name)
    return folder


def test_folders_are_read_as_what_they_hold(tmp_path):
    classes = read(write(tmp_path / "pets", "cat/1.png", "dog/1.png"))
    assert isinstance(classes, Images)
    assert classes.target.tolist() == ["cat", "dog"]
    masks = read(write(tmp_path / "roads", "images/1.png", "masks/1.png"))
    assert masks.target.shape == (1, 4, 4)
    home = write(tmp_path / "voc", "JPEGImages/1.png")
    (home / "Annotations").mkdir()
    (home / "Annotations" / "1.xml").write_text("<annotation></annotation>")
    assert isinstance(read(str(home)).target[0], Boxes)
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 4, 4), np.uint8), y=[0, 1])
    assert read(tmp_path / "a.npz").target.tolist() == [0, 1]


def test_a_target_makes_no_sense_for_images(tmp_path):
    with pytest.raises(InvalidParameter, match="`target` must be None for images"):
        read(tmp_path, target="kind")
    with pytest.raises(InvalidData, match="must hold images; got no file"):
        read(tmp_path)
