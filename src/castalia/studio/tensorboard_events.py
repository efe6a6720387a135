"""Event files of TensorBoard as runs: their scalars, read without TensorBoard.

A file is a row of records: length (8 bytes), checksum (4), an ``Event`` of protocol buffers,
checksum (4). Of an event, fields 2 (step) and 5 (summary) are read; of a summary's value, 1 (tag),
2 (simple value) and 8 (tensor of one number), as both of TensorBoard's writers write scalars. A
record that is not whole ends the file: it may be written at this moment.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from castalia.errors import InvalidData
from castalia.train.runs import RunStore
from castalia.utils.regular_files import read_regular

__all__ = ["import_events", "read_scalars"]

PATTERN = "*tfevents*"
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5  # how a field is written
_FLOAT, _DOUBLE = 1, 2  # types of a tensor
_FAULTS = (IndexError, struct.error, ValueError)


def import_events(logs: str | os.PathLike[str], store: RunStore) -> list[str]:
    """Make a run of each folder with event files; return their names.

    Parameters
    ----------
    logs
        A folder as ``tensorboard --logdir`` takes it. Read again, it adds to the same runs.
    store
        Where the runs go.
    """
    root = Path(logs).resolve()
    folders = sorted({file.parent for file in root.rglob(PATTERN) if file.is_file()})
    if not folders:
        raise InvalidData(f"studio: `{logs}` must hold event files of TensorBoard; it has none.")
    return [_import(root, folder, store) for folder in folders]


def _import(root: Path, folder: Path, store: RunStore) -> str:
    parts = (root.name or "logs", *folder.relative_to(root).parts)
    mark = hashlib.sha256(f"tensorboard {folder}".encode()).hexdigest()
    run = store.open_run("-".join(parts), mark, {"tensorboard": str(folder)})
    run.resume()
    for file in sorted(folder.glob(PATTERN)):
        for step, tag, value in read_scalars(file):
            run.log(step, 0, {tag: value})
    run.finish()
    return run.name


def read_scalars(path: str | os.PathLike[str]) -> Iterator[tuple[int, str, float]]:
    """Yield step, tag and value of each scalar of an event file."""
    content, place = memoryview(read_regular(path)), 0
    while place + 12 <= len(content):
        (size,) = struct.unpack_from("<Q", content, place)
        begin, place = place + 12, place + 16 + size
        if place > len(content):
            return
        try:
            yield from _event(content[begin : begin + size])
        except _FAULTS:
            raise InvalidData(f"studio: `{path}` is no event file of TensorBoard.") from None


def _event(message: memoryview) -> Iterator[tuple[int, str, float]]:
    fields = list(_fields(message))
    steps = [value for number, kind, value in fields if (number, kind) == (2, _VARINT)]
    for number, kind, summary in fields:
        if (number, kind) != (5, _BYTES):
            continue
        for inner, how, value in _fields(summary):
            found = _scalar(value) if (inner, how) == (1, _BYTES) else None
            if found is not None:
                yield (steps[-1] if steps else 0), *found


def _scalar(message: memoryview) -> tuple[str, float] | None:
    """Return tag and number of a value; None of images, texts and histograms."""
    tag, number = "", None
    for field, kind, value in _fields(message):
        if (field, kind) == (1, _BYTES):
            tag = bytes(value).decode("utf-8", "replace")
        elif (field, kind) == (2, _FOUR):
            (number,) = struct.unpack("<f", value)
        elif (field, kind) == (8, _BYTES):
            number = _tensor(value)
    return None if number is None or not tag else (tag, number)


def _tensor(message: memoryview) -> float | None:
    """Return the number of a tensor that holds one; None otherwise."""
    fields = {(field, kind): value for field, kind, value in _fields(message)}
    code = {_FLOAT: "<f", _DOUBLE: "<d"}.get(fields.get((1, _VARINT), 0))
    if code is None:
        return None
    places = [(4, _BYTES), (5, _BYTES), (6, _BYTES), (5, _FOUR), (6, _EIGHT)]
    found = next((fields[place] for place in places if place in fields), b"")
    if len(found) != struct.calcsize(code):
        return None
    return float(struct.unpack(code, found)[0])


def _fields(message: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Yield number, kind and content of each field of a protocol buffer."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield key >> 3, kind, value
            continue
        size = {_EIGHT: 8, _FOUR: 4}.get(kind, 0)
        if kind == _BYTES:
            size, place = _varint(message, place)
        if not size and kind != _BYTES or place + size > len(message):
            raise ValueError(f"field of kind {kind}")
        yield key >> 3, kind, message[place : place + size]
        place += size


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Return a number written in groups of seven bits, the lowest first, and where it ends."""
    found = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, place
    raise ValueError("a number of more than ten bytes")
