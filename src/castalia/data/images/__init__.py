"""Images: in memory or in files, seen the same way, and as networks' inputs."""

from castalia.data.images.adapter import ImageAdapter
from castalia.data.images.arrays import read_arrays
from castalia.data.images.boxes import Boxes
from castalia.data.images.camvid import CAMVID_CLASSES, CAMVID_VOID, load_camvid
from castalia.data.images.coco import read_coco
from castalia.data.images.filerows import FileRows
from castalia.data.images.files import ImageFiles
from castalia.data.images.folders import read_folder, read_table_of_paths, sound
from castalia.data.images.known import available_images, load_images, read_idx
from castalia.data.images.masks import read_masks
from castalia.data.images.pictures import Images, as_images
from castalia.data.images.rows import ImageRows
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
    "load_camvid",
    "load_images",
    "parse_voc",
    "read_arrays",
    "read_coco",
    "read_folder",
    "read_idx",
    "read_masks",
    "read_table_of_paths",
    "read_voc",
    "sound",
]
