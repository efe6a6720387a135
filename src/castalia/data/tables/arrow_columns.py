"""Arrow columns in the few types the library works with, and their way to numpy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["DAY", "floats", "is_number", "normal", "normal_type", "reslice", "strings", "values"]

# How many units of an Arrow timestamp make a day.
DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def is_number(kind: pa.DataType) -> bool:
    """Say whether a type holds plain numbers."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def normal_type(kind: pa.DataType) -> pa.DataType:
    """Return the working type for an Arrow type: number, boolean, timestamp, string or null."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return normal_type(kind.storage_type)
    if types.is_float16(kind):
        return pa.float32()
    if is_number(kind) or types.is_boolean(kind) or types.is_null(kind) or types.is_timestamp(kind):
        return kind
    if types.is_decimal(kind) or types.is_duration(kind) or types.is_time(kind):
        return pa.float64()
    return pa.timestamp("ms") if types.is_date(kind) else pa.string()


def normal(column: pa.Array) -> pa.Array:
    """Bring an array or chunked array into its working type."""
    kind, types = column.type, pa.types
    wanted = normal_type(kind)
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([normal(chunk) for chunk in column.chunks], type=wanted)
    if kind == wanted:
        return column
    if isinstance(kind, pa.BaseExtensionType):
        return normal(column.storage)
    if types.is_dictionary(kind):
        return strings(pc.cast(column, kind.value_type))
    if types.is_duration(kind) or types.is_time(kind):
        whole = pa.int32() if types.is_time32(kind) else pa.int64()
        return pc.cast(pc.cast(column, whole), wanted, safe=False)
    if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return _described(column)
    try:
        return pc.cast(column, wanted, safe=False)
    except pa.ArrowException:
        return _described(column)


def _described(column: pa.Array) -> pa.Array:
    """Write values without a working type as text, so that they are at least reported."""
    return pa.array([_describe(v) for v in column.to_pylist()], pa.string())


def _describe(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return json.dumps(value, default=str) if isinstance(value, (dict, list)) else str(value)


def strings(column: pa.Array) -> pa.Array:
    """Write any working type as text; whole numbers stay free of a decimal point."""
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return pc.cast(column if is_number(column.type) else normal(column), pa.string())


def floats(column: pa.Array) -> NDArray[np.float64]:
    """Return numbers, booleans (0/1) or timestamps (days since 1970) as float64, missing as NaN."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = pc.cast(column, pa.uint8())
    elif pa.types.is_timestamp(kind):
        column = pc.cast(column, pa.int64())
    whole = pc.cast(column, pa.float64(), safe=False)
    if whole.null_count:
        whole = pc.fill_null(whole, float("nan"))
    found = np.asarray(
        whole.to_numpy(zero_copy_only=False) if isinstance(whole, pa.Array) else whole.to_numpy()
    )
    return found / DAY[kind.unit] if pa.types.is_timestamp(kind) else found


def values(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column as numpy: missing numbers as NaN, dates as NaT, everything else as None."""
    kind = column.type
    if is_number(kind):
        return floats(column) if column.null_count else column.to_numpy()
    if pa.types.is_timestamp(kind):
        plain = pc.cast(column, pa.timestamp(kind.unit))
        return plain.to_numpy().astype(f"datetime64[{kind.unit}]")
    if pa.types.is_boolean(kind) and not column.null_count:
        return column.to_numpy()
    found = np.empty(len(column), object)
    found[:] = column.to_pylist()
    return found


def reslice(batches: Iterable[pa.RecordBatch], rows: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """Cut a reader's batches into tables of exactly ``rows`` rows (the last one may be shorter)."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        while count >= rows:
            table = pa.Table.from_batches(held, schema)
            yield table.slice(0, rows).combine_chunks()
            held = table.slice(rows).to_batches()
            count -= rows
    if count:
        yield pa.Table.from_batches(held, schema).combine_chunks()
