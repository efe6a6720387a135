"""Calendar columns: what month, weekday and hour the dates of a table have, as words."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from castalia.data.tables.dataset import Dataset

__all__ = ["calendar_columns", "with_calendar"]

_CYCLES = {"month": 548, "weekday": 14, "hour": 2}  # days that show a cycle more than once
_STEPS = {"month": 32, "weekday": 2, "hour": 0.9}  # days between dates that tell its parts apart


def with_calendar(data: Dataset, every: bool = False) -> Dataset:
    """Add the calendar columns of all dates, or, where asked for, every such column."""
    words = dict[str, pa.Array]()
    for name in data.columns:
        if name != data.target and pa.types.is_timestamp(data.arrow_schema.field(name).type):
            words |= calendar_columns(name, data.column(name), every)
    return data.with_columns(words, categorical=words) if words else data


def calendar_columns(name: str, values: np.ndarray, every: bool = False) -> dict[str, pa.Array]:
    """Return month, weekday and hour as words, those whose cycle the dates show more than once.

    Examples
    --------
    >>> days = np.arange("2024-01-05", "2024-02-11", dtype="datetime64[D]")
    >>> {key: column.to_pylist()[:3] for key, column in calendar_columns("when", days).items()}
    {'when (weekday)': ['5', '6', '7']}
    """
    numbers, known = _parts(values), np.unique(values[~np.isnat(values)])
    days = (known - known[:1]) / np.timedelta64(1, "D") if len(known) > 1 else np.zeros(1)
    step = float(np.diff(days).min()) if len(days) > 1 else np.inf
    shown = [p for p in numbers if every or (days[-1] > _CYCLES[p] and step < _STEPS[p])]
    gaps = np.isnat(values)
    return {
        f"{name} ({p})": pa.array(numbers[p].astype(str), pa.string(), mask=gaps) for p in shown
    }


def _parts(values: np.ndarray) -> dict[str, np.ndarray]:
    """Return the numbers of month, weekday (Monday 1) and hour of each date."""
    filled = np.where(np.isnat(values), np.datetime64(0, "us"), values)
    day, hour = filled.astype("datetime64[D]"), filled.astype("datetime64[h]")
    return {
        "month": filled.astype("datetime64[M]").astype(int) % 12 + 1,
        "weekday": (day.astype(int) + 3) % 7 + 1,  # 1970 began on a Thursday
        "hour": (hour - day).astype(int),
    }
