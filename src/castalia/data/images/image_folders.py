"""Readers of images whose labels are the names of folders or a column of a table."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np

from castalia.data.images.file_stores import Store, is_hidden, open_store
from castalia.data.images.image_collection import Images
from castalia.data.images.image_decoder import SUFFIXES
from castalia.data.images.image_files import Broken, ImageFiles, shown_names
from castalia.data.tables.table_reader import read_table
from castalia.errors import DataWarning, InvalidData
from castalia.utils.text import listing, plural

__all__ = ["decodable", "image_names", "read_folder", "read_table_of_paths"]

_PARTS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev"}


def read_folder(
    path: str | PathLike[str],
    *,
    labelled: bool = True,
    broken: Broken = "skip",
    workers: int | None = None,
) -> Images:
    """Read images in class folders: ``path/cat/1.jpg`` is labelled ``cat``.

    No image is opened. Folders inside a class folder belong to that class; files that are no
    images are left out and counted in one warning.

    Parameters
    ----------
    path
        A folder, or a zip archive of one.
    labelled
        False for images without labels, in whatever folders they are.
    broken
        ``"skip"`` or ``"raise"``; what happens to files that cannot be decoded, see `ImageFiles`.
    workers
        Threads that decode; one a core by default.

    Returns
    -------
    Images
        The images in the order of their names, with the class names as ``target``.

    Raises
    ------
    InvalidData
        If there are no images, or no class folders; the message says what was found.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = tempfile.mkdtemp()
    >>> for name in ("cat", "dog"):
    ...     os.mkdir(f"{folder}/{name}")
    ...     Image.new("L", (8, 8)).save(f"{folder}/{name}/1.png")
    >>> read_folder(folder).target.tolist()
    ['cat', 'dog']
    """
    store = open_store(path, "read_folder")
    names = image_names(store.names(), str(path), "read_folder")
    if not labelled:
        return Images(ImageFiles(names, store, broken=broken, workers=workers))
    top = _around(names)
    inner = {name: name.removeprefix(top) for name in names}
    classed = {name: rest.split("/")[0] for name, rest in inner.items() if "/" in rest}
    loose = [name for name in names if name not in classed]
    _check_classes(str(path), classed, loose, store.folders(top.rstrip("/")))
    files = ImageFiles(list(classed), store, broken=broken, workers=workers)
    return Images(files, np.array(list(classed.values())))


def _around(names: list[str]) -> str:
    """Return the one folder that all class folders are in, as in many archives, or nothing."""
    parts = [name.split("/") for name in names]
    one = len({p[0] for p in parts}) == 1 and min(map(len, parts)) > 2
    return f"{parts[0][0]}/" if one and len({p[1] for p in parts}) > 1 else ""


def _check_classes(
    path: str, classed: dict[str, str], loose: list[str], folders: list[str]
) -> None:
    """Refuse a folder without classes, and say what looks odd in one that has them."""
    classes = sorted(set(classed.values()))
    if not classes:
        raise InvalidData(
            f"read_folder: `{path}` must hold a folder for each class; got "
            f"{plural(len(loose), 'image')} and no class folder with images. Put each class "
            "into a folder of its own, or use labelled=False."
        )
    if {name.lower() for name in classes} <= _PARTS:
        raise InvalidData(
            f"read_folder: `{path}` must hold a folder for each class; got "
            f"{listing(classes, 'and')}, which are parts of a set. Read one of them, as in "
            f"`{os.path.join(path, classes[0])}`."
        )
    empty = [n for n in folders if n not in set(classes) and not is_hidden(n)]
    odd = [
        (loose, "lie beside the class folders and have no class"),
        (empty, "are folders without images"),
    ]
    for found, what in odd:
        if found:
            _warn(f"read_folder: {len(found):,} in `{path}` {what}: {shown_names(found)}.")
    if len(classes) == 1:
        _warn(f"read_folder: `{path}` has one class only, `{classes[0]}`: nothing to tell apart.")


def image_names(names: Iterable[str], where: str, owner: str) -> list[str]:
    """Return the names that end as images' do; the others are counted in one warning."""
    seen = [name for name in names if not is_hidden(name)]
    kept = [name for name in seen if name.lower().endswith(SUFFIXES)]
    if not kept:
        found = plural(len(seen), "other file") if seen else "no file"
        names_ = f": {shown_names(seen)}" if seen else ""
        raise InvalidData(f"{owner}: `{where}` must hold images; got {found}{names_}.")
    if len(kept) < len(seen):
        others = sorted(set(seen) - set(kept))
        count = plural(len(others), "file")
        verb = "is no image" if len(others) == 1 else "are no images"
        _warn(f"{owner}: {count} in `{where}` {verb}, left out: {shown_names(others)}.")
    return kept


def read_table_of_paths(
    table: Any,
    path: str,
    target: str | None = None,
    *,
    root: str | PathLike[str] | None = None,
    broken: Broken = "skip",
    workers: int | None = None,
) -> Images:
    """Read images whose paths are a column of a table.

    Parameters
    ----------
    table
        A CSV file or whatever else ``castalia.data.read`` takes.
    path, target
        Names of the columns with the paths and with what is to be predicted.
    root
        Where relative paths start: a folder or a zip archive; the table's own folder by default.
    broken
        ``"skip"`` or ``"raise"``; also decides about files that are not there.
    workers
        Threads that decode; one a core by default.
    """
    data = read_table(table)
    columns = [path] if target is None else [path, target]
    chosen = data.select(columns)
    names = [str(name).replace(os.sep, "/") for name in chosen.column(path)]
    labels = None if target is None else chosen.with_target(target).labels()
    beside = os.path.dirname(table) if isinstance(table, (str, PathLike)) else "."
    store = open_store(root if root is not None else beside or ".", "read_table_of_paths")
    kept = _there(store, names, broken, data.source)
    files = ImageFiles(names, store, broken=broken, workers=workers)
    return Images(files, labels).take(kept)


def _there(store: Store, names: Sequence[str], broken: Broken, source: str) -> np.ndarray:
    """Return the rows whose file exists; the others are named and counted."""
    missing = [row for row, name in enumerate(names) if not _exists(store, name)]
    if not missing:
        return np.arange(len(names))
    text = shown_names([names[row] for row in missing])
    start = (
        f"read_table_of_paths: {len(missing):,} of {len(names):,} paths of {source} are not there"
    )
    if broken == "raise" or len(missing) == len(names):
        raise InvalidData(f"{start}, seen from `{store}`: {text}. Set `root` to where they start.")
    _warn(f"{start} and were left out: {text}.")
    return np.setdiff1d(np.arange(len(names)), missing)


def _exists(store: Store, name: str) -> bool:
    try:
        store.size(name)
    except (OSError, KeyError):
        return False
    return True


def decodable(images: Images) -> Images:
    """Return the images whose files can be decoded, with their targets.

    Broken files are named and counted in one warning, or refused, as ``broken`` of the reader says.
    Every file is decoded once, at a small size. Images in memory are returned as they are.
    """
    if not isinstance(images.source, ImageFiles):
        return images
    kept = images.source.whole()
    return images if len(kept) == len(images) else images.take(kept)


def _warn(text: str) -> None:
    warnings.warn(text, DataWarning, stacklevel=3)
