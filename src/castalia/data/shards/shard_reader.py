"""Samples of tar shards, in the layout of WebDataset: files whose names differ in their endings.

``0001.jpg``, ``0001.cls`` and ``0001.json`` are one sample. Shards with images become `Images`,
others a table: a column for ``.txt`` and ``.cls``, and one for each field of ``.json``.
"""

from __future__ import annotations

import glob
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from castalia.data.broken_files import Broken
from castalia.data.images.image_collection import Images
from castalia.data.images.image_decoder import SUFFIXES
from castalia.data.images.image_files import ImageFiles
from castalia.data.shards.tar_store import TarStore
from castalia.data.shards.tar_table import TarTable, cells
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.joined_source import JoinedSource
from castalia.data.tables.table_reader import STREAM_ABOVE, in_memory
from castalia.data.url_files import is_url
from castalia.errors import DataWarning, InvalidData
from castalia.utils.imports import require
from castalia.utils.text import listing, public

__all__ = ["hold_images", "read_shards", "shard_files"]

WORDS = (".txt", ".text", ".cls", ".json")  # endings of what is no image and is read
_PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
Sample = dict[str, str]  # names of files by ending


def shard_files(source: Any) -> list[str] | None:
    """Return the tar files that a source names; None: it is something else.

    Parameters
    ----------
    source
        A tar file, a folder that holds nothing else, a pattern, ``{000..099}`` included, at an
        address too, or a list of these.

    Examples
    --------
    >>> shard_files("part-{08..10}.tar")
    ['part-08.tar', 'part-09.tar', 'part-10.tar']
    """
    if isinstance(source, list | tuple):
        found = [shard_files(part) for part in source]
        return [name for part in found for name in part or []] if found and all(found) else None
    if not isinstance(source, str | os.PathLike):
        return None
    name = os.fspath(source)
    if os.path.isdir(name):
        inside = [entry for entry in sorted(os.listdir(name)) if entry[0] not in "._"]
        tars = bool(inside) and all(map(_is_tar, inside))
        return [os.path.join(name, entry) for entry in inside] if tars else None
    if not _is_tar(name):
        return None
    return [found for each in _ranges(name) for found in _matching(each)]


def _is_tar(name: str) -> bool:
    if name.lower().endswith(_PACKED):
        raise InvalidData(
            f"read: `{public(name)}` must be a plain .tar file: a packed one cannot be read by "
            "position. Unpack it; what it holds is mostly packed already."
        )
    return name.lower().endswith(".tar")


def _ranges(name: str) -> Iterator[str]:
    """Yield names with the numbers of ``{000..099}`` in its place."""
    match = _RANGE.search(name)
    if match is None:
        yield name
        return
    first, last = match.groups()
    for number in range(int(first), int(last) + 1):
        yield from _ranges(f"{name[: match.start()]}{number:0{len(first)}d}{name[match.end() :]}")


def _matching(name: str) -> list[str]:
    if not glob.has_magic(name) or os.path.exists(name):
        return [name]
    if not is_url(name):
        found = sorted(glob.glob(name, recursive=True))
    else:
        fsspec = require("fsspec", caller="read", extra="url")
        try:
            system, path = fsspec.core.url_to_fs(name)
            start = name[: name.index(path.lstrip("/"))]
            found = [start + each.lstrip("/") for each in sorted(system.glob(path))]
        except Exception as error:  # each file system has errors of its own
            raise InvalidData(
                f"read: `{public(name)}` cannot be listed; {type(error).__name__}: {public(error)}."
            ) from error
    if not found:
        raise InvalidData(f"read: `{public(name)}` must match a file; it matches none.")
    return found


def hold_images(files: Sequence[str]) -> bool:
    """Whether shards are of images: the first that is whole says so."""
    for file in files:
        with suppress(InvalidData), warnings.catch_warnings(action="ignore"):
            return any(name.lower().endswith(SUFFIXES) for name in TarStore([file]).names())
    return False


def read_shards(
    files: Sequence[str],
    *,
    target: str | None = None,
    stream: bool | Literal["auto"] = "auto",
    broken: Broken = "raise",
) -> Images | Dataset:
    """Read the samples of tar shards.

    Parameters
    ----------
    files
        Paths or addresses.
    target
        An ending without its dot, or a field of ``.json``; None: ``cls``, of images that have it.
    stream
        Whether a table stays in its shards; "auto" does so above 512 MB. Images always stay.
    broken
        ``"skip"`` leaves out shards that are damaged or cut off, ``"raise"`` refuses them.
    """
    store = TarStore(files, broken=broken)
    samples = _samples(store)
    endings = {ending: sample for sample in reversed(samples) for ending in sample}
    image_endings = sorted(ending for ending in endings if ending.endswith(SUFFIXES))
    odd = sorted(ending for ending in endings if ending not in (*WORDS, *image_endings))
    if len(odd) == len(endings):
        raise InvalidData(
            f"read: {store.text} must hold images, {listing(WORDS)}; it holds "
            f"{listing(odd, 'and', 5)} only."
        )
    if odd:
        warnings.warn(
            f"read: files of {store.text} that end in {listing(odd, 'and', 5)} are not read.",
            DataWarning,
            stacklevel=3,
        )
    if image_endings:
        return _images(store, samples, image_endings, target)
    return _table(store, samples, target, stream)


def _samples(store: TarStore) -> list[Sample]:
    """Return the files of each sample; all have the same endings."""
    found: dict[str, Sample] = {}
    for name in store.names():
        stem, _, ending = name[(cut := name.rfind("/") + 1) :].partition(".")
        found.setdefault(name[:cut] + stem, {})[f".{ending.lower()}"] = name
    samples = list(found.values())
    kinds = samples[0].keys()
    for key, sample in found.items():
        if sample.keys() != kinds:
            odd = sorted(sample.keys() ^ kinds)[0]
            shard, first = (store.shard(next(iter(s.values()))) for s in (sample, samples[0]))
            raise InvalidData(
                f"read: sample `{key}` of `{public(shard)}` must have the files of the first one, "
                f"in `{public(first)}`; it {'has' if odd in sample else 'lacks'} `{odd}`."
            )
    return samples


def _images(
    store: TarStore, samples: list[Sample], image_endings: list[str], target: str | None
) -> Images:
    if len(image_endings) > 1:
        raise InvalidData(
            f"read: {store.text} must hold one image a sample; got {listing(image_endings, 'and')}."
        )
    files = ImageFiles([sample[image_endings[0]] for sample in samples], store)
    target = "cls" if target is None and ".cls" in samples[0] else target
    if target is None:
        return Images(files)
    found = []
    for sample in samples:
        row = cells(store, sample)
        if target not in row:
            name = sample[image_endings[0]]
            raise InvalidData(
                f"read: `target` must be {listing(sorted(row))}, as sample `{name}` has it; got "
                f"{target!r}."
            )
        found.append(row[target])
    return Images(files, found if target in ("txt", "text") else np.array(found))


def _table(
    store: TarStore, samples: list[Sample], target: str | None, stream: bool | Literal["auto"]
) -> Dataset:
    by_shard: dict[str, list[Sample]] = {}
    for sample in samples:
        by_shard.setdefault(store.shard(next(iter(sample.values()))), []).append(sample)
    parts = [TarTable(store, shard, rows) for shard, rows in by_shard.items()]
    streaming = store.nbytes > STREAM_ABOVE if stream == "auto" else stream
    origin = parts[0] if len(parts) == 1 else JoinedSource(parts, store.text)
    data = Dataset(origin, target=target, streaming=streaming)
    return data if streaming else in_memory(data)
