"""Readers of images that are arrays in a file: NPZ and IDX."""

from __future__ import annotations

import os
import zipfile
from os import PathLike

import numpy as np

from castalia.data.array_files import DAMAGE, read_array
from castalia.data.images.image_collection import Images, as_images
from castalia.data.images.image_datasets import read_idx
from castalia.errors import InvalidData, ShapeMismatch
from castalia.utils.text import listing

__all__ = ["read_arrays"]

_IMAGES, _LABELS = ("images", "x", "data"), ("labels", "y", "target", "targets")


def read_arrays(
    path: str | PathLike[str],
    labels: str | PathLike[str] | None = None,
    *,
    part: str | None = None,
) -> Images:
    """Read images and labels from an NPZ file, or from IDX files.

    Parameters
    ----------
    path
        An ``.npz`` file with an array ``images`` (or ``x``) and perhaps ``labels`` (or ``y``), or
        an IDX file, gzipped or not.
    labels
        The IDX file of the labels; by default the one named alike, ``labels-idx1`` for
        ``images-idx3``, where there is one.
    part
        Which part of an NPZ file that has several: ``"train"`` finds ``x_train`` and
        ``train_images``.

    Examples
    --------
    >>> import tempfile
    >>> file = tempfile.mkdtemp() + "/some.npz"
    >>> np.savez(file, x=np.zeros((2, 8, 8), np.uint8), y=[3, 1])
    >>> read_arrays(file).target.tolist()
    [3, 1]
    """
    place = os.fspath(path)
    if not os.path.isfile(place):
        raise InvalidData(f"read_arrays: `{place}` must be a file; there is none.")
    if place.lower().endswith(".npz"):
        x, y = _npz(place, part)
    else:
        guess = place.replace("images-idx3", "labels-idx1")
        other = guess if labels is None else os.fspath(labels)
        named = labels is not None or (other != place and os.path.isfile(other))
        x, y = read_idx(place), read_idx(other) if named else None
    images = as_images(x, "read_arrays")
    if y is not None and len(y) != len(images):
        raise ShapeMismatch(
            f"read_arrays: `{place}` must have one label an image; got {len(y)} labels for "
            f"{len(images)} images."
        )
    return Images(images.source, y)


def _npz(path: str, part: str | None) -> tuple[np.ndarray, np.ndarray | None]:
    try:
        with zipfile.ZipFile(path) as file:
            x = _find(file, _IMAGES, part)
            y = _find(file, _LABELS, part)
            if x is not None:
                return x, y if y is None or y.ndim != 2 or y.shape[1] != 1 else y[:, 0]
            found = listing([name.removesuffix(".npy") for name in file.namelist()], "and")
    except DAMAGE as error:
        raise InvalidData(
            f"read_arrays: `{path}` must be a whole NPZ file of plain arrays; {error}."
        ) from error
    wanted = listing(_IMAGES if part is None else [f"x_{part}", f"{part}_images"])
    raise InvalidData(f"read_arrays: `{path}` must have an array {wanted}; got {found}.")


def _find(file: zipfile.ZipFile, words: tuple[str, ...], part: str | None) -> np.ndarray | None:
    """Return the first array with one of these names, whatever their case."""
    names = {name.removesuffix(".npy").lower(): name for name in file.namelist()}
    for word in words:
        keys = [word] if part is None else [f"{word}_{part}", f"{part}_{word}"]
        for key in keys:
            if key.lower() in names:
                return read_array(file, file.getinfo(names[key.lower()]))
    return None
