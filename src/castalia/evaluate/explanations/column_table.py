"""A table whose rows exchange values column by column; every explanation is made of such tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from castalia.data import Dataset
from castalia.data.tables.memory_source import MemorySource, array_names
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["ColumnTable", "column_place"]


class ColumnTable:
    """The user's own table: columns with their names, and rows that mix their values.

    No value is made up: whatever a model is asked about holds values that stand in the table, so
    categories, dates and gaps need no care.

    Parameters
    ----------
    X
        An array, a pandas or polars frame, an Arrow table, or a ``Dataset``.
    groups
        Columns that go together, such as correlated ones, by the name of their group. Others stand
        for themselves.

    Attributes
    ----------
    names
        Names of the groups and single columns, P of them.

    Examples
    --------
    >>> table = ColumnTable(np.array([[1, 2], [3, 4]]))
    >>> table.names, table.mixed(np.array([[0, 1], [1, 0]])).tolist()
    (['x0', 'x1'], [[1, 4], [3, 2]])
    """

    def __init__(self, X: Any, groups: Mapping[str, Sequence[str]] | None = None) -> None:
        self.X = np.asarray(X) if isinstance(X, list | tuple) else X
        self.columns = _columns(self.X)
        self.names, self.player = _players(self.columns, groups or {})
        self._arrow: pa.Table | None = None

    def __len__(self) -> int:
        return len(self.X)

    def mixed(self, rows: np.ndarray) -> Any:
        """Return a table of M rows; row m has its p-th column from row ``rows[m, p]``, (M, P)."""
        places = rows[:, self.player]  # (M, columns)
        if isinstance(self.X, np.ndarray):
            return np.take_along_axis(self.X, places, axis=0)
        if isinstance(self.X, Dataset):
            if self._arrow is None:
                self._arrow = self.X.table().combine_chunks()
            taken = [column.take(places[:, i]) for i, column in enumerate(self._arrow.columns)]
            return _like(self.X, pa.table(taken, names=self.columns))
        frame = nw.from_native(self.X, eager_only=True)
        parts = [
            nw.maybe_reset_index(frame[places[:, i].tolist(), [name]])
            for i, name in enumerate(frame.columns)
        ]
        return nw.concat(parts, how="horizontal").to_native()

    def values(self, player: int) -> np.ndarray:
        """Return the values of a column, (N,); those of a group are written side by side."""
        found = [self._column(i) for i in np.flatnonzero(self.player == player).tolist()]
        if len(found) == 1:
            return found[0]
        rows = zip(*(column.tolist() for column in found), strict=True)
        return np.array([", ".join(map(str, row)) for row in rows], dtype=object)

    def _column(self, place: int) -> np.ndarray:
        if isinstance(self.X, np.ndarray):
            return self.X[:, place]
        if isinstance(self.X, Dataset):
            return self.X.column(self.columns[place])
        return nw.from_native(self.X, eager_only=True)[:, place].to_numpy()

    def beside(self, other: Any) -> ColumnTable:
        """Return this table with the rows of another one, which has its columns, below it."""
        if isinstance(other, list | tuple):
            other = np.asarray(other)
        if isinstance(self.X, Dataset) != isinstance(other, Dataset) or isinstance(
            self.X, np.ndarray
        ) != isinstance(other, np.ndarray):
            raise InvalidData(
                "explain: rows and background must be of one kind; got "
                f"{type(self.X).__name__} and {type(other).__name__}."
            )
        joined = copy(self)
        joined.X, joined._arrow = _below(self.X, other, self.columns), None
        return joined


def column_place(table: ColumnTable, column: str | int, owner: str) -> int:
    """Return the place of a column by its name, or by its number."""
    if isinstance(column, int) and 0 <= column < len(table.names):
        return column
    if column not in table.names:
        near = did_you_mean(str(column), table.names)
        raise InvalidParameter(
            f"{owner}: `column` must be one of {listing(table.names, 'or', 8)}; got {column!r}."
            f"{near}"
        )
    return table.names.index(str(column))


def _columns(X: Any) -> list[str]:
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise InvalidData(
                f"explain: X must be a table of rows and columns; got shape {X.shape}."
            )
        return array_names(X.shape[1])
    if isinstance(X, Dataset):
        return X.columns
    if not hasattr(X, "columns"):
        raise InvalidData(
            "explain: X must be an array, a pandas or polars frame, or a data set; got "
            f"{type(X).__name__}."
        )
    return [str(name) for name in nw.from_native(X, eager_only=True).columns]


def _players(
    columns: list[str], groups: Mapping[str, Sequence[str]]
) -> tuple[list[str], np.ndarray]:
    """Return the names of groups and single columns, and the number of each column's."""
    group_of: dict[str, str] = {}
    for group, members in groups.items():
        for name in members:
            if name not in columns or name in group_of:
                why = "stands in two groups" if name in group_of else "is no column"
                raise InvalidParameter(
                    f"explain: `groups` must hold each column once; `{name}` {why}."
                    f"{did_you_mean(name, columns) if name not in columns else ''}"
                )
            group_of[name] = group
    owners = [group_of.get(name, name) for name in columns]
    names = list(dict.fromkeys(owners))
    return names, np.array([names.index(name) for name in owners])


def _like(data: Dataset, table: pa.Table) -> Dataset:
    declared = {c.name for c in data.schema if c.kind == "categorical"}
    return Dataset(MemorySource(table, data.source, None, declared, named=data.named))


def _below(first: Any, second: Any, columns: list[str]) -> Any:
    """Return the rows of two tables one after the other."""
    if isinstance(first, np.ndarray):
        if second.ndim != 2 or second.shape[1] != first.shape[1]:
            raise InvalidData(
                f"explain: rows and background must have the same columns; got {first.shape[1]} "
                f"and shape {second.shape}."
            )
        return np.concatenate([first, second])
    names = second.columns if isinstance(second, Dataset) else _columns(second)
    absent = [name for name in columns if name not in names]
    if absent:
        raise InvalidData(
            f"explain: the background must have every column of the rows; it lacks "
            f"{listing(absent, 'and', 6)}."
        )
    if not isinstance(first, Dataset):
        parts = [nw.from_native(part, eager_only=True).select(columns) for part in (first, second)]
        return nw.concat(parts, how="vertical").to_native()
    try:
        whole = pa.concat_tables(
            [first.table(), second.select(columns).table()], promote_options="permissive"
        )
    except pa.ArrowTypeError as error:
        raise InvalidData(
            f"explain: the columns of {first.source} and {second.source} must hold the same kinds "
            f"of values; {error}."
        ) from error
    return _like(first, whole)
