"""One function that reads tables, images, tar shards and graphs."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from castalia.data.broken_files import Broken, check_broken
from castalia.data.graphs.graph_reader import holds_graph, read_graph, read_graphs
from castalia.data.images.coco import is_coco, read_coco
from castalia.data.images.image_reader import read_images
from castalia.data.packed_files import bare_name, member
from castalia.data.shards import read_shards, shard_files
from castalia.data.tables.joined_source import table_files
from castalia.data.tables.table_reader import PACKED, read_table
from castalia.data.url_files import is_url, table_at
from castalia.errors import InvalidData, InvalidParameter

__all__ = ["holds_images", "read"]

IMAGES = (".zip", ".npz")


def read(
    source: Any,
    *,
    target: str | None = None,
    stream: bool | Literal["auto"] = "auto",
    encoding: str | None = None,
    formats: Mapping[str, str] | None = None,
    nodes: Any = None,
    broken: Broken = "raise",
) -> Any:
    """Read a table, images, tar shards or graphs.

    Parameters
    ----------
    source
        A path or an address such as ``https://…`` of a table: CSV, TSV, JSON or JSON lines, each
        also packed (.gz, .bz2, .xz, .zip), Parquet, Arrow, Excel (.xlsx). Several files of one
        table: a folder of them, also by ``year=2020`` and the like, a pattern such as
        ``parts/*.parquet``, also at ``s3://…`` and the like, or a list of paths. Or a 2-D numpy
        array, a pandas or polars frame, a lazy one too, an Arrow table or data set, or a
        `Dataset`, which is returned as it is. The path of another folder, an NPZ file or a zip
        file of images gives `castalia.data.images.Images`, and COCO's JSON, which lies beside its
        images, those with their boxes.
        Tar shards in the layout of WebDataset, by the same kinds of names and by
        ``part-{000..099}.tar``: images, with ``.cls`` or what ``target`` names, or, where a sample
        has none, a table of its ``.txt``, ``.cls`` and fields of ``.json``.
    target
        The column to predict.
    stream
        Whether the rows of a file stay on disk; "auto" does so above 512 MB.
    encoding
        Encoding of a text file; None: that of its byte order mark, UTF-8, or Windows-1252 with a
        warning.
    formats
        How columns of a CSV file are written where they could be read in several ways, such as
        1/2/2020: ``Dataset.formats`` of another table, as a model was trained on it.
    nodes
        The table of nodes, where ``source`` is a list of edges: the two make a
        `castalia.data.Graph`, ``target`` is a column of the nodes. GraphML and GML need none,
        nor do folders of them or of the TU collection, which give `castalia.data.Graphs`.
    broken
        What happens when one of several files of a table, or a shard, is damaged or cut off:
        ``"raise"`` names it; ``"skip"`` leaves such files out and counts them in one warning.

    Returns
    -------
    Dataset
        The table. Empty fields, NA, N/A, NaN, nan, null, None and ? in text files are missing
        values. Numbers such as $1,234, 12 % and 3,14, and dates such as 31/12/2020, are read as
        what they are where a whole column is written so.

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
    check_broken(broken)
    shards = shard_files(source)
    if shards is not None:
        return read_shards(shards, target=target, stream=stream, broken=broken)
    if is_url(source):
        source = table_at(source, broken) or source
    several = nodes is None and table_files(source) is not None
    if not several and (nodes is not None or holds_graph(source)):
        many = os.path.isdir(source) if isinstance(source, (str, os.PathLike)) else False
        if many:
            return read_graphs(source, target=target)
        return read_graph(source, nodes, target=target, encoding=encoding)
    path = isinstance(source, (str, os.PathLike)) and not several and not is_url(source)
    if path and holds_images(Path(source)):
        if target is not None:
            raise InvalidParameter(
                "read: `target` must be None for images, whose folders say what they are; got "
                f"{target!r}."
            )
        return read_coco(source) if is_coco(source) else read_images(source)
    return read_table(
        source, target=target, stream=stream, encoding=encoding, formats=formats, broken=broken
    )


def holds_images(path: Path) -> bool:
    """Whether a path is that of a folder, an archive of more than one table, or COCO's JSON."""
    if path.suffix.lower() == ".zip":
        return not _holds_one_table(path)
    return path.suffix.lower() in IMAGES or os.path.isdir(path) or is_coco(path)


def _holds_one_table(path: Path) -> bool:
    """Whether a zip file is a packed table: by its name, or by the one file in it."""
    if Path(bare_name(path)).suffix in PACKED:
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return Path(member(archive, path).lower()).suffix in PACKED
    except (OSError, zipfile.BadZipFile, InvalidData):
        return False
