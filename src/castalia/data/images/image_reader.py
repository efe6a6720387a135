"""One door for images: what a folder or file holds decides how it is read."""

from __future__ import annotations

import os
from os import PathLike

from castalia.data.images.file_stores import open_store
from castalia.data.images.image_arrays import read_arrays
from castalia.data.images.image_collection import Images
from castalia.data.images.image_folders import read_folder
from castalia.data.images.mask_reader import read_masks
from castalia.data.images.voc import read_voc

__all__ = ["read_images"]

_MASKS = ("masks", "labels", "annotations")


def read_images(path: str | PathLike[str]) -> Images:
    """Read images with what is known of them.

    Parameters
    ----------
    path
        An ``.npz`` file; or a folder or zip archive with ``Annotations`` (boxes of PASCAL VOC),
        with ``images`` and ``masks``, or with one folder a class.
    """
    place = os.fspath(path)
    if place.lower().endswith(".npz"):
        return read_arrays(place)
    folders = {name.lower(): name for name in open_store(place).folders()}
    if {"annotations", "jpegimages"} <= set(folders):
        return read_voc(place)
    masks = [folders[name] for name in _MASKS if name in folders]
    if "images" in folders and masks:
        return read_masks(os.path.join(place, folders["images"]), os.path.join(place, masks[0]))
    return read_folder(place)
