"""Arrow columns as an encoder needs them: numbers of a known kind, codes of known words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from castalia.data.tables.arrow_columns import floats, is_number, strings
from castalia.data.tables.type_inference import convert
from castalia.errors import InvalidData
from castalia.utils.text import shorten

__all__ = ["codes", "numbers"]

_TARGETS: dict[str, tuple[pa.DataType, ...]] = {
    "numeric": (pa.float64(),),
    "boolean": (pa.bool_(), pa.float64()),
    "date": (pa.timestamp("us"), pa.timestamp("us", "UTC")),
}
_RULES = {"numeric": "numbers", "boolean": "booleans", "date": "dates (YYYY-MM-DD)"}


def numbers(column: pa.Array, name: str, kind: str, start: int) -> NDArray[np.float64]:
    """Return a column that was numeric, boolean or a date in fit as float64, missing as NaN."""
    if pa.types.is_string(column.type):
        column = _converted(column, name, kind, start)
    dated = pa.types.is_timestamp(column.type)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if dated != (kind == "date") or not (
        dated or is_number(column.type) or pa.types.is_boolean(column.type)
    ):
        raise InvalidData(_message(name, kind, start, column[0].as_py()))
    return floats(column)


def _converted(column: pa.Array, name: str, kind: str, start: int) -> pa.Array:
    for target in _TARGETS[kind]:
        try:
            return convert(column, target)
        except pa.ArrowInvalid:
            continue
    row = next((i for i, text in enumerate(column) if not _fits(text, kind)), 0)
    raise InvalidData(_message(name, kind, start + row, column[row].as_py()))


def _fits(text: Any, kind: str) -> bool:
    for target in _TARGETS[kind]:
        try:
            convert(pa.array([text.as_py()], pa.string()), target)
        except pa.ArrowInvalid:
            continue
        return True
    return False


def _message(name: str, kind: str, row: int, value: Any) -> str:
    return (
        f"TableEncoder.encode: column `{name}` must hold {_RULES[kind]}, as in fit; "
        f"got {shorten(repr(value), 40)} in row {row}."
    )


def codes(column: pa.Array, words: Sequence[str]) -> NDArray[np.int32]:
    """Return each value's place in ``words``, counted from 1; 0 for missing and unknown values."""
    found = pc.index_in(strings(column), value_set=pa.array(words, pa.string()))
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False) + 1
