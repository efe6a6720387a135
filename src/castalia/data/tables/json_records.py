"""JSON files that hold a whole table: a list of objects, or an object of columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from castalia.data.tables.json_source import JsonSource, plain
from castalia.data.tables.memory_source import MemorySource
from castalia.data.tables.object_columns import table_of
from castalia.data.tables.text_file import inspect
from castalia.errors import InvalidData
from castalia.utils.text import shorten

__all__ = ["read_json"]


def read_json(path: Path, encoding: str | None = None) -> Any:
    """Read records or columns; a file of several JSON values is read as JSON lines."""
    text = b"".join(inspect(path, encoding).pieces()).decode("utf-8-sig")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
            return JsonSource(path, encoding)
        line = getattr(error, "lineno", 1)
        raise InvalidData(
            f"read: `{path}` line {line} must be JSON; {getattr(error, 'msg', error)}."
        ) from error
    names, columns = _columns(path, content)
    table, mixtures = table_of(names, columns, str(path))
    notes = {name: found.note(f"row {found.row}") for name, found in mixtures.items()}
    return MemorySource(table, str(path), notes)


def _columns(path: Path, content: Any) -> tuple[list[str], list[list[Any]]]:
    """Return names and values, of records, of columns, or of one object that holds either."""
    if isinstance(content, dict) and _is_columns(content):
        lists = [list(v.values()) if isinstance(v, dict) else v for v in content.values()]
        return list(content), [[plain(value) for value in column] for column in lists]
    if isinstance(content, dict):
        tables = [value for value in content.values() if _is_records(value)]
        content = tables[0] if len(tables) == 1 else content
    if not _is_records(content):
        raise InvalidData(
            f'read: `{path}` must hold a list of objects, [{{"a": 1}}, …], or an object of '
            f'columns, {{"a": [1, …]}}; got {shorten(json.dumps(content), 40)}.'
        )
    names = list(dict.fromkeys(str(key) for row in content for key in row))
    return names, [[plain(row.get(name)) for row in content] for name in names]


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _is_columns(content: dict[str, Any]) -> bool:
    """Whether every value is a column of plain values, all of one length."""
    values = content.values()
    if not content or not all(isinstance(v, list | dict) and v for v in values):
        return False
    cells = [list(v.values()) if isinstance(v, dict) else v for v in values]
    nested = any(isinstance(cell, dict) for column in cells for cell in column)
    return len({len(column) for column in cells}) == 1 and not nested
