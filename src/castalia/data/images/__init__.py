"""Pictures: in memory or in files, seen the same way, and as networks' inputs."""

from castalia.data.images.adapter import ImageAdapter
from castalia.data.images.known import available_images, load_images, read_idx
from castalia.data.images.pictures import Images, as_images
from castalia.data.images.rows import ImageRows

__all__ = [
    "ImageAdapter",
    "ImageRows",
    "Images",
    "as_images",
    "available_images",
    "load_images",
    "read_idx",
]
