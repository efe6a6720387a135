"""Column names: unique, and found with a hint when misspelt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from castalia.errors import InvalidData
from castalia.utils.text import did_you_mean, listing, plural

__all__ = ["check_name", "check_names"]


def check_names(names: Sequence[str], source: str) -> None:
    """Refuse a table whose column names repeat."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidData(
            f"read: `{source}` must have distinct column names; got {listing(repeated, 'and')} "
            "more than once. "
            "Rename the columns (or add a header line, if the first line is data)."
        )


def check_name(name: str, names: Sequence[str], source: str, role: str = "column") -> None:
    """Refuse a name that is not there, suggest the nearest one and list what is."""
    if name not in names:
        raise InvalidData(
            f"read: {role} `{name}` must be a column of {source}; it has "
            f"{plural(len(names), 'column')}: "
            f"{listing(names, 'and')}.{did_you_mean(str(name), names)}"
        )
