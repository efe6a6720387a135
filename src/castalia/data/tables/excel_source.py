"""Excel workbooks: the first sheet as a table, its first row as names."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path
from typing import Any

from castalia.data.packed_files import most_unpacked
from castalia.data.tables.memory_source import MemorySource
from castalia.data.tables.object_columns import table_of
from castalia.errors import DataWarning, InvalidData
from castalia.utils.imports import require
from castalia.utils.text import listing, shorten

__all__ = ["read_excel"]

FEW = 2**21  # cells that any workbook may have, empty ones included, besides one a byte


def read_excel(path: Path) -> MemorySource:
    """Read the first sheet of a workbook; cells keep their types, empty ones are missing."""
    rows = _rows(path)
    if not rows:
        raise InvalidData(f"read: `{path}` must hold a table; its first sheet is empty.")
    head, *body = rows
    if not body:
        raise InvalidData(
            f"read: `{path}` must hold at least one row; it has a header and nothing below it."
        )
    names = [
        f"unnamed_{i}" if name is None else str(name).strip()
        for i, name in enumerate(head, start=1)
    ]
    columns = [[row[i] for row in body] for i in range(len(names))]
    table, mixtures = table_of(names, columns, str(path))
    notes = {name: found.note(f"row {found.row + 2}") for name, found in mixtures.items()}
    return MemorySource(table, str(path), notes)


def _rows(path: Path) -> list[list[Any]]:
    """Return the cells of the first sheet, without empty rows and empty columns at its end."""
    openpyxl = require("openpyxl", caller="read", extra="excel")
    try:
        unpacked = _unpacked(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles, which do not matter here
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            sheets = book.worksheets
            rows = _cells(sheets[0], FEW + unpacked)
            book.close()
    except Exception as error:  # whatever is wrong with the archive or its XML
        raise InvalidData(
            f"read: `{path}` must be a whole Excel workbook; reading it failed "
            f"({shorten(error, 120)})."
        ) from error
    if len(sheets) > 1:
        others = listing([sheet.title for sheet in sheets[1:]], "and", 5)
        warnings.warn(
            f"read: the first sheet of `{path}`, `{sheets[0].title}`, is read; {others} not.",
            DataWarning,
            stacklevel=6,
        )
    return _trimmed(rows)


def _unpacked(path: Path) -> int:
    """Return the bytes of a workbook's parts, unless they are too many for a file of its size."""
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        found = sum(part.file_size for part in archive.infolist())
    if found > most_unpacked(size):
        raise ValueError(f"it unpacks to {found:,} bytes from {size:,}")
    return found


def _cells(sheet: Any, most: int) -> list[list[Any]]:
    """Return the rows of a sheet, whatever size it claims to have; a cell takes a few bytes."""
    sheet.reset_dimensions()
    rows, count = [], 0
    for row in sheet.iter_rows(values_only=True):
        count += len(row) + 1
        if count > most:
            raise ValueError(f"its cells lie more than {most:,} apart")
        rows.append(list(row))
    return rows


def _trimmed(rows: list[list[Any]]) -> list[list[Any]]:
    rows = [row for row in rows if any(cell is not None for cell in row)]
    width = max(
        (i + 1 for row in rows for i, cell in enumerate(row) if cell is not None), default=0
    )
    return [(row + [None] * width)[:width] for row in rows]
