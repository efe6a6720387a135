"""Columns of Python objects, whatever they hold, as Arrow arrays."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from castalia.data.tables.arrow_columns import normal
from castalia.data.tables.column_names import check_names
from castalia.data.tables.type_inference import MARKERS, Mixture

__all__ = ["from_objects", "is_missing", "table_of"]

_DATES = (datetime.date, np.datetime64)


def is_missing(value: Any) -> bool:
    """Say whether a Python object stands for a missing value (None, NaN, NaT, pandas' NA)."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, np.datetime64, decimal.Decimal)) and bool(
        value != value
    )


def from_objects(values: Sequence[Any]) -> tuple[pa.Array, Mixture | None]:
    """Return an array: numbers stay numbers; a mixture becomes text and is described."""
    present = [None if is_missing(v) else v for v in values]
    kinds = {_kind(v) for v in present if v is not None}
    if not kinds:
        return pa.nulls(len(present)), None
    if kinds <= {"number", "boolean"} and "number" in kinds:
        whole = all(v is None or _is_whole(v) for v in present)
        kind, make = (pa.int64(), int) if whole else (pa.float64(), _float)
        return pa.array([None if v is None else make(v) for v in present], kind), None
    if kinds == {"boolean"}:
        return pa.array([None if v is None else bool(v) for v in present], pa.bool_()), None
    if kinds == {"date"}:
        return normal(pa.array(present)), None
    found = pa.array([None if v is None else _written(v) for v in present], pa.string())
    return found, _mixture(present) if "number" in kinds else None


def table_of(
    names: Sequence[str], columns: Sequence[Sequence[Any]], source: str
) -> tuple[pa.Table, dict[str, Mixture]]:
    """Return columns of objects as a table, and those that mix numbers with other things."""
    check_names(names, source)
    found = {
        name: from_objects([None if _is_marker(value) else value for value in column])
        for name, column in zip(names, columns, strict=True)
    }
    mixtures = {name: mixture for name, (_, mixture) in found.items() if mixture}
    return pa.table({name: array for name, (array, _) in found.items()}), mixtures


def _is_marker(value: Any) -> bool:
    return isinstance(value, str) and value.strip() in MARKERS


def _kind(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        return "number"
    return "date" if isinstance(value, _DATES) else "other"


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and -(2**63) <= int(value) < 2**63


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond 1e308
        return float("inf") if value > 0 else float("-inf")


def _written(value: Any) -> str:
    text = (
        f"{value:g}"
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e6
        else str(value)
    )
    return text.encode("utf-8", "replace").decode()


def _mixture(values: Sequence[Any]) -> Mixture:
    bad = [i for i, v in enumerate(values) if v is not None and _kind(v) != "number"]
    total = sum(v is not None for v in values)
    return Mixture(len(bad), total, bad[0], values[bad[0]])
