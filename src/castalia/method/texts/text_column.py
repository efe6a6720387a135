"""Which column of a table holds texts, and texts that are there twice."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np

from castalia.data import Dataset, Schema
from castalia.data.packed_files import bare_name
from castalia.data.tables.text_file import sample_lines
from castalia.errors import CastaliaError, InvalidData, InvalidParameter
from castalia.method.duplicate_rows import find_copies
from castalia.method.fit_table import load_table
from castalia.utils.text import did_you_mean, listing, plural

__all__ = ["choose_column", "column_texts", "find_column", "may_hold_texts", "without_copies"]

SENTENCE = 8  # words in the mean from which a column is read rather than left out
SAMPLED = 50  # rows of a file that say whether a column may hold texts
SHOWN = 5  # rows in a remark
_TABLES = (".csv", ".tsv", ".txt")
_OTHERS = (".parquet", ".pq", ".json", ".jsonl", ".ndjson", ".xlsx")


def may_hold_texts(data: Any, target: str | None, header: bool) -> bool:
    """Whether a table has a column to be read as text, or such a column as its target.

    Only the beginning of a CSV file is inspected before the table is read.
    """
    if target is None or not _readable(data):
        return False
    try:
        if isinstance(data, str | os.PathLike) and not _worded(Path(data)):
            return False
        table, _ = load_table(data, header=header)
        known = target in table.columns
    except CastaliaError:  # reported when the table is read
        return False
    return known and (find_column(table, target) is not None or _is_prose(table, target))


def _readable(data: Any) -> bool:
    if not isinstance(data, str | os.PathLike):
        return isinstance(data, Dataset) or hasattr(data, "columns")
    path = Path(data)
    name = bare_name(path)
    return path.is_file() and name.endswith((*_TABLES, *_OTHERS))


def _worded(path: Path) -> bool:
    """Whether the first rows of a file have values of several words."""
    if bare_name(path).endswith(_OTHERS):
        return True
    lines = sample_lines(path, SAMPLED + 1)
    delimiter = max(",\t;|", key=lines[0].count) if lines else ","
    rows = [row for row in csv.reader(lines, delimiter=delimiter) if row][1:]
    columns = zip(*(row for row in rows if len(row) == len(rows[0])), strict=True) if rows else ()
    return any(np.mean([value.count(" ") for value in column]) >= 1 for column in columns)


def find_column(data: Dataset, target: str | None) -> str | None:
    """Return the column that is to be read as text, or None.

    It is the one with the longest texts, if they are sentences, or if there is nothing else to
    learn from: names and addresses beside other columns are left out.

    Examples
    --------
    >>> from castalia.data import datasets, read
    >>> find_column(datasets.load("penguins"), "species") is None
    True
    """
    schema = data.schema
    texts = [c.name for c in schema if c.kind == "text" and c.name != target]
    if not texts:
        return None
    words = [_words(data, name) for name in texts]
    best = int(np.argmax(words))
    return texts[best] if words[best] >= SENTENCE or not others(schema, [target]) else None


def others(schema: Schema, left_out: list[str | None]) -> list[str]:
    """Return the columns that a table model can learn from, some left out."""
    return [c.name for c in schema if c.used and not c.infinite and c.name not in left_out]


def _words(data: Dataset, name: str) -> float:
    """Return how many words a value has in the mean."""
    found = [len(str(text).split()) for text in data.column(name) if text is not None]
    return float(np.mean(found)) if found else 0.0


def _is_prose(data: Dataset, name: str) -> bool:
    return data.schema[name].kind == "text" and _words(data, name) >= SENTENCE


def choose_column(data: Dataset, asked: str | None, target: str, owner: str = "fit") -> str:
    """Return the column of texts: the one asked for, or the one that is found."""
    column = data.schema[target] if target in data.columns else None
    if column is not None and column.kind == "text":
        few = [c.name for c in data.schema if c.kind in ("categorical", "boolean")]
        near = f" --target {few[0]} may be meant." if few else ""
        raise InvalidData(
            f"{owner}: target `{target}` must hold the labels of texts; it holds "
            f"{column.unique:,} different texts in {plural(len(data), 'row')}.{near}"
        )
    if asked is None:
        found = find_column(data, target)
        if found is None:
            raise InvalidData(
                f"{owner}: {data.source} must have a column of texts; none of "
                f"{listing(data.columns, 'and', 8)} holds some. Name one with --text."
            )
        return found
    known = [name for name in data.columns if name != target]
    if asked not in known:
        raise InvalidParameter(
            f"{owner}: `text` must be a column beside the target, {listing(known, 'or', 8)}; got "
            f"{asked!r}.{did_you_mean(asked, known)}"
        )
    return asked


def column_texts(data: Dataset, column: str, owner: str) -> tuple[np.ndarray, list[str]]:
    """Return which rows of a column hold a text, and a remark on the others."""
    values = data.column(column)
    if values.dtype != object or not any(isinstance(v, str) for v in values):
        raise InvalidData(
            f"{owner}: column `{column}` must hold texts; it is {data.schema[column].kind}."
        )
    there = np.array([isinstance(v, str) and bool(v.strip()) for v in values])
    if there.all():
        return np.flatnonzero(there), []
    lines = listing(np.flatnonzero(~there).tolist(), "and", SHOWN).replace("`", "")
    gone = plural(int((~there).sum()), "row")
    return np.flatnonzero(there), [f"{gone} left out, as `{column}` is empty: rows {lines}."]


def without_copies(texts: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return the rows with each text once, and remarks on what was left out."""
    plain = np.array([" ".join(str(text).split()) for text in texts])
    found, notes = find_copies(plain, labels), []
    if found.copied.any():
        notes.append(
            f"{plural(int(found.copied.sum()), 'text')} left out as exact copies of others, so "
            "that none is both trained on and tested."
        )
    if found.disputed.any():
        notes.append(
            f"{plural(int(found.disputed.sum()), 'text')} left out, for the same text has several "
            "labels."
        )
    return found.kept, notes
