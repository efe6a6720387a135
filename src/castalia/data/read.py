"""One door: tables in files of four formats, numpy, pandas, polars, Arrow; images in folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from castalia.data.dataset import Dataset
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["STREAM_ABOVE", "SUFFIXES", "in_memory", "read"]

STREAM_ABOVE = 512 << 20  # bytes on disk
SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".parquet", ".pq", ".jsonl", ".ndjson")
PICTURES = (".zip", ".npz")

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def read(
    source: Any, *, target: str | None = None, stream: bool | Literal["auto"] = "auto"
) -> Dataset:
    """Read a table, or pictures.

    Parameters
    ----------
    source
        A path (CSV, TSV, Parquet, JSON lines; CSV also gzipped), a 2-D numpy array, a pandas or
        polars frame, an Arrow table, or a `Dataset`, which is returned as it is. The path of a
        folder, a zip or NPZ file gives `castalia.data.images.Images`.
    target
        The column to predict.
    stream
        Whether the rows of a file stay on disk; "auto" does so above 512 MB.

    Returns
    -------
    Dataset
        The table. Empty fields, NA, N/A, NaN, nan, null, None and ? in text files are missing
        values.

    Raises
    ------
    InvalidData
        If the file or the target is not there or the table cannot be used; the message names file
        and line.

    Examples
    --------
    >>> import numpy as np
    >>> read(np.eye(3))
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
    from castalia.data.memory import from_array, from_frame

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


def _read_file(path: Path, target: str | None, stream: bool | Literal["auto"]) -> Any:
    if path.suffix.lower() in PICTURES or os.path.isdir(path):
        return _read_pictures(path, target)
    size = _size(path)
    suffix, packed = _suffix(path)
    streaming = size > STREAM_ABOVE // (4 if packed else 1) if stream == "auto" else stream
    origin = _open(path, suffix, packed)
    data = Dataset(origin, target=target, streaming=streaming)
    return data if streaming else in_memory(data)


def _read_pictures(path: Path, target: str | None) -> Any:
    from castalia.data.images.door import read_pictures

    if target is not None:
        raise InvalidParameter(
            f"read: `target` must be None for images, whose folders say what they are; got "
            f"{target!r}."
        )
    return read_pictures(path)


def in_memory(data: Dataset) -> Dataset:
    """Return the same table held in memory."""
    from castalia.data.memory import MemorySource

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
        from castalia.data.parquet_source import ParquetSource

        return ParquetSource(path)
    if suffix in (".jsonl", ".ndjson"):
        from castalia.data.json_source import JsonSource

        return JsonSource(path)
    from castalia.data.csv_source import CsvSource

    return CsvSource(path, _DELIMITERS[suffix], packed=packed)
