"""COCO's JSON."""

import json

import pytest
from PIL import Image

from castalia.data import read
from castalia.data.images import read_coco
from castalia.data.images.coco import is_coco
from castalia.errors import DataWarning, InvalidData


def coco(folder, annotations, files=("a.png", "b.png"), **more):
    for name in files:
        Image.new("RGB", (20, 10)).save(folder / name)
    data = {
        "images": [{"id": i + 1, "file_name": n} for i, n in enumerate(("a.png", "b.png"))],
        "categories": [{"id": 3, "name": "dog"}, {"id": 8, "name": "cat"}],
        "annotations": [{"id": i, **mark} for i, mark in enumerate(annotations)],
        **more,
    }
    (folder / "marks.json").write_text(json.dumps(data))
    return folder / "marks.json"


def mark(image, category, box, **more):
    return {"image_id": image, "category_id": category, "bbox": box, **more}


def test_boxes_become_corners_and_images_without_boxes_stay(tmp_path):
    file = coco(tmp_path, [mark(1, 8, [2, 3, 4, 5]), mark(1, 3, [0, 0, 2.5, 2], iscrowd=1)])
    images = read_coco(file)
    first, second = images.target
    assert first.labels.tolist() == ["cat", "dog"]
    assert first.corners.tolist() == [[2, 3, 6, 8], [0, 0, 2.5, 2]]
    assert first.difficult.tolist() == [False, True]
    assert len(second) == 0
    assert images.source.names == ["a.png", "b.png"]


def test_impossible_boxes_and_unknown_classes_are_reported(tmp_path):
    file = coco(tmp_path, [mark(1, 8, [2, 3, 0, 5]), mark(2, 8, [15, 3, 10, 5])])
    with pytest.warns(DataWarning) as seen:
        images = read_coco(file, tmp_path)
    assert [boxes.corners.tolist() for boxes in images.target] == [[], [[15, 3, 20, 8]]]
    assert len(seen) == 2
    file = coco(tmp_path, [mark(1, 99, [2, 3, 4, 5])])
    with pytest.warns(DataWarning, match="unknown class, or no box, in 1 annotation: `0`"):
        read_coco(file)
    with pytest.raises(InvalidData, match="unknown class"):
        read_coco(file, broken="raise")


def test_missing_images_and_lists_are_named(tmp_path):
    file = coco(tmp_path, [], files=("a.png",))
    with pytest.warns(DataWarning, match="the folder lacks 1 file: `b.png`"):
        assert len(read_coco(file)) == 1
    (tmp_path / "else").mkdir()
    with pytest.raises(InvalidData, match=r"none of 2 is, such as `a.png`. Set `folder`"):
        read_coco(file, tmp_path / "else")
    file.write_text("{}")
    with pytest.raises(InvalidData, match="it has no `images`"):
        read_coco(file)
    file.write_text("[1,")
    with pytest.raises(InvalidData, match="must be a JSON file"):
        read_coco(file)


def test_read_knows_annotations_by_their_lists(tmp_path):
    images = read(coco(tmp_path, [mark(1, 8, [2, 3, 4, 5])]))
    assert images.target[0].labels.tolist() == ["cat"]
    other = tmp_path / "rows.json"
    other.write_text('{"images": 3, "y": 1}')
    assert not is_coco(other)
    assert not is_coco(tmp_path / "none.json")
