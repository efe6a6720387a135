"""The column that puts the rows of a table in order in time."""

from __future__ import annotations

import re

import numpy as np

from castalia.data import Dataset

__all__ = ["find_time"]

_TIME = re.compile(r"(?i)(^|[_\W])(date|time|timestamp|year|month|week|day|hour|quarter|period)s?$")
_OTHER = re.compile(r"(?i)birth|born|dob|founded|hired|expir|due")  # dates that order nothing


def find_time(data: Dataset, left_out: str | None = None) -> str | None:
    """Return the column that puts rows in order in time: dates, or numbers that climb; or None."""
    schema = data.schema
    whole = [c for c in schema if c.name != left_out and not c.missing]
    dates = [c.name for c in whole if c.kind == "date" and not _OTHER.search(c.name)]
    if dates:
        return max(dates, key=lambda name: (_climbs(data.column(name)), schema[name].unique))
    named = [c for c in whole if c.kind in ("numeric", "identifier") and _TIME.search(c.name)]
    found = [c.name for c in named if 2 * c.unique > schema.rows and _climbs(data.column(c.name))]
    return found[0] if found else None


def _climbs(values: np.ndarray) -> bool:
    """Whether values never fall, or never rise, from row to row."""
    if values.dtype.kind not in "iufM":
        return False
    steps = np.diff(values).astype(float)
    return bool((steps >= 0).all() or (steps <= 0).all())
