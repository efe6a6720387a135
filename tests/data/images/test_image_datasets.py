"""Images by name, and the format they come in."""

import gzip
import struct

import numpy as np
import pytest

from castalia.data.images import image_datasets as files
from castalia.data.images import load_images, read_cifar, read_idx
from castalia.errors import DamagedFile, InvalidData, InvalidParameter


def idx(array, code):
    head = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("code, kind", [(8, "u1"), (9, "i1"), (11, "i2"), (12, "i4"), (14, "f8")])
def test_an_array_comes_back_as_it_was_written(tmp_path, code, kind):
    array = (np.arange(24) - (0 if kind == "u1" else 7)).astype(kind).reshape(2, 3, 4)
    (tmp_path / "a.idx").write_bytes(idx(array, code))
    with gzip.open(tmp_path / "a.gz", "wb") as file:
        file.write(idx(array, code))
    for name in ("a.idx", "a.gz"):
        found = read_idx(tmp_path / name)
        assert found.dtype == np.dtype(kind)
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, array)


def test_a_file_that_is_short_or_foreign_is_named(tmp_path):
    whole = idx(np.zeros((3, 4), "u1"), 8)
    path = tmp_path / "a.idx"
    path.write_bytes(whole[:-2])
    with pytest.raises(DamagedFile, match=r"must hold 12 bytes for the shape \(3, 4\); got 10"):
        read_idx(path)
    path.write_bytes(whole[:9])
    with pytest.raises(DamagedFile, match="a.idx must begin as an IDX file"):
        read_idx(path)
    path.write_bytes(b"PK\3\4 something else")
    with pytest.raises(DamagedFile, match=r"must begin as an IDX file does; got b'PK"):
        read_idx(path)
    cut = tmp_path / "a.gz"
    cut.write_bytes(gzip.compress(whole)[:-9])
    with pytest.raises(DamagedFile, match="whole gzip file"):
        read_idx(cut)


def test_unknown_names_and_parts_are_answered_with_the_known_ones():
    with pytest.raises(InvalidParameter, match="`fashion-mnist` or `mnist`; got 'mnits'. Did you"):
        load_images("mnits")
    with pytest.raises(InvalidParameter, match="'train' or 'test'; got 'valid'"):
        load_images("mnist", "valid")


def test_images_are_found_by_their_checksum(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path))
    with pytest.raises(
        InvalidData, match=r"load_images: `mnist`.*train-images-idx3-ubyte.gz there"
    ):
        load_images("mnist")
    images, labels = np.zeros((2, 28, 28), "u1"), np.array([3, 5], "u1")
    (tmp_path / "mnist").mkdir()
    for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
        packed = gzip.compress(idx(array, 8))
        (tmp_path / "mnist" / f"t10k-{kind}-ubyte.gz").write_bytes(packed)
    with pytest.raises(InvalidData, match="another one or damaged"):
        load_images("mnist", "test")
    monkeypatch.setattr("castalia.data.dataset_files.digest", lambda path: known[path.name])
    names = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
    known = dict(zip(names, files._SHA256["mnist", "test"], strict=True))
    assert load_images("mnist", "test")[0].shape == (2, 28, 28)
    assert load_images("mnist", "test")[1].tolist() == [3, 5]


def test_a_file_of_cifar_gives_its_images_with_channels_last(tmp_path):
    planes = np.arange(2 * 3072, dtype=np.int64).reshape(2, 3, 32, 32) % 251
    rows = np.concatenate([[[7], [2]], planes.reshape(2, -1)], axis=1).astype(np.uint8)
    path = tmp_path / "batch.bin"
    path.write_bytes(rows.tobytes())
    images, labels = read_cifar(path)
    assert labels.tolist() == [7, 2]
    np.testing.assert_array_equal(images, planes.transpose(0, 2, 3, 1))
    path.write_bytes(rows.tobytes()[:-1])
    with pytest.raises(DamagedFile, match="must hold 3,073 bytes an image; got 6,145 bytes"):
        read_cifar(path)


def test_cifar10_says_which_file_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path))
    with pytest.raises(InvalidData, match=r"`cifar10` must lie at .*test_batch.bin"):
        load_images("cifar10", "test")
