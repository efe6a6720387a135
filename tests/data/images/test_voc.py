"""PASCAL VOC: XML and the plain text of version 1.00."""

import zipfile

import pytest
from PIL import Image

from castalia.data.images import parse_voc, read_voc
from castalia.errors import DataWarning, InvalidData

TEXT = """# PASCAL Annotation Version 1.00

Image filename : "TUGraz_cars/PNGImages/carsgraz_001.png"
Image size (X x Y x C) : 640 x 480 x 3
Database : "The TU Graz Database"
Objects with ground truth : 2 { "PAScar" "PAScar" }

# Note that there might be other objects in the image
# for which ground truth data has not been provided.

# Top left pixel co-ordinates : (0, 0)

# Details for object 1 ("PAScar")
Original label for object 1 "PAScar" : "car"
Bounding box for object 1 "PAScar" (Xmin, Ymin) - (Xmax, Ymax) : (57, 133) - (329, 265)

# Details for object 2 ("PAScar")
Original label for object 2 "PAScar" : "car"
Bounding box for object 2 "PAScar" (Xmin, Ymin) - (Xmax, Ymax) : (153, 95) - (396, 218)
"""


def thing(label, box, extra=""):
    names = ("xmin", "ymin", "xmax", "ymax")
    sides = "".join(f"<{k}>{v}</{k}>" for k, v in zip(names, box, strict=True))
    return f"<object><name>{label}</name>{extra}<bndbox>{sides}</bndbox></object>"


def xml(*things, size=(20, 10)):
    stated = f"<size><width>{size[0]}</width><height>{size[1]}</height></size>" if size else ""
    return f"<annotation><filename>x.jpg</filename>{stated}{''.join(things)}</annotation>"


def voc(folder, **annotations):
    for sub in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    for name, text in annotations.items():
        Image.new("RGB", (20, 10)).save(folder / "JPEGImages" / f"{name}.jpg")
        (folder / "Annotations" / f"{name}.xml").write_text(text)
    return folder


def test_the_text_of_the_notes_yields_two_boxes():
    found = parse_voc(TEXT)
    assert found.size == (480, 640)
    assert found.image.endswith("carsgraz_001.png")
    assert found.boxes.labels.tolist() == ["PAScar", "PAScar"]
    assert found.boxes.corners.tolist() == [[57, 133, 329, 265], [153, 95, 396, 218]]
    assert found.boxes.areas.tolist() == [35904, 29889]


def test_xml_yields_size_labels_boxes_and_difficulty():
    part = "<part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>"
    hard = "<difficult>1</difficult>"
    found = parse_voc(xml(thing("dog", (1, 2, 8, 9), part), thing("cat", (0, 0, 3, 3.5), hard)))
    assert found.size == (10, 20)
    assert found.boxes.labels.tolist() == ["dog", "cat"]
    assert found.boxes.corners.tolist() == [[1, 2, 8, 9], [0, 0, 3, 3.5]]
    assert found.boxes.difficult.tolist() == [False, True]
    assert len(parse_voc(xml()).boxes) == 0


def test_images_and_boxes_of_a_part_are_read_from_folder_and_archive(tmp_path):
    home = voc(tmp_path / "VOC", a=xml(thing("dog", (1, 2, 8, 9))), b=xml(), c=xml())
    (home / "ImageSets" / "Main" / "train.txt").write_text("c\na  1\n\n")
    images = read_voc(home, "train")
    assert images.source.names == ["JPEGImages/c.jpg", "JPEGImages/a.jpg"]
    assert [len(boxes) for boxes in images.target] == [0, 1]
    with zipfile.ZipFile(tmp_path / "voc.zip", "w") as archive:
        for file in home.rglob("*.*"):
            archive.write(file, file.relative_to(tmp_path))
    packed = read_voc(tmp_path / "voc.zip", "train")
    assert packed.target == images.target
    assert packed.pixels([0, 1], (5, 5), 3).shape == (2, 3, 5, 5)
    assert len(read_voc(home)) == 3
    with pytest.raises(InvalidData, match="must be `train`, .*got 'trian'. Did you mean `train`"):
        read_voc(home, "trian")


def test_text_annotations_are_read_from_a_folder(tmp_path):
    (tmp_path / "Annotations").mkdir()
    (tmp_path / "Annotations" / "cars.txt").write_text(TEXT)
    Image.new("RGB", (640, 480)).save(tmp_path / "cars.png")
    assert read_voc(tmp_path).target[0].areas.tolist() == [35904, 29889]


def test_boxes_without_area_are_left_out_and_those_over_the_edge_cut_off(tmp_path):
    flat = xml(thing("a", (4, 4, 4, 8)), thing("b", (0, 0, 5, 5)), thing("c", (30, 1, 40, 5)))
    home = voc(tmp_path, flat=flat, wide=xml(thing("a", (-3, 2, 50, 9)), size=None))
    with pytest.warns(DataWarning) as seen:
        images = read_voc(home)
    assert [boxes.labels.tolist() for boxes in images.target] == [["b"], ["a"]]
    assert images.target[1].corners.tolist() == [[0, 2, 20, 9]]
    said = sorted(str(w.message) for w in seen)
    assert "cut off at the edge of 1 file: `JPEGImages/wide.jpg`" in said[0]
    assert "without area are left out, 2 in all, of 1 file: `JPEGImages/flat.jpg`" in said[1]


def test_annotations_that_cannot_be_read_are_named_and_counted(tmp_path):
    home = voc(tmp_path, good=xml(), bad="<annotation><object>")
    with pytest.warns(DataWarning, match=r"cannot be read of 1 file: `Annotations/bad.xml` \("):
        assert len(read_voc(home)) == 1
    with pytest.raises(InvalidData, match="cannot be read of 1 file"):
        read_voc(home, broken="raise")
    (home / "JPEGImages" / "bad.jpg").unlink()
    with pytest.warns(DataWarning, match="no image, or no annotation, for 1 file: `bad`"):
        assert len(read_voc(home)) == 1
    with pytest.raises(InvalidData, match=r"has no whole|an object has no whole `bndbox`"):
        parse_voc(xml("<object><name>a</name></object>"))


def test_a_folder_without_annotations_is_refused(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    with pytest.raises(InvalidData, match="must hold annotations in XML or text; got none"):
        read_voc(tmp_path)
    (tmp_path / "b.xml").write_text(xml())
    with pytest.warns(DataWarning), pytest.raises(InvalidData, match="of 1 none has one"):
        read_voc(tmp_path)
