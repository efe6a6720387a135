"""Images with and without labels, from whatever a person names; remarks instead of warnings."""

from __future__ import annotations

import csv
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from castalia.data.broken_files import Broken
from castalia.data.data_reader import holds_images as archive_of_images
from castalia.data.data_reader import read
from castalia.data.images import (
    ImageFiles,
    Images,
    as_images,
    available_images,
    decodable,
    load_images,
    read_folder,
    read_table_of_paths,
)
from castalia.data.images.file_stores import open_store
from castalia.data.images.image_decoder import SUFFIXES
from castalia.data.images.image_folders import image_names
from castalia.data.images.image_reader import read_images
from castalia.data.packed_files import bare_name
from castalia.data.shards import hold_images, shard_files
from castalia.data.tables.text_file import sample_lines
from castalia.errors import CastaliaError, CastaliaWarning, InvalidData

__all__ = ["holds_images", "names_of", "read_labelled", "read_unlabelled"]

LABEL = "class"  # what the target of folders and arrays is called
SAMPLED = 20  # rows of a table that say whether a column holds paths
_TABLES = (".csv", ".tsv", ".txt")
_ARCHIVES = (".zip", ".npz")


def holds_images(data: Any) -> bool:
    """Whether something is, or names, images rather than a table.

    Examples
    --------
    >>> holds_images("pets.zip"), holds_images("titanic.csv"), holds_images("mnist")
    (True, False, True)
    """
    if isinstance(data, Images):
        return True
    if (shards := shard_files(data)) is not None:
        return hold_images(shards)
    if not isinstance(data, str | os.PathLike):
        return False
    path = Path(data)
    ending = path.suffix.lower()
    if path.is_dir() or (ending in _ARCHIVES and archive_of_images(path)) or ending in SUFFIXES:
        return True
    return _known(data) if not path.is_file() else _path_column(path) is not None


def read_labelled(
    data: Any, target: str | None, skip_broken: bool = False
) -> tuple[Images, str, list[str]]:
    """Read images with a label each; return them, what the label is called, and remarks.

    Files that cannot be decoded are left out and reported.

    Parameters
    ----------
    data
        A folder of class folders, a zip or NPZ file, tar shards, a table with a column of paths, a
        known name, or ``Images``.
    target
        The column of the labels, for a table; what is one in tar shards.
    skip_broken
        Whether damaged shards are left out.
    """
    with _remarks() as notes:
        images, name = _labelled(data, target, skip_broken)
        if not isinstance(images.target, np.ndarray) or images.target.ndim != 1:
            got = "none" if images.target is None else "boxes or masks"
            raise InvalidData(
                f"fit: images of `{data}` must have one label each; got {got}. Put each class "
                "into a folder of its own, or name a table of paths with --target."
            )
        return decodable(images), name, notes


def _labelled(data: Any, target: str | None, skip_broken: bool) -> tuple[Images, str]:
    if isinstance(data, Images):
        return data, target or LABEL
    if shard_files(data) is not None:
        broken: Broken = "skip" if skip_broken else "raise"
        return read(data, target=target, broken=broken), target or LABEL
    if _known(data):
        images, labels = load_images(str(data))
        return Images(as_images(images).source, labels), LABEL
    path = Path(data)
    if path.name.lower().endswith(SUFFIXES) and not path.is_dir():
        raise InvalidData(
            f"fit: `{path}` must be a folder with a folder of images for each class; got one image."
        )
    column = _path_column(path)
    if column is None:
        return read_images(path), LABEL
    if target is None:
        raise InvalidData(
            f"fit: `{path}` is a table of images, whose paths are in `{column}`; name the column "
            "of their labels with --target."
        )
    return read_table_of_paths(path, column, target), target


def read_unlabelled(data: Sequence[Any]) -> tuple[Images, list[str]]:
    """Read images to be predicted; return them and remarks.

    Parameters
    ----------
    data
        Folders, zip or NPZ files, tables of paths and images; several only of folders and
        images.
    """
    with _remarks() as notes:
        return decodable(_one(data[0]) if len(data) == 1 else _several(data)).features(), notes


def _one(data: Any) -> Images:
    if isinstance(data, Images):
        return data
    if shard_files(data) is not None:
        return read(data)
    if not isinstance(data, str | os.PathLike):
        return as_images(data, "predict")
    path = Path(data)
    ending = path.suffix.lower()
    if path.is_dir():
        return _several([path])
    if ending == ".zip":
        return read_folder(path, labelled=False)
    if ending == ".npz":
        return read_images(path)
    column = _path_column(path)
    return _several([path]) if column is None else read_table_of_paths(path, column)


def _several(paths: Sequence[Any]) -> Images:
    """Return the images of folders, and files, by their paths."""
    names: list[str] = []
    for path in map(os.fspath, paths):
        if os.path.isdir(path):
            inside = image_names(open_store(path, "predict").names(), path, "predict")
            names += [os.path.join(path, name) for name in inside]
        elif os.path.isfile(path):
            names.append(path)
        else:
            raise InvalidData(f"predict: `{path}` must be an image or a folder; there is none.")
    return Images(ImageFiles(names))


def names_of(images: Images) -> np.ndarray:
    """Return the path of each image; its number where it is none of a file."""
    source = images.source
    if isinstance(source, ImageFiles):
        return np.array(source.names, dtype=object)
    return np.arange(len(images))


def _known(data: Any) -> bool:
    return isinstance(data, str) and data in available_images() and not os.path.exists(data)


def _path_column(path: Path) -> str | None:
    """Return the column of a text file whose values are images that are there, or None."""
    if not bare_name(path).endswith(_TABLES) or not path.is_file():
        return None
    try:
        lines = sample_lines(path, SAMPLED + 1)
    except CastaliaError:  # reported when the table is read
        return None
    delimiter = max(",\t;|", key=lines[0].count) if lines else ","
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    for i, name in enumerate(rows[0] if rows else []):
        values = [row[i] for row in rows[1:] if len(row) > i]
        if values and all(value.lower().endswith(SUFFIXES) for value in values):
            return name
    return None


@contextmanager
def _remarks() -> Iterator[list[str]]:
    """Collect the library's warnings as sentences, without the name of who warns."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", CastaliaWarning)
        yield notes
        notes += [_sentence(str(w.message)) for w in seen if _ours(w)]


def _ours(warning: warnings.WarningMessage) -> bool:
    return issubclass(warning.category, CastaliaWarning)


def _sentence(words: str) -> str:
    return re.sub(r"^\w+: ", "", words)
