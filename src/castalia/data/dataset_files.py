"""Files of well-known data sets: where they lie, and whether they are the right ones."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.atomic_files import digest
from castalia.utils.text import did_you_mean, listing

__all__ = ["KnownFile", "cache", "check_known", "locate"]


@dataclass(frozen=True)
class KnownFile:
    """A file that is recognised by its checksum."""

    file: str
    sha256: str
    origin: str
    names: tuple[str, ...] | None = None  # for files without a header line
    shipped: bool = False


def cache() -> Path:
    """Return the folder of tables: ``CASTALIA_DATA``, or ``~/.cache/castalia``."""
    return Path(os.environ.get("CASTALIA_DATA") or Path.home() / ".cache" / "castalia")


def check_known(name: str, known: Iterable[str], owner: str) -> None:
    """Refuse the name of a data set that is not known."""
    names = sorted(known)
    if name not in names:
        raise InvalidParameter(
            f"{owner}: `name` must be {listing(names)}; got {name!r}."
            f"{did_you_mean(str(name), names)}"
        )


def locate(name: str, known: KnownFile, owner: str = "datasets.load") -> Path:
    """Return where a known file lies, or say what to put where."""
    path = (Path(__file__).parent / "files" if known.shipped else cache()) / known.file
    there = path.is_file()
    if there and digest(path) == known.sha256:
        return path
    state = "that file is another one or damaged" if there else "there is no such file"
    raise InvalidData(
        f"{owner}: `{name}` must lie at {path}; {state}. Put {known.file} there (SHA-256 "
        f"{known.sha256}; "
        f"from {known.origin}), or set CASTALIA_DATA to the folder that holds it."
    )
