"""Several files of one table: a folder, a pattern such as ``parts/*.parquet``, or a list."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from castalia.data.packed_files import bare_name
from castalia.data.tables.joined_schema import joined_schema
from castalia.data.tables.table_source import TableSource
from castalia.data.url_files import is_url
from castalia.errors import DataWarning, InvalidData
from castalia.utils.text import plural

__all__ = ["ENDINGS", "JoinedSource", "drop_empty", "partition", "table_files"]

ENDINGS = (".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson", ".arrow", ".feather")


class JoinedSource(TableSource):
    """The rows of several sources, one after the other.

    Columns are found by name. Where their types differ, the wider one is taken, such as float for
    whole numbers; a file whose column cannot be read so is named.

    Parameters
    ----------
    parts
        Sources, one a file.
    text
        What messages call them together.
    constants
        Columns that the path of each part gives, such as ``year=2020``, by name.
    """

    def __init__(
        self, parts: Sequence[Any], text: str, constants: Sequence[dict[str, Any]] = ()
    ) -> None:
        self.parts, self.text = list(parts), text
        self.constants = list(constants) or [{} for _ in parts]
        self.schema = self._joined()
        self.names, self.rows = list(self.schema.names), sum(part.rows for part in parts)
        self.notes = {name: note for part in reversed(parts) for name, note in part.notes.items()}
        self.files = [file for part in parts for file in part.files]
        self.categorical = set[str]().union(*(part.categorical for part in parts))

    def _joined(self) -> pa.Schema:
        schema = joined_schema([p.schema for p in self.parts], [p.text for p in self.parts])
        for name, value in self.constants[0].items():
            schema = schema.append(pa.field(name, pa.scalar(value).type))
        return schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, these columns only."""
        wanted = [self.schema.field(name).type for name in columns]
        for part, constants in zip(self.parts, self.constants, strict=True):
            own = [name for name in columns if name not in constants]
            for batch in part.batches(own or part.schema.names[:1]):
                found = [
                    pa.repeat(constants[name], len(batch))
                    if name in constants
                    else pc.cast(batch.column(name), kind, safe=False)
                    for name, kind in zip(columns, wanted, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(found, names=list(columns))


def table_files(source: Any) -> list[Path] | None:
    """Return the files of a table that lies in several; None: the source is something else.

    Parameters
    ----------
    source
        A list of paths; a pattern with ``*``, ``?`` or ``[``; or a folder that holds tables of one
        format and nothing else. Files that begin with a dot or ``_`` are passed over.
    """
    if isinstance(source, list | tuple):
        named = bool(source) and all(isinstance(part, str | os.PathLike) for part in source)
        files = [Path(part) for part in source] if named else []
        return files if files and all(map(_ending, files)) else None
    if not isinstance(source, str | os.PathLike) or is_url(source):
        return None
    path = Path(source)
    if path.is_dir():
        return _inside(path)
    if not glob.has_magic(os.fspath(source)) or path.exists():
        return None
    files = sorted(Path(found) for found in glob.glob(os.fspath(source), recursive=True))
    if not files and _ending(path):
        raise InvalidData(f"read: `{source}` must match a file; it matches none.")
    return files if files and all(map(_ending, files)) else None


def _ending(path: Path) -> str:
    """Return the ending of a table's name, that of its packing aside; nothing: it is none."""
    ending = Path(bare_name(path)).suffix.lower()
    return ending if ending in ENDINGS else ""


def _inside(folder: Path) -> list[Path] | None:
    """Return the tables below a folder; None at the first file that is none, or another format."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        for name in sorted(names):
            if name[0] in "._":
                continue
            path = Path(place) / name
            if not _ending(path) or (found and _ending(path) != _ending(found[0])):
                return None
            found.append(path)
    return found or None


def partition(path: Path) -> dict[str, Any]:
    """Return the columns that a path gives by folders such as ``year=2020``.

    >>> partition(Path("sales/year=2020/shop=a/part-0.parquet"))
    {'year': 2020, 'shop': 'a'}
    """
    pairs = (part.split("=", 1) for part in path.parts[:-1] if "=" in part)
    return {name: int(value) if value.isdecimal() else value for name, value in pairs if name}


def drop_empty(files: Sequence[Path], rows: Sequence[int], text: str) -> list[Path]:
    """Return the files that have rows, and warn of those that have none."""
    kept = [path for path, count in zip(files, rows, strict=True) if count]
    if len(kept) < len(files):
        lost = next(path for path, count in zip(files, rows, strict=True) if not count)
        warnings.warn(
            f"read: left out {plural(len(files) - len(kept), 'file')} of {text} without a row, "
            f"such as `{lost}`.",
            DataWarning,
            stacklevel=4,
        )
    return kept
