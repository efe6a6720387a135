"""Pictures: sets known by name, in files and in memory, with their labels, boxes or masks."""

from castalia.data.images.boxes import Boxes
from castalia.data.images.known import available_images, load_images, read_idx

__all__ = ["Boxes", "available_images", "load_images", "read_idx"]
