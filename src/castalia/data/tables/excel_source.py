"""Excel workbooks: the first sheet as a table, its first row as names."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from castalia.data.tables.memory_source import MemorySource
from castalia.data.tables.object_columns import table_of
from castalia.errors import DataWarning, InvalidData
from castalia.utils.imports import require
from castalia.utils.text import listing, shorten

__all__ = ["read_excel"]


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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles, which do not matter here
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            sheets = book.worksheets
            rows = [list(row) for row in sheets[0].iter_rows(values_only=True)]
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


def _trimmed(rows: list[list[Any]]) -> list[list[Any]]:
    rows = [row for row in rows if any(cell is not None for cell in row)]
    width = max(
        (i + 1 for row in rows for i, cell in enumerate(row) if cell is not None), default=0
    )
    return [(row + [None] * width)[:width] for row in rows]
