"""The texts and records of a tar shard as a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from castalia.data.shards.tar_store import TarStore
from castalia.data.tables.json_source import JsonSource
from castalia.errors import InvalidData
from castalia.utils.regular_files import parse_json
from castalia.utils.text import public

__all__ = ["TarTable", "cells"]

PIECE = 1 << 20  # bytes of lines that are handed over at a time


class TarTable(JsonSource):
    """A shard whose samples are rows: read as JSON lines are, one a sample.

    Parameters
    ----------
    store
        The shards.
    shard
        Which of them.
    samples
        Names of its files by ending, a sample each.
    """

    def __init__(self, store: TarStore, shard: str, samples: Sequence[dict[str, str]]) -> None:
        self.store, self.samples = store, samples
        super().__init__(Path(public(shard)), lines=self)
        self.text, self.files = public(shard), [public(shard)]

    def pieces(self) -> Iterator[bytes]:
        """Yield the rows as JSON lines."""
        held = bytearray()
        for sample in self.samples:
            held += json.dumps(cells(self.store, sample)).encode() + b"\n"
            if len(held) > PIECE:
                yield bytes(held)
                held.clear()
        yield bytes(held)


def cells(store: TarStore, sample: dict[str, str]) -> dict[str, Any]:
    """Return what a sample says beside its image: text, class, and the fields of its JSON."""
    found: dict[str, Any] = {}
    for ending, name in sample.items():
        if ending in (".txt", ".text"):
            found[ending[1:]] = _text(store, name)
        elif ending == ".cls":
            word = _text(store, name).strip()
            found["cls"] = int(word) if word.isascii() and word.isdecimal() else word
        elif ending == ".json":
            found |= _record(store, name)
    return found


def _text(store: TarStore, name: str) -> str:
    try:
        return store.read(name).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidData(f"read: `{name}` must be a text in UTF-8; {error.reason}.") from error


def _record(store: TarStore, name: str) -> dict[str, Any]:
    try:
        found = parse_json(store.read(name))
    except ValueError as error:
        raise InvalidData(f"read: `{name}` must be JSON; {error}.") from error
    return found if isinstance(found, dict) else {"json": found}
