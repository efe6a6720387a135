"""Which type a column of text really has, decided chunk by chunk.

A type stays possible while every value so far fits it; the narrowest one left at the end wins. So the answer
depends on the whole column, not on its first lines.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from castalia.utils.text import shorten

__all__ = ["FALSE", "MARKERS", "TRUE", "Guess", "convert", "mixed_note"]

MARKERS = ["", "NA", "N/A", "NaN", "nan", "null", "None", "?"]
TRUE, FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]

_WORDS = pa.array(TRUE + FALSE)
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$|^\s*[+-]?(?i:inf|infinity|nan)\s*$"
_CANDIDATES = (
    pa.int64(),
    pa.float64(),
    pa.bool_(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
)
_SAMPLE = 1000


def convert(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Turn text into a type, ignoring blanks around it; raises ``pa.ArrowInvalid`` where it does not fit."""
    if pa.types.is_string(kind):
        return column
    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    if pa.types.is_boolean(kind):
        if not pc.all(pc.is_in(pc.drop_null(column), value_set=_WORDS)).as_py():
            raise pa.ArrowInvalid("not a boolean")
        return pc.cast(column, kind)
    try:
        return pc.cast(column, kind)
    except pa.ArrowInvalid:
        return pc.cast(pc.utf8_trim_whitespace(column), kind)


def mixed_note(bad: int, total: int, place: str, first: Any) -> str:
    """Say that a column of numbers holds other things too."""
    verb = "value is not a number" if total == 1 else "values are not numbers"
    return f"{bad:,} of {total:,} {verb}, first at {place}: {shorten(repr(first), 40)}"


class Guess:
    """The types one column may still have, and what stands in the way of its being numeric."""

    def __init__(self) -> None:
        self.rows = self.present = self.bad = 0
        self.first: tuple[int, str] | None = None
        self._live = list(_CANDIDATES)
        self._count = True

    @property
    def kind(self) -> pa.DataType:
        """The narrowest type that fits everything seen."""
        if not self.present:
            return pa.null()
        return self._live[0] if self._live else pa.string()

    @property
    def mixed(self) -> bool:
        """Whether numbers and other things share the column."""
        return self._count and 0 < self.bad < self.present and pa.types.is_string(self.kind)

    def add(self, column: pa.Array) -> None:
        """Take in the next chunk of text, missing values as null."""
        if column.null_count < len(column):
            self._live = [kind for kind in self._live if _fits(column, kind)]
            if self._count and not any(pa.types.is_floating(kind) for kind in self._live):
                self._count_words(column)
            self.present += len(column) - column.null_count
        self.rows += len(column)

    def _count_words(self, column: pa.Array) -> None:
        if not self.present:
            head = pc.match_substring_regex(column.slice(0, _SAMPLE), _NUMBER)
            # Words from the start: nobody expects numbers here, so the regular expression is spared.
            self._count = bool(pc.any(head).as_py())
        if self._count:
            words = pc.invert(pc.fill_null(pc.match_substring_regex(column, _NUMBER), True))
            count = pc.sum(words).as_py()
            if count and self.first is None:
                at = pc.index(words, True).as_py()
                self.first = (self.rows + at, column[at].as_py())
            self.bad += count


def _fits(column: pa.Array, kind: pa.DataType) -> bool:
    if (
        pa.types.is_integer(kind)
        and pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py()
    ):
        return False  # 0x1F would pass as an integer and fail as a float
    try:
        convert(column, kind)
    except pa.ArrowInvalid:
        return False
    return True
