"""Rows of JSON as columns of numbers and words; what does not fit is named by column and row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from castalia.data.tables.calendar_columns import calendar_columns
from castalia.errors import InvalidData
from castalia.utils.text import did_you_mean, listing, shorten

__all__ = ["joined_columns", "json_columns", "row_list"]

_TRUTH = {True: 1.0, False: 0.0, "true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


def row_list(body: Any, most: int) -> list[Any]:
    """Return the rows of a request: a list, ``{"rows": [...]}``, or one row."""
    rows = body.get("rows", [body]) if isinstance(body, dict) else body
    if not isinstance(rows, list) or not rows:
        raise InvalidData(
            'serve: the body must be a list of rows, {"rows": [...]} or one row; got '
            f"{shorten(repr(body), 60)}."
        )
    if len(rows) > most:
        raise InvalidData(f"serve: a request must hold at most {most:,} rows; got {len(rows):,}.")
    return rows


def json_columns(rows: Sequence[Any], columns: Mapping[str, str]) -> dict[str, list[Any]]:
    """Return columns by name: numbers with NaN for gaps, or words with None for gaps.

    They are lists: most requests have one row, and arrays are made once a batch.

    Examples
    --------
    >>> json_columns([{"age": 3, "city": None}], {"age": "numeric", "city": "categorical"})
    {'age': [3.0], 'city': [None]}
    """
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InvalidData(
                f"serve: a row must be an object of columns; row {place} is "
                f"{shorten(repr(row), 40)}."
            )
    first = rows[0]
    absent = [name for name in columns if name not in first]
    made = _calendar(rows, absent) if absent else {}
    absent = [name for name in absent if name not in made]
    if absent:
        raise InvalidData(
            f"serve: every row must have the columns of the model; {listing(absent, 'and')} "
            f"{'is' if len(absent) == 1 else 'are'} missing in row 0."
            f"{did_you_mean(absent[0], first)} null stands for a missing value."
        )
    return {
        name: made[name] if name in made else _column(rows, name, kind)
        for name, kind in columns.items()
    }


def joined_columns(
    parts: Sequence[Mapping[str, list[Any]]], columns: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Return the columns of several requests as arrays: float64, or objects for words."""
    return {
        name: np.array(
            [value for part in parts for value in part[name]],
            dtype=object if kind == "categorical" else np.float64,
        )
        for name, kind in columns.items()
    }


def _column(rows: Sequence[dict[str, Any]], name: str, kind: str) -> list[Any]:
    read = _READERS.get(kind, _number)
    try:
        return [read(row[name], name, place) for place, row in enumerate(rows)]
    except KeyError:
        place = next(i for i, row in enumerate(rows) if name not in row)
        raise InvalidData(f"serve: column `{name}` is missing in row {place}.") from None


def _refuse(name: str, what: str, value: Any, row: int) -> InvalidData:
    return InvalidData(
        f"serve: column `{name}` must hold {what}; got {shorten(repr(value), 40)} in row {row}."
    )


def _number(value: Any, name: str, row: int) -> float:
    if type(value) is float and -np.inf < value < np.inf:
        return value
    if value is None or value == "":
        return np.nan
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _refuse(name, "numbers", value, row) from None
    if found in (np.inf, -np.inf):
        raise _refuse(name, "finite numbers", value, row)
    return found


def _boolean(value: Any, name: str, row: int) -> float:
    if isinstance(value, str) and value.lower() in _TRUTH:
        return _TRUTH[value.lower()]
    return _number(value, name, row)


def _date(value: Any, name: str, row: int) -> float:
    if isinstance(value, str) and value:
        return float(_moments([value], name, row)[0].astype(np.int64)) / 86_400e6
    return _number(value, name, row)


def _moments(values: Sequence[Any], name: str, row: int = 0) -> np.ndarray:
    try:
        return np.array(["NaT" if v is None else v for v in values], dtype="datetime64[us]")
    except (TypeError, ValueError):
        raise _refuse(name, "dates (YYYY-MM-DD)", values[0], row) from None


def _word(value: Any, name: str, row: int) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    raise _refuse(name, "words", value, row)


def _quantity(value: Any, name: str, row: int) -> float:
    """Return a number, a boolean or a date as the number that it is in a matrix."""
    for read in (_boolean, _date):
        with suppress(InvalidData):
            return read(value, name, row)
    raise _refuse(name, "finite numbers or dates (YYYY-MM-DD)", value, row)


_READERS: dict[str, Callable[[Any, str, int], Any]] = {
    "numeric": _number,
    "boolean": _boolean,
    "date": _date,
    "any": _quantity,
    "categorical": _word,
}


def _calendar(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return columns such as ``when (month)`` that a fit made from dates."""
    found: dict[str, list[Any]] = {}
    for base in {name.rpartition(" (")[0] for name in names} & set(rows[0]):
        made = calendar_columns(base, _moments([row.get(base) for row in rows], base), every=True)
        found |= {name: column.to_pylist() for name, column in made.items()}
    return found
