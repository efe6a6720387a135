"""A table as one matrix for scikit-learn: numbers first, then category codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.data import Dataset

__all__ = ["MOST_CATEGORIES", "Matrix"]

MOST_CATEGORIES = 254  # what histogram boosting can hold beside the missing value


class Matrix:
    """Numbers, booleans and dates as they are; categories as codes learnt from the training rows.

    A missing or unseen value is NaN everywhere.

    Examples
    --------
    >>> from castalia.data import datasets
    >>> table = datasets.load("penguins").select(["island", "body_mass_g"])
    >>> matrix = Matrix(table, table.schema)
    >>> matrix.categorical, matrix.encode(table).shape
    ([1], (344, 2))
    """

    def __init__(self, table: Dataset, schema: Any) -> None:
        columns = [schema[name] for name in table.columns]
        self.numeric = [c.name for c in columns if c.kind != "categorical"]
        words = [c.name for c in columns if c.kind == "categorical"]
        self.codes = {name: _codes(table.column(name)) for name in words}

    @property
    def numbers(self) -> list[int]:
        """Positions of the numbers."""
        return list(range(len(self.numeric)))

    @property
    def categorical(self) -> list[int]:
        """Positions of the category codes."""
        return list(range(len(self.numeric), len(self.numeric) + len(self.codes)))

    def encode(self, table: Dataset) -> np.ndarray:
        """Return the matrix (rows, columns) of a table with these columns."""
        found = [_floats(table.column(name)) for name in self.numeric]
        for name, codes in self.codes.items():
            found.append(np.array([codes.get(_word(v), np.nan) for v in table.column(name)]))
        return np.column_stack(found)


def _word(value: Any) -> Any:
    return None if value is None else str(value)


def _codes(values: np.ndarray) -> dict[Any, int]:
    words, counts = np.unique([_word(v) for v in values if v is not None], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
    return {str(words[i]): place for place, i in enumerate(order)}


def _floats(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "M":
        days = values.astype("datetime64[s]").astype(np.float64) / 86400
        return np.where(np.isnat(values), np.nan, days)
    if values.dtype == object:  # booleans with gaps
        return np.array([np.nan if v is None else float(v) for v in values])
    return values.astype(np.float64)
