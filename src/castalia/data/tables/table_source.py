"""What every origin of rows declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa

__all__ = ["TableSource"]


class TableSource(Protocol):
    """Where the rows of a table come from: memory, or files that are read again for every pass.

    Attributes
    ----------
    text
        What messages call it.
    names, schema, rows
        Columns, their Arrow types, and how many rows there are.
    notes
        Remarks on columns, by name.
    files
        Paths or addresses of the files that are read again; none for rows in memory.
    categorical
        Columns their owner declared to be categories.
    named
        Whether the columns have names of their own; those of an array have not.
    """

    text: str
    names: list[str]
    schema: pa.Schema
    rows: int
    notes: dict[str, str]
    files: list[str]
    categorical: set[str]
    named: bool = True

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, these columns only."""
