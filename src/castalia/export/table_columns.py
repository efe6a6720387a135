"""The columns of a table as an exported graph takes them: numbers, and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from castalia.data.tables.arrow_columns import strings
from castalia.data.tables.calendar_columns import with_calendar
from castalia.data.tables.column_codes import numbers
from castalia.data.tables.table_reader import read_table
from castalia.errors import InvalidData
from castalia.utils.text import did_you_mean, listing

__all__ = ["column_values", "word_codes"]


def column_values(X: Any, columns: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return columns by name: float64 with NaN for gaps, or words with None for gaps.

    Parameters
    ----------
    X
        A table, as ``castalia.read`` takes it.
    columns
        The kind of each column: numeric, boolean, date or categorical.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [3, None], "city": ["Pisa", None]})
    >>> found = column_values(frame, {"age": "numeric", "city": "categorical"})
    >>> found["age"].tolist(), found["city"].tolist()
    ([3.0, nan], ['Pisa', None])
    """
    table = read_table(X)
    if not set(columns) <= set(table.columns):
        table = with_calendar(table, every=True)
    absent = [name for name in columns if name not in table.columns]
    if absent:
        raise InvalidData(
            f"run: {table.source} must have every column that the model uses; "
            f"{listing(absent, 'and')} {'is' if len(absent) == 1 else 'are'} missing."
            f"{did_you_mean(absent[0], table.columns)}"
        )
    chunks = pa.Table.from_batches(
        [batch for chunk in table.select(list(columns)).chunks() for batch in chunk.to_batches()]
    ).combine_chunks()
    return {name: _values(chunks, name, kind) for name, kind in columns.items()}


def _values(table: pa.Table, name: str, kind: str) -> np.ndarray:
    column = table.column(name).combine_chunks()
    if kind == "categorical":
        return np.array(strings(column).to_pylist(), dtype=object)
    found = numbers(column, name, kind, 0)
    if np.isinf(found).any():
        row = int(np.isinf(found).argmax())
        raise InvalidData(
            f"run: column `{name}` must hold finite numbers; got {found[row]} in row {row}. "
            "Leave the cell empty if it stands for a missing value."
        )
    return found


def word_codes(values: np.ndarray, words: Sequence[str]) -> np.ndarray:
    """Return each word's place, counted from 1; 0 for missing and unknown ones.

    >>> word_codes(np.array(["b", None, "z"], dtype=object), ["a", "b"]).tolist()
    [2, 0, 0]
    """
    places = {word: place for place, word in enumerate(words, 1)}
    return np.array([places.get(value, 0) for value in values], dtype=np.int64)
