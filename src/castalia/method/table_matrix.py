"""A table as one matrix for scikit-learn: numbers first, then category codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from castalia.data import Dataset
from castalia.data.tables.calendar_columns import with_calendar
from castalia.errors import InvalidData
from castalia.utils.text import shorten

__all__ = ["MOST_CATEGORIES", "Matrix"]

MOST_CATEGORIES = 254  # what histogram boosting can hold beside the missing value


class Matrix:
    """Numbers, booleans and dates as they are; categories as codes learnt from the training rows.

    A missing or unseen value is NaN everywhere.

    Examples
    --------
    >>> from castalia.data import datasets
    >>> table = datasets.load("penguins").select(["island", "body_mass_g"])
    >>> matrix = Matrix.of(table).fit(table)
    >>> matrix.categorical, matrix.encode(table).shape
    ([1], (344, 2))
    """

    def __init__(self, columns: Sequence[str], words: Sequence[str]) -> None:
        self.numeric = [name for name in columns if name not in words]
        self.codes: dict[str, dict[str, int]] = {name: {} for name in columns if name in words}

    @classmethod
    def of(cls, table: Dataset) -> Matrix:
        """Return one for the columns of a table; what they are is decided by all of its rows."""
        return cls(table.columns, table.schema.names("categorical"))

    def fit(self, table: Dataset) -> Matrix:
        """Learn the categories of training rows."""
        self.codes = {name: _codes(table.column(name)) for name in self.codes}
        return self

    @property
    def used(self) -> list[str]:
        """Names of the columns."""
        return [*self.numeric, *self.codes]

    @property
    def words(self) -> dict[str, list[str]]:
        """Known values of the columns of categories."""
        return {name: list(codes) for name, codes in self.codes.items()}

    @property
    def numbers(self) -> list[int]:
        """Positions of the numbers."""
        return list(range(len(self.numeric)))

    @property
    def categorical(self) -> list[int]:
        """Positions of the category codes."""
        return list(range(len(self.numeric), len(self.numeric) + len(self.codes)))

    def encode(self, table: Dataset) -> np.ndarray:
        """Return the matrix (rows, columns) of a table with these columns, or their dates."""
        if not set(self.used) <= set(table.columns):
            table = with_calendar(table, every=True)
        found = [_floats(table.column(name), name) for name in self.numeric]
        for name, codes in self.codes.items():
            found.append(np.array([codes.get(_word(v), np.nan) for v in table.column(name)]))
        return np.column_stack(found)

    def state(self) -> dict[str, Any]:
        """Return what was learnt, as JSON values."""
        return {"numeric": self.numeric, "codes": [[n, list(c)] for n, c in self.codes.items()]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Matrix:
        """Return the matrix whose `state` this is."""
        names = [str(name) for name, _ in state["codes"]]
        self = cls([*state["numeric"], *names], names)
        for name, (_, words) in zip(names, state["codes"], strict=True):
            self.codes[name] = {str(word): place for place, word in enumerate(words)}
        return self


def _word(value: Any) -> Any:
    return None if value is None else str(value)


def _codes(values: np.ndarray) -> dict[Any, int]:
    words, counts = np.unique([_word(v) for v in values if v is not None], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
    return {str(words[i]): place for place, i in enumerate(order)}


def _floats(values: np.ndarray, name: str) -> np.ndarray:
    if values.dtype.kind == "M":
        days = values.astype("datetime64[s]").astype(np.float64) / 86400
        return np.where(np.isnat(values), np.nan, days)
    if values.dtype == object:  # booleans with gaps
        return np.array([_float(value, name, row) for row, value in enumerate(values)])
    return values.astype(np.float64)


def _float(value: Any, name: str, row: int) -> float:
    try:
        return np.nan if value is None else float(value)
    except ValueError:
        raise InvalidData(
            f"predict: column `{name}` must hold numbers or dates, as in training; got "
            f"{shorten(repr(value), 40)} in row {row}."
        ) from None
