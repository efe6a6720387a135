"""Reader of masks: images of the same size whose values are the classes of the pixels."""

from __future__ import annotations

from os import PathLike
from os import path as paths
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from castalia.data.images.box_checks import left_out
from castalia.data.images.file_stores import Archive, Store, open_store
from castalia.data.images.image_collection import Images
from castalia.data.images.image_decoder import decode_labels
from castalia.data.images.image_files import Broken, ImageFiles, decoders, shown_names
from castalia.data.images.image_folders import image_names
from castalia.errors import InvalidData

__all__ = ["read_masks"]


def read_masks(
    images: str | PathLike[str],
    masks: str | PathLike[str],
    *,
    resize: bool = False,
    broken: Broken = "skip",
    workers: int | None = None,
) -> Images:
    """Read images and a mask for each, matched by their names without ending.

    The values of a mask are its classes, as they are: the numbers of a palette, or grey values.

    Parameters
    ----------
    images, masks
        Folders, or folders inside zip archives (``"camvid.zip/images/train"``).
    resize
        True brings masks of another size to the size of their image, by the nearest pixel; False
        refuses them.
    broken
        ``"skip"`` or ``"raise"``; what happens to images without a mask, masks without an image
        and masks that cannot be decoded.
    workers
        Threads that decode; one a core by default.

    Returns
    -------
    Images
        Images whose ``target`` is the masks: one array (N, H, W) of integers where all have one
        size, otherwise a list of arrays (H, W). They are held in memory.
    """
    (store, under), (other, below) = _place(images), _place(masks)
    named = _by_stem(image_names(store.names(under), str(images), "read_masks"), under)
    marks = _by_stem(image_names(other.names(below), str(masks), "read_masks"), below)
    both = sorted(set(named) & set(marks))
    if not both:
        raise InvalidData(
            f"read_masks: `{masks}` must hold a mask for each image; of {len(marks):,} files "
            f"none is named as one of the {len(named):,} images."
        )
    alone = sorted(set(named) ^ set(marks))
    if alone:
        left_out("read_masks: no image, or no mask, for", alone, broken=broken)
    files = ImageFiles([named[s] for s in both], store, broken=broken, workers=workers)
    found = _decode(other, [marks[s] for s in both], workers, broken)
    files = files.take(np.array(sorted(found), dtype=np.int64))
    target = _fitting(files, [found[row] for row in sorted(found)], resize)
    same = len({mask.shape for mask in target}) == 1
    return Images(files, np.stack(target) if same else target)


def _place(path: str | PathLike[str]) -> tuple[Store, str]:
    """Split a path at a zip archive in it."""
    place = str(path).replace("\\", "/")
    outer, dot, inner = place.partition(".zip/")
    if dot and not paths.isdir(place):
        archive = open_store(f"{outer}.zip", "read_masks")
        inner = inner.strip("/")
        if isinstance(archive, Archive) and archive.names(inner):
            return archive, inner
        raise InvalidData(f"read_masks: `{outer}.zip` must have a folder `{inner}`; it has none.")
    return open_store(path, "read_masks"), ""


def _by_stem(names: list[str], under: str) -> dict[str, str]:
    """Return names by their path inside the folder, without ending."""
    start = f"{under}/" if under else ""
    return {paths.splitext(name.removeprefix(start))[0]: name for name in names}


def _decode(
    store: Store, names: list[str], workers: int | None, broken: Broken
) -> dict[int, NDArray[Any]]:
    """Decode masks in threads; those that cannot be are named and counted."""

    def look(name: str) -> NDArray[Any]:
        with store.open(name) as file:
            return decode_labels(file)

    found, faults, coloured = {}, {}, []
    futures = [decoders(workers).submit(look, name) for name in names]
    for row, future in enumerate(futures):
        try:
            mask = future.result()
        except Exception as error:  # decoders raise whatever they like on damaged files
            faults[names[row]] = str(error).splitlines()[0]
            continue
        if mask.ndim == 3:
            coloured.append(names[row])
        found[row] = mask
    if coloured:
        raise InvalidData(
            "read_masks: a mask must have one number a pixel, its class; got colours in "
            f"{len(coloured):,}: {shown_names(coloured)}. Save them with a palette or as grey."
        )
    if faults:
        left_out("read_masks: cannot decode", faults, broken=broken if found else "raise")
    return found


def _fitting(files: ImageFiles, masks: list[NDArray[Any]], resize: bool) -> list[NDArray[Any]]:
    """Return masks of the sizes of their images."""
    sizes = [(int(h), int(w)) for h, w in files.sizes()]
    other = {
        name: f"{mask.shape[0]} x {mask.shape[1]} for {size[0]} x {size[1]}"
        for name, mask, size in zip(files.names, masks, sizes, strict=True)
        if mask.shape != size
    }
    if other and not resize:
        raise InvalidData(
            f"read_masks: masks must have the size of their image; {len(other):,} of "
            f"{len(masks):,} have another: {shown_names(other)}. Use resize=True."
        )
    return [_nearest(mask, size) for mask, size in zip(masks, sizes, strict=True)]


def _nearest(mask: NDArray[Any], size: tuple[int, int]) -> NDArray[Any]:
    """Return a mask at another size; each pixel is the one that lies at its middle."""
    if mask.shape == size:
        return mask
    image = Image.fromarray(mask.astype(np.int32))
    small = np.asarray(image.resize(size[::-1], Image.Resampling.NEAREST))
    return small.astype(mask.dtype)
