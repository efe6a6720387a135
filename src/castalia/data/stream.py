"""Encoded tables that do not fit into memory."""

from __future__ import annotations

import errno
import shutil
import tempfile
import weakref
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from castalia.data.tables.dataset import Dataset
from castalia.data.tables.table_encoder import TableEncoder
from castalia.errors import InvalidData

__all__ = ["DiskMatrix"]


class DiskMatrix:
    """A matrix in one raw file, read a few rows at a time.

    Rows are read, not mapped, so that resident memory stays as small as the rows asked for. The
    file lies in a folder of its own, removed by `close` or with the object.

    Parameters
    ----------
    path
        The raw file, in a folder that belongs to this matrix.
    rows, columns
        Its shape.
    dtype
        Type of its numbers.

    Examples
    --------
    >>> from castalia.data import DiskMatrix, TableEncoder, read
    >>> data = read(np.arange(8.0).reshape(4, 2))
    >>> matrix = DiskMatrix.write(data, TableEncoder().fit(data), np.float32)
    >>> matrix.shape, matrix.read(1, 3).shape
    ((4, 2), (2, 2))
    >>> matrix.close()
    """

    def __init__(self, path: Path, rows: int, columns: int, dtype: DTypeLike) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        self.shape = (rows, columns)
        self._finalizer = weakref.finalize(self, shutil.rmtree, path.parent, ignore_errors=True)

    @classmethod
    def write(
        cls,
        dataset: Dataset,
        encoder: TableEncoder,
        dtype: DTypeLike = np.float32,
        folder: str | PathLike[str] | None = None,
    ) -> Self:
        """Encode a data set chunk by chunk into a new file.

        Parameters
        ----------
        dataset, encoder
            What is written, and how it is encoded.
        dtype
            float32 or float64.
        folder
            Where the file's own folder is made; the system's temporary folder by default.
        """
        home = Path(tempfile.mkdtemp(prefix="castalia-", dir=folder))
        matrix = cls(home / "rows.bin", len(dataset), encoder.inputs, dtype)
        try:
            with matrix.path.open("wb") as file:
                encoder.write(dataset, file, matrix.dtype)
        except OSError as error:
            matrix.close()
            raise matrix._failed(error) from error
        except BaseException:
            matrix.close()
            raise
        return matrix

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DiskMatrix({self.shape[0]} x {self.shape[1]}, {self.dtype}, {self.path})"

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the rows from ``start`` up to ``stop``, (stop - start, columns)."""
        rows, columns = self.shape
        start, stop = min(max(start, 0), rows), min(max(stop, start, 0), rows)
        if not self._finalizer.alive:
            raise InvalidData(
                f"DiskMatrix.read: the matrix must be open; {self.path} was closed and removed."
            )
        count = (stop - start) * columns
        found = np.fromfile(
            self.path, self.dtype, count, offset=start * columns * self.dtype.itemsize
        )
        if found.size != count:
            raise InvalidData(
                f"DiskMatrix.read: {self.path} must hold {rows} rows; it was cut off."
            )
        return found.reshape(stop - start, columns)

    def close(self) -> None:
        """Remove the file; harmless when done twice."""
        self._finalizer()

    def _failed(self, error: OSError) -> InvalidData:
        size = self.shape[0] * self.shape[1] * self.dtype.itemsize / 1e9
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return InvalidData(
                f"DiskMatrix.write: {self.path.parent.parent} must have {size:.3g} GB free for "
                "the encoded table; "
                "the disk is full. Free some space, or set TMPDIR to a larger disk."
            )
        return InvalidData(
            f"DiskMatrix.write: {self.path} cannot be written: {error.strerror or error}."
        )
