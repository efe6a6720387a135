"""Reader of PASCAL VOC annotations: XML, and the plain text of version 1.00.

Coordinates are kept as they stand in the files: (xmin, ymin) - (xmax, ymax), numbers of pixels.
Reference: 2010, Everingham, Van Gool, Williams, Winn, Zisserman, The PASCAL visual object classes
challenge, doi 10.1007/s11263-009-0275-4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import PathLike
from os import path as paths
from xml.etree import ElementTree

from castalia.data.images.box_checks import labelled_boxes, left_out, marked_images
from castalia.data.images.file_stores import Store, is_hidden, open_store
from castalia.data.images.image_boxes import Boxes
from castalia.data.images.image_collection import Images
from castalia.data.images.image_decoder import SUFFIXES
from castalia.data.images.image_files import Broken
from castalia.errors import InvalidData
from castalia.utils.text import did_you_mean, listing

__all__ = ["Annotation", "parse_voc", "read_voc"]

_MARK = "# PASCAL Annotation Version"
_TEXT = {
    "image": re.compile(r'^Image filename\s*:\s*"(.*)"', re.M),
    "size": re.compile(r"^Image size \(X x Y x C\)\s*:\s*(\d+) x (\d+)", re.M),
    "box": re.compile(
        r'^Bounding box for object \d+ "(.*?)" \(Xmin, Ymin\) - \(Xmax, Ymax\)\s*:\s*'
        r"\((-?[\d.]+), (-?[\d.]+)\) - \((-?[\d.]+), (-?[\d.]+)\)",
        re.M,
    ),
}


@dataclass(frozen=True)
class Annotation:
    """What one annotation file says.

    Attributes
    ----------
    image
        Name of the image's file, which is often out of date.
    size
        Height and width, or None where it is not stated.
    boxes
        The marked things.
    """

    image: str
    size: tuple[int, int] | None
    boxes: Boxes


def parse_voc(text: str) -> Annotation:
    """Read an annotation, XML or the plain text of version 1.00.

    Examples
    --------
    >>> found = parse_voc('''# PASCAL Annotation Version 1.00
    ... Image filename : "a.png"
    ... Image size (X x Y x C) : 480 x 360 x 3
    ... Bounding box for object 1 "car" (Xmin, Ymin) - (Xmax, Ymax) : (10, 20) - (90, 60)
    ... ''')
    >>> found.size, found.boxes.labels.tolist(), found.boxes.corners.tolist()
    ((360, 480), ['car'], [[10.0, 20.0, 90.0, 60.0]])
    """
    if text.lstrip("\ufeff \n\r").startswith(_MARK):
        return _parse_text(text)
    try:
        return _parse_xml(ElementTree.fromstring(text))
    except (ElementTree.ParseError, ValueError, TypeError) as error:
        raise InvalidData(
            f"parse_voc: an annotation must be VOC's XML or its text 1.00; {error}."
        ) from error


def _parse_text(text: str) -> Annotation:
    image, size = _TEXT["image"].search(text), _TEXT["size"].search(text)
    found = _TEXT["box"].findall(text)
    return Annotation(
        image[1] if image else "",
        (int(size[2]), int(size[1])) if size else None,
        labelled_boxes([label for label, *_ in found], [[*map(float, box)] for _, *box in found]),
    )


def _parse_xml(root: ElementTree.Element) -> Annotation:
    objects = root.findall("object")
    height, width = (_number(root.find("size"), side) for side in ("height", "width"))
    # Children of an object only: its parts (head, hand) have boxes of their own further inside.
    corners = [
        [_number(thing.find("bndbox"), side) for side in ("xmin", "ymin", "xmax", "ymax")]
        for thing in objects
    ]
    if any(value is None for box in corners for value in box):
        raise ValueError("an object has no whole `bndbox`")
    boxes = labelled_boxes(
        [(thing.findtext("name") or "").strip() for thing in objects],
        corners,
        difficult=[(thing.findtext("difficult") or "0").strip() == "1" for thing in objects],
    )
    size = (int(height), int(width)) if height and width else None
    return Annotation((root.findtext("filename") or "").strip(), size, boxes)


def _number(node: ElementTree.Element | None, name: str) -> float | None:
    text = None if node is None else node.findtext(name)
    return None if text is None else float(text)


def read_voc(
    path: str | PathLike[str],
    part: str | None = None,
    *,
    broken: Broken = "skip",
    workers: int | None = None,
) -> Images:
    """Read images and their boxes from a folder in the manner of PASCAL VOC.

    Annotations and images belong together by their names without ending, in whatever folders
    they are. Boxes are cut off at the edges of their image, those without area left out; both
    are counted in warnings.

    Parameters
    ----------
    path
        A folder, or a zip archive of one.
    part
        Name of a list in ``ImageSets/Main``, such as ``"train"``; None reads every annotation.
    broken
        ``"skip"`` or ``"raise"``; what happens to annotations that cannot be read or have no
        image, and to images that cannot be decoded.
    workers
        Threads that decode; one a core by default.

    Returns
    -------
    Images
        Images whose ``target`` is a list of `Boxes`.
    """
    store = open_store(path, "read_voc")
    names = [name for name in store.names() if not is_hidden(name)]
    files = {_stem(name): name for name in names if name.lower().endswith(SUFFIXES)}
    notes = {_stem(name): name for name in names if _may_be_annotation(name)}
    wanted = sorted(notes) if part is None else _listed(store, names, part)
    if not notes:
        raise InvalidData(f"read_voc: `{path}` must hold annotations in XML or text; got none.")
    missing = [stem for stem in wanted if stem not in files or stem not in notes]
    if missing:
        left_out("read_voc: no image, or no annotation, for", missing, broken=broken)
    pairs = {files[s]: notes[s] for s in wanted if s in files and s in notes}
    if not pairs:
        raise InvalidData(
            f"read_voc: `{path}` must hold an image for each annotation; of {len(wanted):,} none "
            "has one of the same name."
        )
    found = _annotations(store, pairs, broken)
    return marked_images(
        {name: note.boxes for name, note in found.items()},
        {name: note.size for name, note in found.items() if note.size is not None},
        store,
        "read_voc",
        broken=broken,
        workers=workers,
    )


def _stem(name: str) -> str:
    return paths.splitext(paths.basename(name))[0]


def _may_be_annotation(name: str) -> bool:
    """Whether a file may be one: XML anywhere, text in a folder of annotations."""
    lower = name.lower()
    return lower.endswith(".xml") or (lower.endswith(".txt") and "annotation" in lower)


def _annotations(store: Store, pairs: dict[str, str], broken: Broken) -> dict[str, Annotation]:
    """Read annotations by image; those that cannot be read are named and counted."""
    found, faults = {}, {}
    for image, name in pairs.items():
        try:
            with store.open(name) as file:
                found[image] = parse_voc(file.read().decode("utf-8", "replace"))
        except InvalidData as error:
            faults[name] = str(error).partition("; ")[2].rstrip(".")
    if faults:
        left_out("read_voc: annotations cannot be read of", faults, broken=broken)
    if not found:
        raise InvalidData("read_voc: annotations must be readable; none is.")
    return found


def _listed(store: Store, names: list[str], part: str) -> list[str]:
    """Return the names of a part, from its list."""
    lists = {_stem(n): n for n in names if "ImageSets/Main/" in n and n.endswith(".txt")}
    if part not in lists:
        raise InvalidData(
            f"read_voc: `part` must be {listing(sorted(lists))}, the lists in ImageSets/Main of "
            f"`{store}`; got {part!r}.{did_you_mean(part, lists)}"
        )
    with store.open(lists[part]) as file:
        lines = file.read().decode("utf-8", "replace").splitlines()
    return [line.split()[0] for line in lines if line.strip()]
