"""Texts from whatever a person names: a running text, lines, or two files side by side."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castalia.data.text.text_datasets import available_texts, load_text
from castalia.data.utf8_files import read_text
from castalia.errors import InvalidData
from castalia.utils.text import listing, plural

__all__ = ["Parallel", "holds_text", "is_pair", "read_lines", "read_pairs", "read_running"]

TEXTS = (".txt", ".text", ".md", ".rst", ".tex", ".log")
SAMPLED = 20  # lines that say whether a file is a table
SHOWN = 5  # line numbers in a remark


@dataclass(frozen=True)
class Parallel:
    """Two files whose lines are translations of each other.

    Attributes
    ----------
    names
        What the two languages are called: the endings of the files.
    sources, targets
        The lines, in pairs.
    notes
        Remarks on lines left out.
    source
        What messages call both.
    """

    names: tuple[str, str]
    sources: list[str]
    targets: list[str]
    notes: list[str]
    source: str

    def __len__(self) -> int:
        return len(self.sources)


def holds_text(data: Any, target: str | None = None) -> bool:
    """Whether something names a running text: a file that ends like one, or a known text.

    A ``.txt`` file whose lines all have as many tabs is a table.
    """
    if not isinstance(data, str | os.PathLike) or target is not None:
        return False
    path = Path(data)
    if is_known(data):
        return True
    name = path.name.lower().removesuffix(".gz")
    return name.endswith(TEXTS) and path.is_file() and not _tabbed(path)


def is_known(data: Any) -> bool:
    """Whether something is the name of a text that the library knows, and of no file."""
    return isinstance(data, str) and data in available_texts() and not os.path.exists(data)


def is_pair(data: Any) -> bool:
    """Whether something names several files."""
    several = isinstance(data, list | tuple) and bool(data)
    return several and all(isinstance(path, str | os.PathLike) for path in data)


def _tabbed(path: Path) -> bool:
    try:
        lines = [line for line in read_text(path, "fit").split("\n") if line.strip()]
    except InvalidData:  # reported when the text is read
        return False
    tabs = {line.count("\t") for line in lines[:SAMPLED]}
    return len(tabs) == 1 and tabs.pop() > 0


def read_running(data: Any, owner: str = "fit") -> str:
    """Return a whole text: of a UTF-8 file, gzipped or not, or of a known name."""
    return load_text(data) if is_known(data) else read_text(data, owner).replace("\r\n", "\n")


def read_lines(data: Any, owner: str) -> list[str]:
    """Return the lines of a text, blank ones too."""
    return read_running(data, owner).removesuffix("\n").split("\n")


def read_pairs(data: Sequence[Any], owner: str = "fit") -> Parallel:
    """Return the pairs of two parallel files; those with an empty side are left out."""
    if len(data) != 2:
        raise InvalidData(
            f"{owner}: there must be one file, or two whose lines are translations of each other; "
            f"got {len(data)}."
        )
    both = [read_lines(path, owner) for path in data]
    if len(both[0]) != len(both[1]):
        raise InvalidData(
            f"{owner}: {listing(data, 'and')} must have as many lines, translations of each other; "
            f"got {len(both[0]):,} and {len(both[1]):,}."
        )
    blank = [i for i, pair in enumerate(zip(*both, strict=True)) if not all(map(str.strip, pair))]
    gone = set(blank)
    sources, targets = ([line for i, line in enumerate(side) if i not in gone] for side in both)
    notes = []
    if blank:
        lines = listing([i + 1 for i in blank], "and", SHOWN).replace("`", "")
        notes = [f"{plural(len(blank), 'pair')} left out, as one side is empty: lines {lines}."]
    if not sources:
        raise InvalidData(f"{owner}: {listing(data, 'and')} must hold texts; every pair is empty.")
    return Parallel(_languages(data), sources, targets, notes, " and ".join(map(str, data)))


def _languages(data: Sequence[Any]) -> tuple[str, str]:
    """Name two languages by the endings of their files, or by the files."""
    names = [Path(path).name.removesuffix(".gz") for path in data]
    endings = [Path(name).suffix.lstrip(".") for name in names]
    if all(endings) and endings[0] != endings[1]:
        return endings[0], endings[1]
    return ("source", "target") if names[0] == names[1] else (names[0], names[1])
