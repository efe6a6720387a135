"""What is known of a table: its columns, their kinds, ranges and gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np

from castalia.data.tables.column_names import check_name
from castalia.utils.text import number, shorten

__all__ = ["KINDS", "UNUSED", "Column", "Schema"]

KINDS = ("numeric", "categorical", "boolean", "date", "text", "identifier", "constant")
UNUSED = ("text", "identifier", "constant")  # kinds that are reported and not encoded

HEAD = ("column", "kind", "missing", "distinct", "values", "note")
_VALUES = 44  # characters of the values column of a summary


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name, kind
        What it is called and what it is, one of `KINDS`.
    missing
        Number of missing values.
    unique
        Number of distinct values, missing ones aside; a lower bound if `many`.
    minimum, maximum, mean, std
        Of numbers, booleans as 0 and 1, and dates as days since 1970; None for other kinds.
    categories
        Values of a column of words, most frequent first, at most 1000.
    counts
        Value to count, most frequent first, at most 1000.
    note
        A remark for people.
    many
        Whether the distinct values were too many to count.
    infinite
        ``(row, value)`` of the first infinity, or None.
    """

    name: str
    kind: str
    missing: int = 0
    unique: int = 0
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None
    std: float | None = None
    categories: tuple[str, ...] = ()
    counts: Mapping[Any, int] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    note: str = ""
    many: bool = False
    infinite: tuple[int, float] | None = None

    @property
    def used(self) -> bool:
        """Whether an encoder uses it."""
        return self.kind not in UNUSED

    def values(self) -> str:
        """Return its range or its most frequent values, in a few words."""
        if self.kind == "date" and self.minimum is not None and self.maximum is not None:
            return f"{_day(self.minimum)} … {_day(self.maximum)}"
        if (
            self.kind in ("numeric", "identifier")
            and self.minimum is not None
            and self.maximum is not None
        ):
            return f"{_short(self.minimum)} … {_short(self.maximum)}"
        return _example(self.counts) if self.kind == "text" else _top(self.counts)


@dataclass(frozen=True)
class Schema:
    """The columns of a table, in order.

    Examples
    --------
    >>> from castalia.data import datasets
    >>> schema = datasets.load("penguins").schema
    >>> schema["island"].kind, schema["island"].unique, schema.names("boolean")
    ('categorical', 3, [])
    >>> schema.balance("species")
    {'Adelie': 152, 'Gentoo': 124, 'Chinstrap': 68}
    """

    rows: int
    columns: tuple[Column, ...]

    def __getitem__(self, name: str) -> Column:
        check_name(name, [column.name for column in self.columns], "the table")
        return next(column for column in self.columns if column.name == name)

    def __iter__(self) -> Any:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def names(self, kind: str | None = None) -> list[str]:
        """Return the names of all columns, or of those of one kind."""
        return [column.name for column in self.columns if kind in (None, column.kind)]

    def balance(self, column: str) -> dict[Any, int]:
        """Return how often each value of a column occurs, most frequent first."""
        return dict(self[column].counts)

    def summary(self) -> str:
        """Return the columns as a table to read."""
        lines = [HEAD, *(self._line(column) for column in self.columns)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
        return "\n".join(_aligned(line, widths) for line in lines)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a row for each column."""
        cells = [f"<th>{word}</th>" for word in HEAD]
        rows = ["".join(f"<td>{escape(c)}</td>" for c in self._line(each)) for each in self.columns]
        body = "".join(f"<tr>{row}</tr>" for row in ("".join(cells), *rows))
        return f"<table><caption>{self.rows:,} rows</caption>{body}</table>"

    def _line(self, column: Column) -> tuple[str, ...]:
        missing = f"{100 * column.missing / max(self.rows, 1):.1f} %" if column.missing else "·"
        distinct = f"{'> ' if column.many else ''}{column.unique:,}"
        note = column.note or ("" if column.used else "not used")
        return shorten(column.name, 30), column.kind, missing, distinct, column.values(), note


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    right = {2, 3}  # the columns of numbers
    cells = [
        c.rjust(w) if i in right else c.ljust(w)
        for i, (c, w) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) < 1e7 and value == int(value) else number(value)


def _day(days: float) -> str:
    try:
        return str(np.datetime64(int(days // 1), "D"))
    except (OverflowError, ValueError):
        return number(days)


def _example(counts: Mapping[Any, int]) -> str:
    return shorten(repr(" ".join(str(next(iter(counts), "")).split())), _VALUES)


def _top(counts: Mapping[Any, int]) -> str:
    words: list[str] = []
    for value in counts:
        word = shorten(" ".join(str(value).split()), 24)
        if sum(len(w) + 2 for w in words) + len(word) > _VALUES:
            return ", ".join([*words, "…"])
        words.append(word)
    return ", ".join(words)
