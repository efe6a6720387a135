"""Images: in memory or in files, seen the same way, and as networks' inputs."""

import warnings
from typing import Any

from castalia.data.images.camvid import CAMVID_CLASSES, CAMVID_VOID, load_camvid
from castalia.data.images.coco import read_coco
from castalia.data.images.image_adapter import ImageAdapter
from castalia.data.images.image_arrays import read_arrays
from castalia.data.images.image_boxes import Boxes
from castalia.data.images.image_collection import Images, as_images
from castalia.data.images.image_datasets import (
    available_images,
    load_images,
    read_cifar,
    read_idx,
)
from castalia.data.images.image_file_rows import FileRows
from castalia.data.images.image_files import ImageFiles
from castalia.data.images.image_folders import decodable, read_folder, read_table_of_paths
from castalia.data.images.image_rows import ImageRows
from castalia.data.images.mask_reader import read_masks
from castalia.data.images.voc import parse_voc, read_voc

__all__ = [
    "CAMVID_CLASSES",
    "CAMVID_VOID",
    "Boxes",
    "FileRows",
    "ImageAdapter",
    "ImageFiles",
    "ImageRows",
    "Images",
    "as_images",
    "available_images",
    "decodable",
    "load_camvid",
    "load_images",
    "parse_voc",
    "read_arrays",
    "read_cifar",
    "read_coco",
    "read_folder",
    "read_idx",
    "read_masks",
    "read_table_of_paths",
    "read_voc",
]


def __getattr__(name: str) -> Any:
    if name == "sound":
        warnings.warn(
            "castalia.data.images.sound is now called decodable; the old name goes with the next "
            "version.",
            FutureWarning,
            stacklevel=2,
        )
        return decodable
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
