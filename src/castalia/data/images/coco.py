"""Reader of boxes in the JSON of COCO.

Reference: 2014, Lin et al., Microsoft COCO: common objects in context, arXiv 1405.0312.
"""

from __future__ import annotations

import mmap
import os
import re
from collections import defaultdict
from os import PathLike
from typing import Any

from castalia.data.images.box_checks import labelled_boxes, left_out, marked_images
from castalia.data.images.file_stores import Store, open_store
from castalia.data.images.image_boxes import Boxes
from castalia.data.images.image_collection import Images
from castalia.data.images.image_files import Broken
from castalia.errors import InvalidData
from castalia.utils.regular_files import parse_json, read_regular
from castalia.utils.text import shorten

__all__ = ["is_coco", "read_coco"]

_LISTS = tuple(rb'"%s"\s*:\s*\[' % name for name in (b"images", b"annotations", b"categories"))


def is_coco(path: str | PathLike[str]) -> bool:
    """Whether a JSON file has COCO's three lists; it is searched, not parsed."""
    if not os.fspath(path).lower().endswith(".json") or not os.path.isfile(path):
        return False
    if not os.path.getsize(path):
        return False
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return all(re.search(pattern, text) for pattern in _LISTS)


def read_coco(
    annotations: str | PathLike[str],
    folder: str | PathLike[str] | None = None,
    *,
    broken: Broken = "skip",
    workers: int | None = None,
) -> Images:
    """Read images and their boxes as COCO stores them.

    COCO writes a box as (x, y, width, height); here it becomes two corners. Crowds, boxes around
    many things at once, are marked as difficult. Images without boxes stay: they show what is
    nothing.

    Parameters
    ----------
    annotations
        The JSON file.
    folder
        The folder or zip archive of the images; the folder of the JSON file by default.
    broken
        ``"skip"`` or ``"raise"``; what happens to annotations of unknown images or classes, and
        to images that are not there or cannot be decoded.
    workers
        Threads that decode; one a core by default.

    Returns
    -------
    Images
        Images in the order of the file, whose ``target`` is a list of `Boxes` with class names.
    """
    place = os.fspath(annotations)
    try:
        return _read(place, _load(place), folder, broken, workers)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, InvalidData):
            raise
        raise InvalidData(
            f"read_coco: `{place}` must have lists of objects with the names and numbers that COCO "
            f"gives them; got one without ({type(error).__name__}: {shorten(str(error), 60)})."
        ) from error


def _read(
    place: str,
    data: dict[str, Any],
    folder: str | PathLike[str] | None,
    broken: Broken,
    workers: int | None,
) -> Images:
    store = open_store(folder if folder is not None else os.path.dirname(place) or ".", "read_coco")
    classes = {entry["id"]: str(entry["name"]) for entry in data["categories"]}
    images = _there(store, {entry["id"]: entry for entry in data["images"]}, broken)
    of_image = defaultdict(list)
    lost = []
    for mark in data["annotations"]:
        known = mark.get("category_id") in classes and len(mark.get("bbox", ())) == 4
        if known and mark.get("image_id") in images:
            of_image[mark["image_id"]].append(mark)
        elif not known:
            lost.append(str(mark.get("id")))
    if lost:
        left_out("read_coco: unknown class, or no box, in", lost, "annotation", broken=broken)
    marked = {p["file_name"]: _boxes(of_image[key], classes) for key, p in images.items()}
    sizes = {
        p["file_name"]: (int(p["height"]), int(p["width"]))
        for p in images.values()
        if p.get("height") and p.get("width")
    }
    return marked_images(marked, sizes, store, "read_coco", broken=broken, workers=workers)


def _load(path: str) -> dict[str, Any]:
    try:
        data = parse_json(read_regular(path))
    except (OSError, ValueError) as error:
        raise InvalidData(f"read_coco: `{path}` must be a JSON file; {error}.") from error
    keys = ("images", "annotations", "categories")
    lacking = [key for key in keys if not isinstance(data, dict) or key not in data]
    if lacking:
        raise InvalidData(
            f"read_coco: `{path}` must have lists `images`, `annotations` and `categories`; it has "
            f"no `{lacking[0]}`."
        )
    return dict(data)


def _there(store: Store, entries: dict[Any, Any], broken: Broken) -> dict[Any, Any]:
    """Return the images whose files exist."""
    names = set(store.names())
    found = {key: entry for key, entry in entries.items() if entry["file_name"] in names}
    missing = [p["file_name"] for key, p in entries.items() if key not in found]
    if not found:
        raise InvalidData(
            f"read_coco: the images must be in `{store}`; none of {len(entries):,} is, such as "
            f"`{missing[0] if missing else 'none listed'}`. Set `folder` to where they are."
        )
    if missing:
        left_out("read_coco: the folder lacks", missing, broken=broken)
    return found


def _boxes(marks: list[dict[str, Any]], classes: dict[Any, str]) -> Boxes:
    corners = [(x, y, x + w, y + h) for x, y, w, h in (mark["bbox"] for mark in marks)]
    crowds = [bool(mark.get("iscrowd")) for mark in marks]
    return labelled_boxes([classes[mark["category_id"]] for mark in marks], corners, crowds)
