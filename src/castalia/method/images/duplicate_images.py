"""Images that are there twice, found by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from castalia.data.images import ImageFiles, Images
from castalia.data.images.image_files import decoders, shown_names
from castalia.method.duplicate_rows import find_copies
from castalia.method.images.fit_images import names_of
from castalia.utils.text import plural

__all__ = ["contents", "without_copies"]

BLOCK = 1024  # images in memory at a time


def without_copies(images: Images) -> tuple[Images, list[str]]:
    """Return each content once, and remarks on what was left out."""
    found = find_copies(contents(images), np.asarray(images.target))
    if len(found.kept) == len(images):
        return images, []
    names, notes = names_of(images), []
    if found.copied.any():
        notes.append(
            f"{plural(int(found.copied.sum()), 'image')} left out as exact copies of others, so "
            "that none is both trained on and tested: "
            f"{shown_names(map(str, names[found.copied]))}."
        )
    if found.disputed.any():
        notes.append(
            f"{plural(int(found.disputed.sum()), 'image')} left out, for the same image is under "
            f"several classes: {shown_names(map(str, names[found.disputed]))}."
        )
    return images.take(found.kept), notes


def contents(images: Images) -> np.ndarray:
    """Return a mark of each image's content, (N,): equal marks, equal images.

    Of files only those that are as long as another one are read.
    """
    source = images.source
    if not isinstance(source, ImageFiles):
        return np.array(list(_pixel_marks(images)))
    lengths = np.array([source.store.size(name) for name in source.names])
    _, place, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    marks = np.array([str(row) for row in range(len(source))], dtype="U40")

    def mark(row: int) -> str:
        with source.store.open(source.names[row]) as file:
            return _digest(file.read())

    doubtful = np.flatnonzero(counts[place] > 1)
    marks[doubtful] = list(decoders(source.workers).map(mark, doubtful.tolist()))
    return marks


def _pixel_marks(images: Images) -> Iterator[str]:
    sizes, rows = images.sizes, np.arange(len(images))
    alike = bool((sizes == sizes[0]).all())
    for block in np.array_split(rows, max(1, len(rows) // (BLOCK if alike else 1))):
        size = int(sizes[block[0], 0]), int(sizes[block[0], 1])
        for image in images.pixels(block, size, images.channels).numpy():
            yield _digest(f"{size}".encode() + np.ascontiguousarray(image).tobytes())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=20).hexdigest()
