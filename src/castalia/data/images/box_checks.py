"""What readers of boxes share: boxes that cannot be right are counted, cut off or left out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from castalia.data.images.file_stores import Store
from castalia.data.images.image_boxes import Boxes
from castalia.data.images.image_collection import Images
from castalia.data.images.image_files import Broken, ImageFiles, shown_names
from castalia.errors import DataWarning, InvalidData
from castalia.utils.text import plural

__all__ = ["labelled_boxes", "left_out", "marked_images", "possible"]


def marked_images(
    marked: Mapping[str, Boxes],
    sizes: Mapping[str, tuple[int, int]],
    store: Store,
    owner: str,
    *,
    broken: Broken,
    workers: int | None,
) -> Images:
    """Return images with their boxes, clipped to the images.

    Parameters
    ----------
    marked
        Boxes by the name of the image.
    sizes
        Height and width that the annotation states; the header of a file is read where it does not.
    store
        Where the images are.
    owner
        The reader, for messages.
    broken, workers
        As of `ImageFiles`.
    """
    files = ImageFiles(list(marked), store, broken=broken, workers=workers)
    unstated = [row for row, name in enumerate(files.names) if name not in sizes]
    read = files.take(np.array(unstated, dtype=np.int64)).sizes()
    known = {**sizes, **{files.names[row]: size for row, size in zip(unstated, read, strict=True)}}
    return Images(files, possible(marked, known, owner))


def labelled_boxes(
    labels: Sequence[str], corners: Sequence[Sequence[Any]], difficult: Sequence[bool] | None = None
) -> Boxes:
    """Return boxes from lists; without boxes, labels are still text."""
    hard = None if difficult is None else np.array(difficult, dtype=np.bool_)
    return Boxes(np.array(labels, dtype=np.str_), np.array(corners, dtype=np.float32), hard)


def possible(
    marked: Mapping[str, Boxes], sizes: Mapping[str, Sequence[int]], owner: str
) -> list[Boxes]:
    """Cut boxes off at the edges of their image and leave out those without area.

    Parameters
    ----------
    marked, sizes
        Boxes, and height and width, by the name of the image.
    owner
        The reader, for the warning.
    """
    found, cut = [], []
    flat: dict[str, int] = {}
    for name, boxes in marked.items():
        inside = boxes.clipped(*sizes[name])
        if n := int((inside.areas == 0).sum()):
            flat[name] = n
        elif (inside.corners != boxes.corners).any():
            cut.append(name)
        found.append(inside.take(inside.areas > 0))
    if flat:
        total = sum(flat.values())
        left_out(f"{owner}: boxes without area are left out, {total:,} in all, of", list(flat))
    if cut:
        left_out(f"{owner}: boxes are cut off at the edge of", cut)
    return found


def left_out(
    text: str,
    names: Sequence[str] | Mapping[str, str],
    noun: str = "file",
    *,
    broken: Broken = "skip",
) -> None:
    """Say once what became of which files; refuse them where broken files are refused."""
    shown = shown_names(names if isinstance(names, dict) else list(names))
    message = f"{text} {plural(len(names), noun)}: {shown}."
    if broken == "raise":
        raise InvalidData(message)
    warnings.warn(message, DataWarning, stacklevel=4)
