"""Names of the root that were given up, and how long they still work.

The policy is in CONTRIBUTING.md, and ``tests/test_deprecation.py`` holds the library to it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["OLD_NAMES", "OldName", "new_name"]


class OldName(NamedTuple):
    """A name that still works, what replaces it, and the versions that deprecate and remove it."""

    new: str
    since: str
    gone: str


OLD_NAMES: Mapping[str, OldName] = {}


def new_name(name: str, names: Mapping[str, OldName] = OLD_NAMES) -> str:
    """Return the name that replaces one, with a warning; any other name is returned as it is.

    Examples
    --------
    >>> new_name("MLPClassifier")
    'MLPClassifier'
    """
    found = names.get(name)
    if found is None:
        return name
    warnings.warn(
        f"castalia.{name} is called castalia.{found.new} since {found.since}; the old name is "
        f"removed in {found.gone}.",
        FutureWarning,
        stacklevel=3,
    )
    return found.new
