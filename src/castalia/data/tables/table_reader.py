"""Tables from files of several formats and addresses, numpy, pandas, polars and Arrow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from castalia.data.broken_files import Broken, open_each
from castalia.data.packed_files import bare_name, is_packed
from castalia.data.tables.arrow_source import ArrowSource, open_arrow
from castalia.data.tables.csv_source import CsvSource
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.excel_source import read_excel
from castalia.data.tables.joined_source import JoinedSource, drop_empty, partition, table_files
from castalia.data.tables.json_records import read_json
from castalia.data.tables.json_source import JsonSource
from castalia.data.tables.memory_source import MemorySource, from_array, from_frame
from castalia.data.tables.parquet_source import ParquetSource
from castalia.data.url_files import is_url, local_copy
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, listing, public

__all__ = ["PACKED", "STREAM_ABOVE", "SUFFIXES", "in_memory", "read_table"]

STREAM_ABOVE = 512 << 20  # bytes on disk
_BINARY = (".parquet", ".pq", ".arrow", ".feather", ".xlsx")
SUFFIXES = (".csv", ".tsv", ".txt", *_BINARY, ".json", ".jsonl", ".ndjson")

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
PACKED = (*_DELIMITERS, ".json", ".jsonl", ".ndjson")
_ADVICE = {
    ".xls": "Save it as .xlsx or CSV.",
    ".ods": "Save it as .xlsx or CSV.",
    ".xlsm": "Save it as .xlsx or CSV.",
    ".pkl": "Write it as Parquet or CSV; pickles are programs, and are not run.",
    ".pickle": "Write it as Parquet or CSV; pickles are programs, and are not run.",
    ".sav": "Write it as CSV.",
    ".dta": "Write it as CSV.",
    ".db": "Export the table as CSV.",
    ".sqlite": "Export the table as CSV.",
}


def read_table(
    source: Any,
    *,
    target: str | None = None,
    stream: bool | Literal["auto"] = "auto",
    encoding: str | None = None,
    formats: Mapping[str, str] | None = None,
    broken: Broken = "raise",
) -> Dataset:
    """Read a table; see `castalia.data.read`, which also reads images.

    Examples
    --------
    >>> import numpy as np
    >>> read_table(np.eye(3))
    Dataset(the 3 x 3 array: 3 rows x 3 columns)
    """
    if stream not in (True, False, "auto"):
        raise InvalidParameter(f"read: `stream` must be True, False or 'auto'; got {stream!r}.")
    if isinstance(source, Dataset):
        return source if target is None else source.with_target(target)
    if is_url(source):
        return _read_url(source, target, encoding, formats)
    files = table_files(source)
    if files is not None and len(files) > 1:
        text = _called(source, files)
        return _read_files(files, text, target, stream, encoding, formats, broken)
    if files is not None or isinstance(source, (str, os.PathLike)):
        return _read_file(Path(files[0] if files else source), target, stream, encoding, formats)
    if isinstance(source, pads.Dataset):
        data = Dataset(ArrowSource(source), target=target, streaming=stream is not False)
        return data if data.streaming else in_memory(data)
    return Dataset(_origin(source), target=target)


def _called(source: Any, files: list[Path]) -> str:
    """Name several files in messages."""
    several = isinstance(source, list | tuple)
    return f"`{files[0]}` and {len(files) - 1:,} more" if several else f"`{os.fspath(source)}`"


def _read_files(
    files: list[Path],
    text: str,
    target: str | None,
    stream: bool | Literal["auto"],
    encoding: str | None,
    formats: Mapping[str, str] | None,
    broken: Broken,
) -> Dataset:
    """Read several files as one table; how the first is written holds for all."""
    sizes = open_each(files, _size, broken)
    files = [*sizes]
    if _suffix(files[0]) in (".parquet", ".pq"):
        files = drop_empty(files, [_parquet_rows(path) for path in files], text)
        if not files:
            raise InvalidData(f"read: {text} must hold a row; none of the files has one.")

    def part(path: Path) -> Any:
        nonlocal formats
        found = _open(path, _suffix(path), encoding, formats)
        formats = formats or Dataset(found).formats
        return found

    parts = open_each(files, part, broken)
    data = Dataset(
        JoinedSource([*parts.values()], text, [partition(path) for path in parts]),
        target=target,
        streaming=sum(sizes.values()) > STREAM_ABOVE if stream == "auto" else stream,
    )
    return data if data.streaming else in_memory(data)


def _parquet_rows(path: Path) -> int:
    """Return how many rows a file says it has; one that cannot be read is named later."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError, ValueError):
        return 1


def _origin(source: Any) -> Any:
    if isinstance(source, np.ndarray):
        return from_array(source)
    if isinstance(source, (list, tuple)):
        return from_array(_as_array(source))
    if type(source).__module__.startswith("scipy.sparse"):
        raise InvalidData(
            "read: the table must be dense; got a sparse matrix. Convert it with `.toarray()`."
        )
    return from_frame(source)


def _as_array(rows: Any) -> np.ndarray:
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise InvalidData(
            "read: rows must all have the same number of columns; got rows of several lengths."
        ) from error


def _read_url(
    url: str, target: str | None, encoding: str | None, formats: Mapping[str, str] | None
) -> Dataset:
    """Read a table at an address into memory."""
    with local_copy(url) as path:
        held: Any = _read_file(path, None, False, encoding, formats)._origin
    held.text = public(url)
    return Dataset(held, target=target)


def _read_file(
    path: Path,
    target: str | None,
    stream: bool | Literal["auto"],
    encoding: str | None,
    formats: Mapping[str, str] | None,
) -> Dataset:
    size = _size(path)
    suffix = _suffix(path)
    factor = 4 if is_packed(path) else 1
    streaming = size > STREAM_ABOVE // factor if stream == "auto" else stream
    origin = _open(path, suffix, encoding, formats)
    if isinstance(origin, MemorySource):
        return Dataset(origin, target=target)
    data = Dataset(origin, target=target, streaming=streaming)
    return data if streaming else in_memory(data)


def in_memory(data: Dataset) -> Dataset:
    """Return the same table held in memory."""
    origin = data._origin
    held = MemorySource(data.table(), origin.text, origin.notes, origin.categorical)
    return Dataset(held, target=data.target)


def _size(path: Path) -> int:
    """Return a file's size, or say why there is no file to read."""
    try:
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise InvalidData(f"read: `{path}` must be a file; there is none.{_near(path)}") from error
    if not size:
        raise InvalidData(f"read: `{path}` must hold a table; the file is empty.")
    return size


def _near(path: Path) -> str:
    try:
        alike = [p for p in path.parent.iterdir() if p.suffix == path.suffix or p.is_dir()]
        # An ending that all files have makes no two of them alike.
        return did_you_mean(path.name, [p.name for p in alike if did_you_mean(path.stem, [p.stem])])
    except (OSError, ValueError):
        return ""


def _suffix(path: Path) -> str:
    packed = is_packed(path)
    suffix = Path(bare_name(path)).suffix
    if packed and path.suffix.lower() == ".zip" and not suffix:
        suffix = ".csv"  # data.zip: whatever the one file in it is called
    if suffix not in (PACKED if packed else SUFFIXES):
        endings = listing(PACKED if packed else SUFFIXES, most=20)
        before = " before the ending of its packing" if packed else ""
        advice = _ADVICE.get(suffix, "Export the table as CSV, say.")
        raise InvalidData(
            f"read: `{path}` must end in {endings}{before}; got `{path.suffix}`. {advice}"
        )
    return suffix


def _open(path: Path, suffix: str, encoding: str | None, formats: Mapping[str, str] | None) -> Any:
    if suffix in (".parquet", ".pq"):
        return ParquetSource(path)
    if suffix in (".arrow", ".feather"):
        return open_arrow(path)
    if suffix == ".xlsx":
        return read_excel(path)
    if suffix == ".json":
        return read_json(path, encoding)
    if suffix in (".jsonl", ".ndjson"):
        return JsonSource(path, encoding)
    return CsvSource(path, _DELIMITERS[suffix], encoding=encoding, formats=formats)
