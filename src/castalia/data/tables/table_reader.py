"""Tables from files of four formats, numpy, pandas, polars and Arrow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from castalia.data.tables.csv_source import CsvSource
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.json_source import JsonSource
from castalia.data.tables.memory_source import MemorySource, from_array, from_frame
from castalia.data.tables.parquet_source import ParquetSource
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["STREAM_ABOVE", "SUFFIXES", "in_memory", "read_table"]

STREAM_ABOVE = 512 << 20  # bytes on disk
SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".parquet", ".pq", ".jsonl", ".ndjson")

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def read_table(
    source: Any, *, target: str | None = None, stream: bool | Literal["auto"] = "auto"
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
    if isinstance(source, (str, os.PathLike)):
        return _read_file(Path(source), target, stream)
    return Dataset(_origin(source), target=target)


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


def _read_file(path: Path, target: str | None, stream: bool | Literal["auto"]) -> Dataset:
    size = _size(path)
    suffix, packed = _suffix(path)
    streaming = size > STREAM_ABOVE // (4 if packed else 1) if stream == "auto" else stream
    origin = _open(path, suffix, packed)
    data = Dataset(origin, target=target, streaming=streaming)
    return data if streaming else in_memory(data)


def in_memory(data: Dataset) -> Dataset:
    """Return the same table held in memory."""
    origin: Any = data._origin
    held = MemorySource(
        data.table(), origin.text, origin.notes, getattr(origin, "categorical", set())
    )
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
        return did_you_mean(path.name, [p.name for p in path.parent.iterdir()])
    except (OSError, ValueError):
        return ""


def _suffix(path: Path) -> tuple[str, bool]:
    name = path.name.lower()
    packed = name.endswith(".gz")
    suffix = Path(name.removesuffix(".gz")).suffix
    known = [s.removesuffix(".gz") for s in SUFFIXES if s.endswith(".gz") or not packed]
    if suffix not in known:
        raise InvalidData(
            f"read: `{path}` must end in {listing(SUFFIXES)}; got `{path.suffix}`. A translator is "
            "fitted on two files of parallel lines."
        )
    return suffix, packed


def _open(path: Path, suffix: str, packed: bool) -> Any:
    if suffix in (".parquet", ".pq"):
        return ParquetSource(path)
    if suffix in (".jsonl", ".ndjson"):
        return JsonSource(path)
    return CsvSource(path, _DELIMITERS[suffix], packed=packed)
