"""Arrow files and data sets of pyarrow as a stream of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from castalia.data.tables.arrow_columns import normal, normal_type
from castalia.data.tables.column_moments import CHUNK
from castalia.data.tables.column_names import check_names
from castalia.data.tables.table_source import TableSource
from castalia.errors import InvalidData
from castalia.utils.text import shorten

__all__ = ["ArrowSource", "open_arrow"]

_ERRORS = (pa.ArrowException, OSError, ValueError)


class ArrowSource(TableSource):
    """A data set of pyarrow: files anywhere that it reads, with its partitions and filters.

    Parameters
    ----------
    dataset
        The data set.
    text
        What messages call it.
    """

    def __init__(self, dataset: Any, text: str = "the pyarrow data set") -> None:
        self.dataset, self.text = dataset, text
        self.files = getattr(dataset, "files", []) or [text]
        self.names = list(dataset.schema.names)
        check_names(self.names, text)
        try:
            self.rows = dataset.count_rows()
        except _ERRORS as error:
            raise self._broken(error) from error
        if not self.rows:
            raise InvalidData(f"read: {text} must hold at least one row; it has none.")
        self.schema = pa.schema([(field.name, normal_type(field.type)) for field in dataset.schema])
        self.notes: dict[str, str] = {}
        found = [field for field in dataset.schema if pa.types.is_dictionary(field.type)]
        self.categorical = {field.name for field in found}

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, these columns only."""
        scanner = self.dataset.scanner(
            columns=list(columns), batch_size=CHUNK, batch_readahead=2, fragment_readahead=1
        )
        try:
            for batch in scanner.to_batches():
                found = [normal(batch.column(name)) for name in columns]
                yield pa.RecordBatch.from_arrays(found, names=list(columns))
        except _ERRORS as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> InvalidData:
        return InvalidData(
            f"read: {self.text} must be whole; reading it failed ({shorten(error, 160)})."
        )


def open_arrow(path: Path) -> ArrowSource:
    """Open an Arrow file, also called Feather."""
    try:
        return ArrowSource(pads.dataset(path, format="ipc"), str(path))
    except _ERRORS as error:
        raise InvalidData(
            f"read: `{path}` must be a whole Arrow file; opening it failed ({shorten(error, 120)})."
        ) from error
