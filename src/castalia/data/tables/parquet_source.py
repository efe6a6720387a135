"""Parquet files as a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from castalia.data.packed_files import most_unpacked
from castalia.data.tables.arrow_columns import normal, normal_type
from castalia.data.tables.column_moments import CHUNK
from castalia.data.tables.column_names import check_names
from castalia.data.tables.table_source import TableSource
from castalia.errors import InvalidData
from castalia.utils.text import shorten

__all__ = ["ParquetSource"]

PACKED = 4  # runs of equal values are stored twice as tightly as in other formats, and more
_ERRORS = (pa.ArrowException, OSError, ValueError)


def _check_size(about: Any, size: int) -> None:
    """Refuse more rows or bytes than a file of its size may hold; a run of equal values is cheap.

    A value takes eight bytes in memory, whatever it takes on disk.
    """
    groups = (about.row_group(i) for i in range(about.num_row_groups))
    cells = about.num_rows * about.num_columns
    claimed = max(sum(group.total_byte_size for group in groups), 8 * cells)
    if not 0 <= claimed <= most_unpacked(size) * PACKED:
        raise ValueError(f"it claims {cells:,} values in {size:,} bytes")


class ParquetSource(TableSource):
    """A Parquet file; its own types are kept, exotic ones are brought to a working type."""

    def __init__(self, path: Path) -> None:
        self.path, self.text, self.files = path, str(path), [str(path)]
        try:
            with pq.ParquetFile(path) as file:
                self.rows, found = file.metadata.num_rows, file.schema_arrow
                _check_size(file.metadata, path.stat().st_size)
        except _ERRORS as error:
            raise self._broken(error) from error
        self.names = list(found.names)
        check_names(self.names, self.text)
        if not self.rows:
            raise InvalidData(
                f"read: `{path}` must hold at least one row; it has columns and no rows."
            )
        self.schema = pa.schema([(field.name, normal_type(field.type)) for field in found])
        self.notes: dict[str, str] = {}
        self.categorical = {field.name for field in found if pa.types.is_dictionary(field.type)}

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, these columns only."""
        try:
            # Without pre-buffering, which would keep the whole file in memory while it is read.
            with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=2**20) as file:
                for batch in file.iter_batches(CHUNK, columns=list(columns)):
                    found = [normal(batch.column(name)) for name in columns]
                    yield pa.RecordBatch.from_arrays(found, names=list(columns))
        except _ERRORS as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> InvalidData:
        return InvalidData(
            f"read: `{self.path}` must be a whole Parquet file; reading it failed "
            f"({shorten(error, 120)})."
        )
