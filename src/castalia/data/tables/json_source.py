"""JSON lines: one object a line, as a stream of typed Arrow batches.

Arrow parses a block of lines at a time. Where it gives up (mixed types, a line that is no object),
the block is parsed again line by line, which names the line or writes the mixed column as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from castalia.data.tables.arrow_columns import is_number, normal, normal_type, strings
from castalia.data.tables.object_columns import from_objects
from castalia.data.tables.table_source import TableSource
from castalia.data.tables.text_file import inspect
from castalia.data.tables.type_inference import MARKERS, Mixture
from castalia.errors import InvalidData
from castalia.utils.text import shorten

__all__ = ["JsonSource", "plain"]

_BLOCK = 4 << 20  # bytes
_MARKERS = pa.array(MARKERS)
_Parsed = tuple[pa.Table, dict[str, Mixture]]


class JsonSource(TableSource):
    """JSON objects, one a line; a key that is absent is a missing value.

    Parameters
    ----------
    path
        The file, or what messages name instead.
    encoding
        Of the file.
    lines
        Has the method ``pieces`` that yields the bytes, where they are not those of the file.
    """

    def __init__(self, path: Path, encoding: str | None = None, *, lines: Any = None) -> None:
        self.path, self.text, self.files = path, str(path), [str(path)]
        self._file = lines or inspect(path, encoding)
        self.categorical = set[str]()
        self.rows, read = 0, 0
        types: dict[str, pa.DataType] = {}
        mixed: dict[str, Mixture] = {}
        for block in self._blocks():
            table, mixtures = self._parse(block, read, None)
            for field in table.schema:
                types[field.name] = _join(types.get(field.name, pa.null()), field.type)
                found = mixtures.get(field.name) or _all_or_none(table[field.name])
                mixed[field.name] = _add(mixed.get(field.name), found, self.rows)
            self.rows += table.num_rows
            read += block.count(b"\n")
        if not types:
            raise InvalidData(f"read: `{path}` must hold objects with at least one key.")
        self.names, self.schema = list(types), pa.schema(list(types.items()))
        self.notes = {
            name: mixture.note(f"row {mixture.row}")
            for name, mixture in mixed.items()
            if 0 < mixture.bad < mixture.present and pa.types.is_string(types[name])
        }

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, these columns only, typed."""
        wanted = pa.schema([self.schema.field(name) for name in columns])
        lines = 0
        for block in self._blocks():
            table, _ = self._parse(block, lines, wanted)
            yield from table.combine_chunks().to_batches()
            lines += block.count(b"\n")

    def _blocks(self) -> Iterator[bytes]:
        """Yield bytes that end at a line's end."""
        held = b""
        for piece in self._file.pieces():
            held += piece
            if len(held) >= _BLOCK and (cut := held.rfind(b"\n") + 1):
                yield held[:cut]
                held = held[cut:]
        if held.strip():
            yield held

    def _parse(self, block: bytes, line: int, wanted: pa.Schema | None) -> _Parsed:
        mixtures: dict[str, Mixture] = {}
        table = _parse_fast(block.removeprefix(b"\xef\xbb\xbf"), wanted)
        if table is None:
            table, mixtures = self._parse_slowly(block, line)
        if wanted is None:
            return table, mixtures
        columns = [_column(table, field) for field in wanted]
        return pa.Table.from_arrays(columns, schema=wanted), mixtures

    def _parse_slowly(self, block: bytes, line: int) -> _Parsed:
        found: list[dict[str, Any]] = []
        for number, text in enumerate(block.decode("utf-8-sig").split("\n"), start=line + 1):
            if text.strip():
                found.append(self._object(text, number))
        names = dict.fromkeys(key for row in found for key in row)
        columns = {name: from_objects([plain(row.get(name)) for row in found]) for name in names}
        if not columns:
            raise InvalidData(f"read: `{self.path}` must hold objects with at least one key.")
        mixtures = {name: mixture for name, (_, mixture) in columns.items() if mixture}
        return pa.table({name: column for name, (column, _) in columns.items()}), mixtures

    def _object(self, text: str, line: int) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", str(error))
            raise InvalidData(
                f"read: `{self.path}` line {line} must be a JSON object; {reason}."
            ) from error
        if not isinstance(value, dict):
            raise InvalidData(
                f'read: `{self.path}` line {line} must be a JSON object such as {{"a": 1}}; '
                f"got {shorten(text.strip(), 40)}."
            )
        return {_text(key): item for key, item in value.items()}


def _parse_fast(block: bytes, wanted: pa.Schema | None) -> pa.Table | None:
    """Let Arrow parse a block; None where it cannot or does not see one row a line."""
    lines = sum(1 for line in block.split(b"\n") if line.strip())
    options = pajson.ParseOptions(
        explicit_schema=wanted, unexpected_field_behavior="infer" if wanted is None else "ignore"
    )
    reading = pajson.ReadOptions(block_size=max(len(block) + 1, 1 << 16))
    try:
        table = pajson.read_json(pa.BufferReader(block), reading, options)
        names = table.schema.names
        nested = any(pa.types.is_nested(field.type) for field in table.schema)
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if nested or table.num_rows != lines or len(set(names)) < len(names):
        return None
    return pa.table({name: _unmark(normal(table[name])) for name in names})


def _all_or_none(column: pa.ChunkedArray) -> Mixture:
    """Count a block's column in which no value, or every value, is a number."""
    present = len(column) - column.null_count
    if is_number(column.type) or not present:
        return Mixture(0, present, -1, None)
    row = pc.index(pc.is_valid(column), True).as_py()
    return Mixture(present, present, row, column[row].as_py())


def _add(one: Mixture | None, other: Mixture, rows: int) -> Mixture:
    """Add the counts of the next block, which starts after ``rows`` rows."""
    if one is None or one.row < 0:
        before = one.present if one else 0
        row = other.row + rows if other.row >= 0 else -1
        return Mixture(other.bad, before + other.present, row, other.value)
    return Mixture(one.bad + other.bad, one.present + other.present, one.row, one.value)


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name not in table.schema.names:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    column = table[field.name]
    if column.type == field.type:
        return column
    return (
        strings(column)
        if pa.types.is_string(field.type)
        else pc.cast(column, field.type, safe=False)
    )


def _join(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that holds both."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return normal_type(other)
    return pa.float64() if is_number(one) and is_number(other) else pa.string()


def _unmark(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Turn the usual words for a missing value into missing values."""
    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.is_in(column, value_set=_MARKERS), pa.scalar(None, pa.string()), column)


def plain(value: Any) -> Any:
    """Return a JSON value as a cell: nested ones as text, words for a missing value as None."""
    if isinstance(value, (dict, list)):
        return _text(json.dumps(value))
    return (None if value in MARKERS else _text(value)) if isinstance(value, str) else value


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()  # a lone surrogate has no place in UTF-8
