"""Encoded tables that do not fit into memory."""

from __future__ import annotations

import errno
import tempfile
import threading
import weakref
from os import PathLike
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from castalia.data.tables.dataset import Dataset
from castalia.data.tables.table_encoder import TableEncoder
from castalia.errors import InvalidData

__all__ = ["DiskMatrix"]


class DiskMatrix:
    """A matrix in one raw file, read a few rows at a time.

    Rows are read, not mapped, so that resident memory stays as small as the rows asked for. The
    file has no name, where the system allows it: it is gone with the object, and with the process,
    however that ends.

    Parameters
    ----------
    file
        The raw file, open for reading; it belongs to this matrix.
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

    def __init__(self, file: BinaryIO, rows: int, columns: int, dtype: DTypeLike) -> None:
        self.file, self.dtype = file, np.dtype(dtype)
        self.shape = (rows, columns)
        self._raw: Any = getattr(file, "raw", file)  # a buffer would be read in vain
        self._place = threading.Lock()  # of the file's position
        weakref.finalize(self, file.close)

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
            Where the file is made; the system's temporary folder by default.
        """
        home = tempfile.gettempdir() if folder is None else folder
        shape, kind = (len(dataset), encoder.inputs), np.dtype(dtype)
        file: Any = None
        try:
            file = tempfile.TemporaryFile(prefix="castalia-", dir=home)  # noqa: SIM115
            encoder.write(dataset, file, kind)
            file.flush()
        except BaseException as error:
            if file is not None:
                file.close()
            if isinstance(error, OSError):
                raise _failed(error, home, shape[0] * shape[1] * kind.itemsize) from error
            raise
        return cls(file, *shape, kind)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DiskMatrix({self.shape[0]} x {self.shape[1]}, {self.dtype})"

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the rows from ``start`` up to ``stop``, (stop - start, columns)."""
        rows, columns = self.shape
        start, stop = min(max(start, 0), rows), min(max(stop, start, 0), rows)
        return self.fill(np.empty((stop - start, columns), self.dtype), start)

    def fill(self, found: NDArray[Any], start: int) -> NDArray[Any]:
        """Fill an array with the rows from ``start``, and return it."""
        if self.file.closed:
            raise InvalidData("DiskMatrix.read: the matrix must be open; it was closed.")
        with self._place:
            self._raw.seek(start * self.shape[1] * self.dtype.itemsize)
            got = self._raw.readinto(found.data.cast("B")) if found.size else 0
        if got != found.nbytes:
            raise InvalidData(
                f"DiskMatrix.read: the file must hold {self.shape[0]} rows; it was cut off."
            )
        return found

    def close(self) -> None:
        """Remove the file; harmless when done twice."""
        self.file.close()


def _failed(error: OSError, home: Any, size: int) -> InvalidData:
    """Say why an encoded table of so many bytes cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InvalidData(
            f"DiskMatrix.write: {home} must have {size / 1e9:.3g} GB free for the encoded table; "
            "the disk is full. Free some space, or set TMPDIR to a larger disk."
        )
    return InvalidData(f"DiskMatrix.write: {home} cannot be written: {error.strerror or error}.")
