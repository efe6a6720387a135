"""Sequences from a long table: one step a row, with columns that say whose and when.

Rows are put in the order of time. What is odd about the times (gaps, uneven steps) is noted, and
the time since the step before can be a channel of its own.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from castalia.data.data_reader import read
from castalia.data.sequences.sequence_set import Sequences
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, listing, plural

__all__ = ["DIFFERENCE", "read_sequences", "season_of"]

DIFFERENCE = "time_difference"
_OFFSET = re.compile(r":\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$")
UNEVEN = 0.05  # share of steps that last longer or shorter than usual, from which times are uneven


def read_sequences(
    data: Any,
    *,
    group: str | None = None,
    time: str | None = None,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    differences: bool | str = "auto",
) -> Sequences:
    """Read a table with one step a row.

    Parameters
    ----------
    data
        A frame (pandas, polars, Arrow), a ``Dataset``, or the path of a CSV or Parquet file.
    group
        Column that names the sequence of each row; None: all rows are one.
    time
        Column that puts the rows in order, dates or numbers; None: they are in order.
    target
        Column to be predicted: where it is the same in all rows of a sequence, one value a
        sequence, else one a step. It is no channel.
    columns
        The channels; None: all other columns.
    differences
        Whether the time since the step before is a channel: ``"auto"`` where steps are uneven.

    Examples
    --------
    >>> table = {"id": ["a", "a", "b"], "t": [2, 1, 1], "v": [5.0, 4.0, 7.0]}
    >>> import pyarrow
    >>> found = read_sequences(pyarrow.table(table), group="id", time="t")
    >>> [each.ravel().tolist() for each in found], found.notes
    ([[4.0, 5.0], [7.0]], ['Rows were not in the order of `t`; they are sorted.'])
    """
    table = read(data)
    for name in (group, time, target, *(columns or ())):
        if name is not None and name not in table.columns:
            raise InvalidParameter(
                f"read_sequences: columns must be among {listing(table.columns, 'and', 8)}; got "
                f"{name!r}.{did_you_mean(name, table.columns)}"
            )
    when = None if time is None else _times(table.column(time), time)
    ids, parts = _parts(table, group)
    notes: list[str] = []
    if when is not None:
        parts, notes = _ordered(parts, when, time or "", ids)
        if _has_offsets(table, str(time)):
            notes.append(f"Times of `{time}` with an offset are taken in UTC.")
    apart = {group, time, target}
    names = list(columns or [name for name in table.columns if name not in apart])
    names = names or ([target] if target is not None else [])
    steps = [_matrix(table, names, index) for index in parts]
    times = None if when is None else [when[index] for index in parts]
    if times is not None:
        uneven, words = _spacing(times, ids)
        notes += words
        if differences is True or (differences == "auto" and uneven):
            steps = [
                np.column_stack([each, _differences(t)])
                for each, t in zip(steps, times, strict=True)
            ]
            names = [*names, DIFFERENCE]
            notes += [f"The time since the step before is a channel, `{DIFFERENCE}`."]
    values = None if target is None else _target(table.column(target), parts)
    return Sequences(steps, channels=names, ids=ids, times=times, target=values, notes=notes)


def _times(values: np.ndarray, name: str) -> np.ndarray:
    """Return times as numbers or dates, or refuse what cannot be put in order."""
    if values.dtype == object or values.dtype.kind in "US":
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # offsets are taken off: UTC
                values = np.array([str(v) for v in values], dtype="datetime64[ns]")
        except ValueError as error:
            raise InvalidData(
                f"read_sequences: `{name}` must hold dates or numbers; got {values[0]!r}. Write "
                "times as 2024-01-31 18:30, or with an offset as 2024-01-31T18:30+01:00."
            ) from error
    missing = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values.astype(float))
    if missing.any():
        raise InvalidData(
            f"read_sequences: `{name}` must have a time in every row; {missing.sum():,} are "
            f"missing, first in row {int(missing.argmax())}."
        )
    return values


def _has_offsets(table: Any, time: str) -> bool:
    """Whether times have a zone, or are texts that end with an offset, such as +01:00 or Z."""
    column = table.select([time]).table().column(0)
    if getattr(column.type, "tz", None) is not None:
        return True
    values = table.column(time)
    return values.dtype.kind in "OUS" and any(_OFFSET.search(str(value)) for value in values)


def _parts(table: Any, group: str | None) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the names of the sequences as they come, and the rows of each."""
    if group is None:
        return np.array([table.source]), [np.arange(len(table))]
    values = table.column(group)
    if values.dtype == object:
        missing = np.array([v is None for v in values])
        if missing.any():
            raise InvalidData(
                f"read_sequences: `{group}` must name the sequence of every row; "
                f"{missing.sum():,} are missing, first in row {int(missing.argmax())}."
            )
        values = np.array([str(v) for v in values])
    names, first, number = np.unique(values, return_index=True, return_inverse=True)
    rows = np.argsort(number, kind="stable")
    parts = np.split(rows, np.cumsum(np.bincount(number))[:-1])
    come = np.argsort(first)
    return names[come], [parts[i] for i in come]


def _ordered(
    parts: list[np.ndarray], when: np.ndarray, name: str, ids: np.ndarray
) -> tuple[list[np.ndarray], list[str]]:
    """Put the rows of each sequence in the order of time; two at one time are refused."""
    found, shuffled = [], False
    for rows, who in zip(parts, ids, strict=True):
        order = np.argsort(when[rows], kind="stable")
        shuffled |= bool((np.diff(order) < 0).any())
        rows = rows[order]
        twice = np.flatnonzero(when[rows][1:] == when[rows][:-1])
        if len(twice):
            other = f" of `{who}`" if len(ids) > 1 else ""
            raise InvalidData(
                f"read_sequences: `{name}` must be different in all rows of a sequence; "
                f"times come twice in {plural(len(twice), 'place')}, first "
                f"{when[rows][twice[0]]}{other}. Name the column of the sequences (group), or keep "
                "one row a time."
            )
        found.append(rows)
    words = [f"Rows were not in the order of `{name}`; they are sorted."] if shuffled else []
    return found, words


def _matrix(table: Any, names: Sequence[str], rows: np.ndarray) -> np.ndarray:
    """Return columns side by side: numbers where all are, else objects."""
    columns = [table.column(name)[rows] for name in names]
    plain = all(column.dtype.kind in "buif" for column in columns)
    columns = [column.astype(np.float64 if plain else object) for column in columns]
    return np.column_stack(columns)


def _seconds(times: np.ndarray) -> np.ndarray:
    """Return the time from each step to the next, in seconds or in the units of numbers."""
    step = np.diff(times)
    return step / np.timedelta64(1, "s") if times.dtype.kind == "M" else step.astype(float)


def _differences(times: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], _seconds(times)])


def _spacing(times: list[np.ndarray], ids: np.ndarray) -> tuple[bool, list[str]]:
    """Say whether steps are uneven, and what is odd about them."""
    steps = [_seconds(t) for t in times if len(t) > 1]
    if not steps:
        return False, []
    if all(_by_month(t) for t in times):
        return False, []  # months differ in days
    usual = np.array([np.median(step) for step in steps])
    every = np.concatenate([step / np.median(step) for step in steps])
    whole = np.abs(every - np.round(every)) < 0.01
    odd = np.abs(every - 1) > 0.01
    if usual.max() > 1.5 * usual.min() and len(usual) > 1:
        words = [
            f"Sequences have different steps: {_span(usual.min(), times)} to "
            f"{_span(usual.max(), times)} between rows."
        ]
        return True, words
    if odd.mean() > UNEVEN and not whole.all():
        return True, [
            f"Steps are uneven: {_span(usual[0], times)} usually, from "
            f"{_span(every.min() * usual[0], times)} to {_span(every.max() * usual[0], times)}."
        ]
    gaps = int((np.round(every[whole]) - 1).clip(0).sum())
    if gaps:
        longest = int(np.round(every.max())) - 1
        return False, [
            f"{plural(gaps, 'step')} of {len(every) + gaps + len(steps):,} are missing, in gaps of "
            f"{longest:,} at most, of {_span(usual[0], times)} each."
        ]
    return bool(odd.mean() > UNEVEN), []


def _by_month(times: np.ndarray) -> bool:
    """Whether all steps are equally many months."""
    if times.dtype.kind != "M" or len(times) < 3:
        return False
    months = times.astype("datetime64[M]")
    even = len(set(np.diff(months).astype(int).tolist())) == 1
    return even and len(set((times - months.astype(times.dtype)).astype(int).tolist())) == 1


def _span(seconds: float, times: list[np.ndarray]) -> str:
    """Write a time in words."""
    if times[0].dtype.kind != "M":
        return f"{seconds:g}"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _target(values: np.ndarray, parts: list[np.ndarray]) -> Any:
    """Return one value a sequence where it never changes inside one, else one a step."""
    values = np.array([str(v) for v in values]) if values.dtype == object else values
    each = [values[rows] for rows in parts]
    if len(parts) > 1 and all((part == part[0]).all() for part in each):
        return np.array([part[0] for part in each])
    return each


_SEASONS = {3600: 24, 86400: 7, 60: 60, 900: 96, 1800: 48, 300: 288, 600: 144, 604800: 52}
_MONTHS = {28: 12, 29: 12, 30: 12, 31: 12, 89: 4, 90: 4, 91: 4, 92: 4}  # days of a step


def season_of(times: np.ndarray | None) -> int:
    """Return how many steps the usual cycle of a series has: a day of hours, a week of days ….

    >>> season_of(np.arange("2024-01-01T00", "2024-01-03T00", dtype="datetime64[h]"))
    24
    """
    if times is None or times.dtype.kind != "M" or len(times) < 2:
        return 1
    seconds = float(np.median(_seconds(times)))
    return _SEASONS.get(int(seconds)) or _MONTHS.get(round(seconds / 86400), 1)
