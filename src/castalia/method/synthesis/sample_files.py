"""Drawn rows and images as files, block by block where they are many."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate.displays import image_grid
from castalia.method.predictions import FORMULA, harmless
from castalia.method.report.plain_values import plain
from castalia.method.saved_model import load_model
from castalia.utils.atomic_files import atomic_file, writing
from castalia.utils.text import listing

__all__ = ["IMAGES", "ROWS", "draw_samples", "write_samples"]

ROWS = (".csv", ".parquet", ".jsonl")
IMAGES = (".png", ".npz")
MOST_TILES = 10_000  # images of a grid


def draw_samples(
    model: str | os.PathLike[str],
    n: int,
    out: str | os.PathLike[str] | BinaryIO,
    *,
    seed: int = 0,
    label: str | None = None,
) -> Path | None:
    """Draw rows or images with a saved model, into a file.

    Parameters
    ----------
    model
        Folder of a run, or of a saved model.
    n
        How many.
    out
        A ``.csv``, ``.parquet`` or ``.jsonl`` file for rows of a table, a ``.png`` (all in a grid)
        or ``.npz`` file for images; or a binary stream, which gets rows as CSV.
    seed
        Seed of the draws; the first rows are the same however many are drawn.
    label
        For conditional models: the class to draw; None: all in turn.

    Returns
    -------
    Path or None
        The file.
    """
    found = load_model(model)
    if not hasattr(found, "sample_blocks"):
        other = "generate" if hasattr(found, "token_log_probabilities") else "predict"
        raise InvalidData(
            f"sample: `{model}` must hold a model that draws rows or images, as `castalia fit "
            f"--generate` makes; it holds a {type(found).__name__}. `castalia {other}` uses it."
        )
    return write_samples(found, n, out, seed, label)


def write_samples(
    model: Any, n: int, out: Any, seed: int = 0, label: str | None = None
) -> Path | None:
    """Draw with a fitted model, into a file or a stream; arguments as for ``draw_samples``."""
    blocks = model.sample_blocks(n, _labels(model, n, label), random_state=seed)
    images = len(model.adapter_.shape) > 1
    if not isinstance(out, str | os.PathLike):
        if images:
            raise InvalidParameter(f"sample: images need --out, a file in {listing(IMAGES)}.")
        _csv(_tables(blocks), out)
        return None
    path, endings = Path(out), IMAGES if images else ROWS
    ending = path.suffix.lower()
    if ending not in endings:
        what = "images" if images else "rows of a table"
        raise InvalidParameter(
            f"sample: `out` must end in {listing(endings)} for {what}; got '{path}'."
        )
    if ending == ".png" and n > MOST_TILES:
        raise InvalidParameter(
            f"sample: a grid must have {MOST_TILES:,} images at most; got {n:,}. "
            "Write an .npz file."
        )
    with writing("sample", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            _WRITERS[ending](blocks if images else _tables(blocks), file)
    return path


def _labels(model: Any, n: int, label: str | None) -> Any:
    """Return the class of each row: the one asked for, or all in turn."""
    if not getattr(model, "conditional", False):
        return label
    classes = model.classes_
    if label is None:
        return classes[np.arange(n) % len(classes)]
    return next((known for known in classes if str(known) == label), label)


def _tables(blocks: Iterator[Any]) -> Iterator[pa.Table]:
    """Yield blocks as tables; columns of an array are column_1, column_2, …."""
    for block in blocks:
        if isinstance(block, np.ndarray):
            names = [f"column_{i + 1}" for i in range(block.shape[1])]
            block = pa.table(dict(zip(names, block.T, strict=True)))
        yield block


def _csv(blocks: Iterator[pa.Table], file: BinaryIO) -> None:
    first = next(blocks)
    days, head = _days(first), True
    for block in chain([first], blocks):
        options = csv.WriteOptions(include_header=head, quoting_style="needed")
        csv.write_csv(_spoken(block, days), file, options)
        head = False


def _parquet(blocks: Iterator[pa.Table], file: BinaryIO) -> None:
    first = next(blocks)
    with parquet.ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        for block in blocks:
            writer.write_table(block)


def _lines(blocks: Iterator[pa.Table], file: BinaryIO) -> None:
    for block in blocks:
        rows = (json.dumps(plain(row), ensure_ascii=False) for row in block.to_pylist())
        file.write("".join(f"{row}\n" for row in rows).encode())


def _arrays(blocks: Iterator[np.ndarray], file: BinaryIO) -> None:
    np.savez_compressed(file, images=np.concatenate(list(blocks)))


def _grid(blocks: Iterator[np.ndarray], file: BinaryIO) -> None:
    from PIL import Image

    whole = io.BytesIO()
    Image.fromarray(image_grid(np.concatenate(list(blocks)))).save(whole, "png")
    file.write(whole.getvalue())


_WRITERS = {".csv": _csv, ".parquet": _parquet, ".jsonl": _lines, ".png": _grid, ".npz": _arrays}


def _days(block: pa.Table) -> list[str]:
    """Return the columns of times that are all at midnight: dates."""
    found = []
    for field in block.schema:
        if pa.types.is_timestamp(field.type):
            times = block[field.name].drop_null()
            if pc.all(pc.equal(times, times.cast(pa.date32()).cast(field.type))).as_py():
                found.append(field.name)
    return found


def _may_run(column: pa.ChunkedArray) -> bool:
    """Whether a spreadsheet might run one of some texts."""
    begins = f"^[{re.escape(''.join(FORMULA))}]"
    return bool(pc.any(pc.match_substring_regex(column, begins)).as_py())


def _spoken(block: pa.Table, days: list[str]) -> pa.Table:
    """Return a block for a CSV: dates without hours, and no text that a spreadsheet would run."""
    columns = {}
    for name in block.column_names:
        column = block[name]
        if name in days:
            column = column.cast(pa.date32(), safe=False)
        elif pa.types.is_string(column.type) and _may_run(column):
            column = pa.array([harmless(each) for each in column.to_pylist()], pa.string())
        columns[name] = column
    return pa.table(columns)
