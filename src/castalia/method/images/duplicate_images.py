"""Images that are there twice: one on each side of a split would be tested from memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from castalia.data.images import ImageFiles, Images
from castalia.data.images.image_files import decoders, shown_names
from castalia.method.images.fit_images import names_of
from castalia.utils.text import plural

__all__ = ["contents", "without_copies"]

BLOCK = 1024  # images in memory at a time


def without_copies(images: Images) -> tuple[Images, list[str]]:
    """Return each content once, and remarks on what was left out.

    A content that is there under several labels is left out altogether: one of them is wrong, and
    nobody knows which.

    Parameters
    ----------
    images
        Images with labels.
    """
    content = contents(images)
    kinds, first, place = np.unique(content, return_index=True, return_inverse=True)
    if len(kinds) == len(images):
        return images, []
    labels = np.unique(np.asarray(images.target), return_inverse=True)[1]
    low, high = np.full(len(kinds), len(images)), np.full(len(kinds), -1)
    np.minimum.at(low, place, labels)
    np.maximum.at(high, place, labels)
    disputed = (low != high)[place]
    kept = np.zeros(len(images), dtype=bool)
    kept[first] = True
    copied = ~kept & ~disputed
    return images.take(np.flatnonzero(kept & ~disputed)), _words(images, copied, disputed)


def _words(images: Images, copied: np.ndarray, disputed: np.ndarray) -> list[str]:
    names, found = names_of(images), []
    if copied.any():
        found.append(
            f"{plural(int(copied.sum()), 'image')} left out as exact copies of others, so that "
            f"none is both trained on and tested: {shown_names(map(str, names[copied]))}."
        )
    if disputed.any():
        found.append(
            f"{plural(int(disputed.sum()), 'image')} left out, for the same image is under "
            f"several classes: {shown_names(map(str, names[disputed]))}."
        )
    return found


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
