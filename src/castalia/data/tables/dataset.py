"""A table, in memory or on disk, seen the same way."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from castalia.data.tables.arrow_columns import reslice, values
from castalia.data.tables.column_moments import CHUNK
from castalia.data.tables.column_names import check_name
from castalia.data.tables.column_profile import Profile
from castalia.data.tables.memory_source import MemorySource
from castalia.data.tables.schema import Schema
from castalia.data.tables.table_source import TableSource
from castalia.data.tables.value_formats import FORMATS
from castalia.errors import InvalidData
from castalia.utils.text import plural

__all__ = ["Dataset"]


class Dataset:
    """A table with named, typed columns and, perhaps, a target.

    Made by `castalia.data.read`. A streaming data set reads its file again for every pass and holds
    one chunk at a time; the numbers that come out are the same.

    Parameters
    ----------
    origin
        Where rows come from.
    target
        The column to predict.
    streaming
        Whether rows stay on disk.
    columns
        A selection of the columns; all by default.

    Examples
    --------
    >>> from castalia.data import read
    >>> data = read(np.arange(6.0).reshape(3, 2), target="x1")
    >>> len(data), data.columns, data.features().columns
    (3, ['x0', 'x1'], ['x0'])
    """

    def __init__(
        self,
        origin: TableSource,
        *,
        target: str | None = None,
        streaming: bool = False,
        columns: Sequence[str] | None = None,
    ) -> None:
        self._origin, self.streaming = origin, streaming
        self._columns = list(origin.names if columns is None else columns)
        self.target = target
        self._schema: Schema | None = None
        if target is not None:
            check_name(target, self._columns, origin.text, "target")
            if len(self._columns) == 1:
                raise InvalidData(
                    f"read: {origin.text} must have a column beside the target `{target}`; "
                    "it has only that one, so nothing is left to learn from."
                )

    def __len__(self) -> int:
        return int(self._origin.rows)

    def __repr__(self) -> str:
        where = ", streaming" if self.streaming else ""
        target = f", target={self.target!r}" if self.target is not None else ""
        size = f"{plural(len(self), 'row')} x {plural(len(self._columns), 'column')}"
        return f"Dataset({self.source}: {size}{target}{where})"

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self._columns)

    @property
    def source(self) -> str:
        """What messages call the table."""
        return str(self._origin.text)

    @property
    def named(self) -> bool:
        """Whether the columns have names of their own; those of an array have not."""
        return self._origin.named

    @property
    def formats(self) -> dict[str, str]:
        """How numbers and dates are written, of columns that are no plain ones."""
        known = {form.name for form in FORMATS}
        return {name: note for name, note in self._origin.notes.items() if note in known}

    @property
    def schema(self) -> Schema:
        """What the columns are; found by one pass when first asked for."""
        if self._schema is None:
            self._schema = self._find_schema()
        return self._schema

    def _find_schema(self) -> Schema:
        profiles = [Profile(field.name, field.type) for field in self.arrow_schema]
        for chunk in self.chunks():
            for profile in profiles:
                profile.add(chunk.column(profile.name).combine_chunks())
        notes, declared = self._origin.notes, self._origin.categorical
        found = (p.column(notes.get(p.name, ""), p.name in declared) for p in profiles)
        return Schema(len(self), tuple(found))

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and Arrow types of the columns."""
        return pa.schema([self._origin.schema.field(name) for name in self._columns])

    def chunks(self, rows: int = CHUNK) -> Iterator[pa.Table]:
        """Yield the table in pieces of exactly ``rows`` rows; only the last may be shorter."""
        return reslice(self._origin.batches(self._columns), rows, self.arrow_schema)

    def table(self) -> pa.Table:
        """Return the whole table; a streaming one is read into memory."""
        return pa.Table.from_batches(self._origin.batches(self._columns), self.arrow_schema)

    def features(self) -> Dataset:
        """Return the same rows without the target."""
        if self.target is None:
            return self
        return self._with([name for name in self._columns if name != self.target], None)

    def select(self, columns: Sequence[str]) -> Dataset:
        """Return the same rows with these columns only, in this order."""
        for name in columns:
            check_name(name, self._columns, self.source)
        return self._with(columns, None)

    def with_target(self, target: str | None) -> Dataset:
        """Return the same rows with another target."""
        return self._with(self._columns, target)

    def _with(self, columns: Sequence[str], target: str | None) -> Dataset:
        other = Dataset(self._origin, target=target, streaming=self.streaming, columns=columns)
        if self._schema is not None:
            other._schema = Schema(len(self), tuple(self._schema[name] for name in columns))
        return other

    def with_columns(
        self, columns: Mapping[str, pa.Array], categorical: Collection[str] = ()
    ) -> Dataset:
        """Return the same rows with further columns, or others of the same names; in memory.

        Parameters
        ----------
        columns
            Arrow arrays by name.
        categorical
            Those of them whose words are categories, however many there are.
        """
        table, origin = self.table(), self._origin
        for name, cells in columns.items():
            known = name in table.column_names
            place = table.column_names.index(name) if known else table.num_columns
            table = (table.set_column if known else table.add_column)(place, name, cells)
        declared = {*origin.categorical, *categorical}
        notes = {name: note for name, note in origin.notes.items() if name not in columns}
        made = MemorySource(table, origin.text, notes, declared, named=self.named)
        return Dataset(made, target=self.target)

    def column(self, name: str) -> NDArray[Any]:
        """Return a whole column: missing numbers as NaN, dates as NaT, other values as None."""
        check_name(name, self._columns, self.source)
        return values(self.select([name]).table().column(0))

    def labels(self) -> NDArray[Any]:
        """Return the target's values, none of them missing or infinite.

        Raises
        ------
        InvalidData
            If there is no target, or a value of it is missing or infinite; the first row is named.
        """
        if self.target is None:
            raise InvalidData(
                f"Dataset.labels: {self.source} must have a target. Read it with `target=...`."
            )
        found = self.column(self.target)
        if found.dtype.kind in "biu":
            return found
        absent = (
            np.array([v is None for v in found])
            if found.dtype == object
            else np.isnan(found.astype(float))
        )
        if found.dtype.kind == "M":
            absent = np.isnat(found)
        remedy = "Fill the column, or leave those rows out (--drop-missing, `Dataset.labelled`)"
        self._refuse(absent, "missing (NaN)", remedy)
        if found.dtype.kind == "f":
            self._refuse(np.isinf(found), "infinite (inf)", "Correct or drop those rows")
        return found

    def labelled(self) -> tuple[Dataset, int]:
        """Return the rows whose target is there, and the number of those whose target is missing.

        Examples
        --------
        >>> from castalia.data import read
        >>> data, missing = read([[1.0, 0.0], [2.0, None]], target="x1").labelled()
        >>> len(data), missing
        (1, 1)
        """
        if self.target is None:
            raise InvalidData(
                f"Dataset.labelled: {self.source} must have a target. Read it with `target=...`."
            )
        there = pc.is_valid(self.select([self.target]).table().column(0))
        kept = np.flatnonzero(there.to_numpy() & self._is_number(self.target))
        missing = len(self) - len(kept)
        return (self.take(kept) if missing else self), missing

    def _is_number(self, name: str) -> NDArray[np.bool_]:
        """Return where a column of floats is no NaN; everywhere for other types."""
        found = self.column(name)
        return ~np.isnan(found) if found.dtype.kind == "f" else np.ones(len(self), bool)

    def _refuse(self, bad: NDArray[np.bool_], what: str, remedy: str) -> None:
        if bad.any():
            verb = "values are" if bad.sum() > 1 else "value is"
            raise InvalidData(
                f"read: target `{self.target}` of {self.source} must have a value in every row; "
                f"{bad.sum():,} of "
                f"{len(bad):,} {verb} {what}, first in row {int(bad.argmax())}. {remedy}."
            )

    def take(self, index: ArrayLike) -> Dataset:
        """Return the rows at these positions, or where a mask is true; for data in memory."""
        if self.streaming:
            raise InvalidData(
                f"Dataset.take: {self.source} must be in memory; it is streamed. Read it with "
                "`stream=False`."
            )
        rows = np.asarray(index)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        origin = self._origin
        table = self.table().take(np.where(rows < 0, rows + len(self), rows))
        kinds = origin.categorical
        part = MemorySource(table, origin.text, origin.notes, kinds, named=self.named)
        return Dataset(part, target=self.target)

    def summary(self) -> str:
        """Return a page about the table for a person to read."""
        target = f", target {self.target}" if self.target is not None else ""
        size = f"{plural(len(self), 'row')}, {plural(len(self._columns), 'column')}"
        parts = [f"{self.source}: {size}{target}", self.schema.summary()]
        if self.target is not None and (balance := self._balance(self.target)):
            parts.append(balance)
        return "\n\n".join(parts)

    def _balance(self, target: str) -> str:
        column = self.schema[target]
        total = sum(column.counts.values())
        if column.many or not 0 < len(column.counts) <= 20:
            return ""
        shares = (f"{value} {100 * n / total:.1f} % ({n:,})" for value, n in column.counts.items())
        return f"{target}: " + ", ".join(shares)

    def fingerprint(self) -> str:
        """Return a hash of the content; of path, size, time and types for a streaming one."""
        found = hashlib.sha256(f"{len(self)} {self._columns} {self.arrow_schema}".encode())
        if self.streaming:
            for path in self._origin.files:
                found.update(_state(path).encode())
        else:
            for chunk in self.chunks():
                for column in chunk.columns:
                    _hash(found, column.combine_chunks())
        return found.hexdigest()


def _state(path: Any) -> str:
    """Return name, size and time of a file; of one that is elsewhere, its name."""
    place = Path(path)
    if not place.exists():
        return str(path)
    state = place.stat()
    return f"{place.resolve()} {state.st_size} {state.st_mtime_ns}"


def _hash(found: Any, column: Any) -> None:
    """Hash values and gaps, not the bytes that happen to lie under a gap."""
    found.update(np.packbits(pc.is_valid(column).to_numpy(zero_copy_only=False)).tobytes())
    if pa.types.is_string(column.type):
        whole = pc.fill_null(column, "")
        found.update(pc.binary_length(whole).to_numpy(zero_copy_only=False).tobytes())
        found.update("".join(whole.to_pylist()).encode())
    elif not pa.types.is_null(column.type):
        found.update(np.ascontiguousarray(_filled(column)).tobytes())


def _filled(column: Any) -> NDArray[Any]:
    plain = pc.cast(column, pa.int64()) if pa.types.is_timestamp(column.type) else column
    zero = pa.scalar(False if pa.types.is_boolean(plain.type) else 0, plain.type)
    return np.asarray(pc.fill_null(plain, zero).to_numpy(zero_copy_only=False))
