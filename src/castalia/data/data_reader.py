"""One function that reads tables and images."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from castalia.data.images.coco import is_coco, read_coco
from castalia.data.images.image_reader import read_images
from castalia.data.tables.table_reader import read_table
from castalia.errors import InvalidParameter

__all__ = ["read"]

IMAGES = (".zip", ".npz")


def read(source: Any, *, target: str | None = None, stream: bool | Literal["auto"] = "auto") -> Any:
    """Read a table, or images.

    Parameters
    ----------
    source
        A path (CSV, TSV, Parquet, JSON lines; CSV also gzipped), a 2-D numpy array, a pandas or
        polars frame, an Arrow table, or a `Dataset`, which is returned as it is. The path of a
        folder, a zip or NPZ file gives `castalia.data.images.Images`, and COCO's JSON, which lies
        beside its images, those with their boxes.
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
    if isinstance(source, (str, os.PathLike)) and _holds_images(Path(source)):
        if target is not None:
            raise InvalidParameter(
                "read: `target` must be None for images, whose folders say what they are; got "
                f"{target!r}."
            )
        return read_coco(source) if is_coco(source) else read_images(source)
    return read_table(source, target=target, stream=stream)


def _holds_images(path: Path) -> bool:
    return path.suffix.lower() in IMAGES or os.path.isdir(path) or is_coco(path)
