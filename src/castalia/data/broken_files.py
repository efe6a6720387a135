"""Several files of one table, of which some may be damaged or cut off."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Literal, TypeVar

from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.utils.text import plural

__all__ = ["Broken", "check_broken", "open_each"]

Broken = Literal["raise", "skip"]
File = TypeVar("File")
Opened = TypeVar("Opened")


def check_broken(broken: str) -> None:
    """Refuse a choice that is none."""
    if broken not in ("raise", "skip"):
        raise InvalidParameter(f"read: `broken` must be 'raise' or 'skip'; got {broken!r}.")


def open_each(
    files: Iterable[File], opener: Callable[[File], Opened], broken: Broken
) -> dict[File, Opened]:
    """Open files one after the other.

    Parameters
    ----------
    files, opener
        Each file, and what opens it, which raises ``InvalidData`` with a sentence that names it.
    broken
        ``"raise"``: the first that cannot be read ends it. ``"skip"``: they are left out, and one
        warning counts them and says what is wrong with the first; not if there are no others.
    """
    found: dict[File, Opened] = {}
    lost: list[InvalidData] = []
    for file in files:
        try:
            found[file] = opener(file)
        except InvalidData as error:
            if broken == "raise":
                raise
            lost.append(error)
    if lost and not found:
        raise lost[0]
    if lost:
        said = str(lost[0]).removeprefix("read: ")
        many = plural(len(lost) + len(found), "file")
        warnings.warn(
            f"read: {len(lost):,} of {many} cannot be read and are left out: {said}",
            DataWarning,
            stacklevel=5,
        )
    return found
