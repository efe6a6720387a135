"""Reading the table of a fit, and which of its columns can be used."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from castalia.data import Dataset, Schema, datasets, read
from castalia.data.broken_files import Broken
from castalia.data.packed_files import bare_name
from castalia.data.tables.csv_source import CsvSource
from castalia.data.tables.table_reader import in_memory
from castalia.data.tables.text_file import inspect
from castalia.errors import CastaliaWarning, InvalidData
from castalia.utils.text import listing, plural

__all__ = ["load_table", "only_labelled", "usable_columns"]

_TEXT = (".csv", ".tsv", ".txt")
_ADD = "Add a header line if it is data."
_SAY = "If it is data, say --no-header; columns are then column_1, column_2, …."


def load_table(
    source: Any,
    *,
    target: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    formats: Mapping[str, str] | None = None,
    skip_broken: bool = False,
) -> tuple[Dataset, list[str]]:
    """Read a table into memory; return it with remarks for people.

    Parameters
    ----------
    source
        What ``castalia.read`` takes, or the name of a known table.
    target
        The column to predict.
    header
        Whether a text file starts with column names; if not, they are column_1, column_2, ….
    encoding
        Of a text file; None: found out.
    formats
        How columns are written where they could be read in several ways; see ``castalia.read``.
    skip_broken
        Whether files of several that are damaged or cut off are left out, with a remark.
    """
    broken: Broken = "skip" if skip_broken else "raise"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", CastaliaWarning)
        try:
            data = _known(source) or (
                read(source, stream=False, encoding=encoding, formats=formats, broken=broken)
                if header
                else _headless(source, encoding, formats)
            )
        except InvalidData as error:
            raise InvalidData(str(error).replace("add a header line", "say --no-header")) from error
    notes = [str(w.message).replace(_ADD, _SAY) for w in seen]
    if target is None:
        return data, notes
    try:
        return data.with_target(target), notes
    except InvalidData as error:
        hint = next((f" {note}" for note in notes if _SAY in note), "")
        raise InvalidData(f"{error}{hint}") from error


def only_labelled(data: Dataset, wanted: bool) -> tuple[Dataset, list[str]]:
    """Leave out rows without a target, where that is wanted, and say how many they are."""
    if not wanted:
        return data, []
    kept, missing = data.labelled()
    if not len(kept):
        raise InvalidData(
            f"fit: target `{data.target}` of {data.source} must have values; all of them are "
            "missing."
        )
    verb = "has" if missing == 1 else "have"
    note = f"{plural(missing, 'row')} of {len(data):,} {verb} no `{data.target}`: left out."
    return kept, [note] if missing else []


def _known(source: Any) -> Dataset | None:
    """Return a table that goes by a name, such as penguins, unless a file has that name."""
    known = isinstance(source, str) and source in datasets.available()
    return datasets.load(source) if known and not os.path.exists(source) else None


def _headless(source: Any, encoding: str | None, formats: Mapping[str, str] | None) -> Dataset:
    if not isinstance(source, str | os.PathLike):
        return read(source)
    path = Path(source)
    name = bare_name(path)
    if not path.is_file() or not name.endswith(_TEXT):
        # Says what is wrong, or has column names of its own.
        return read(source, stream=False, encoding=encoding)
    line = inspect(path, encoding).head(1)[0]
    delimiter = max(",\t;|", key=line.count)
    fields = next(csv.reader([line], delimiter=delimiter))
    names = [f"column_{i}" for i in range(1, len(fields) + 1)]
    origin = CsvSource(path, delimiter, names=names, encoding=encoding, formats=formats)
    return in_memory(Dataset(origin))


def usable_columns(schema: Schema, left_out: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns to learn from, and a remark on each that is not used."""
    used, notes, unused = [], [], []
    for column in schema:
        if column.name in left_out:
            continue
        if column.infinite:
            row, value = column.infinite
            raise InvalidData(
                f"fit: column `{column.name}` must hold finite numbers; got {value} in row {row}. "
                "Replace infinity by an empty field if it stands for a missing value."
            )
        if column.used:
            used.append(column.name)
            notes += [f"Column `{column.name}`: {column.note}."] if column.note else []
        else:
            unused.append(f"{column.name} ({column.note.partition(';')[0]})")
    if not used:
        unused = [c.name for c in schema if c.name not in left_out]
        beside = " beside the target" if left_out else ""
        raise InvalidData(
            f"fit: the table must have a column to learn from; {plural(len(unused), 'column')}"
            f"{beside} hold one value, free text or identifiers only: {listing(unused, 'and')}."
        )
    if unused:
        notes.insert(0, f"Not used: {', '.join(unused)}.")
    return used, notes
