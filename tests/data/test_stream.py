"""Matrices on disk."""

import errno
import subprocess
import sys

import numpy as np
import pytest

from castalia.data import DiskMatrix, TableEncoder, read
from castalia.errors import InvalidData


@pytest.fixture
def data(tmp_path):
    lines = "".join(f"{i / 7},{'ab'[i % 2]}\n" for i in range(1000))
    (tmp_path / "t.csv").write_text("x,c\n" + lines)
    return read(tmp_path / "t.csv", stream=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_on_disk_are_the_encoded_rows(data, tmp_path, dtype):
    encoder = TableEncoder().fit(data)
    matrix = DiskMatrix.write(data, encoder, dtype, tmp_path)
    whole = encoder.encode(data, dtype)
    assert matrix.shape == whole.shape == (1000, 2)
    assert len(matrix) == 1000
    np.testing.assert_array_equal(matrix.read(0, 1000), whole)
    np.testing.assert_array_equal(matrix.read(37, 112), whole[37:112])
    np.testing.assert_array_equal(matrix.read(990, 2000), whole[990:])
    assert matrix.read(5, 5).shape == (0, 2)
    assert matrix.read(5, 6).flags.writeable


def test_the_file_goes_with_its_matrix(data, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    encoder = TableEncoder().fit(data)
    matrix = DiskMatrix.write(data, encoder, np.float32, home)
    assert matrix.read(0, 1).any()
    assert not list(home.iterdir())  # without a name, it is gone with its process too
    matrix.close()
    matrix.close()
    with pytest.raises(InvalidData, match="must be open; it was closed"):
        matrix.read(0, 1)


def test_a_full_disk_is_said_in_one_sentence_and_leaves_nothing(data, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    encoder = TableEncoder().fit(data)

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(encoder, "write", full)
    with pytest.raises(
        InvalidData, match=r"home must have 8e-06 GB free.*the disk is full"
    ) as caught:
        DiskMatrix.write(data, encoder, np.float32, home)
    assert "\n" not in str(caught.value)
    assert not list(home.iterdir())


def test_bad_rows_leave_no_file(data, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    encoder = TableEncoder().fit(data)
    (tmp_path / "u.csv").write_text("x,c\n1,a\ninf,b\n")
    with pytest.raises(InvalidData, match="column `x` must hold finite numbers; got inf in row 1"):
        DiskMatrix.write(read(tmp_path / "u.csv"), encoder, np.float32, home)
    assert not list(home.iterdir())


def test_importing_the_package_needs_neither_arrow_nor_torch():
    code = "import sys, castalia.data; print({'pyarrow', 'torch', 'pandas'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"
