"""Which type a column of text really has, decided chunk by chunk.

A type stays possible while every value so far fits it; the narrowest one left at the end wins. So
the answer depends on the whole column, not on its first lines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from castalia.data.tables.value_formats import DECIMAL_COMMA, FORMATS, Format, rivals
from castalia.utils.text import shorten

__all__ = ["FALSE", "MARKERS", "TRUE", "Guess", "Mixture", "convert"]

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
_SAMPLE, _HEAD = 1000, 20


def convert(column: pa.Array, kind: pa.DataType | Format) -> pa.Array:
    """Turn text into a type, ignoring blanks around it; ``pa.ArrowInvalid`` if it does not fit."""
    if isinstance(kind, Format):
        return kind.convert(column)
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


class Mixture(NamedTuple):
    """Numbers and other things in one column."""

    bad: int  # values that are not numbers
    present: int  # values that are not missing
    row: int  # the first of the bad ones, counted from 0
    value: Any

    def note(self, place: str) -> str:
        """Say so, and where the first one stands."""
        verb = "is not a number" if self.bad == 1 else "are not numbers"
        value = shorten(repr(self.value), 40)
        return f"{self.bad:,} of {self.present:,} values {verb}, first at {place}: {value}"


class Guess:
    """The types one column may still have, and what stands in the way of its being numeric.

    Parameters
    ----------
    comma
        Whether commas are decimal ones where both readings fit, as in files whose delimiter is
        another.
    wanted
        Name of the format that is taken before others that fit.
    """

    def __init__(self, comma: bool = False, wanted: str = "") -> None:
        self.rows = self.present = self._bad = 0
        self._first: tuple[int, str] | None = None
        self._live: list[pa.DataType | Format] = [*_CANDIDATES, *FORMATS]
        if comma:
            self._live.sort(key=lambda kind: kind == DECIMAL_COMMA, reverse=True)
        self._live.sort(key=lambda kind: (isinstance(kind, Format), _named(kind) != wanted))
        self._money = False  # whether a $ stands before a number: its commas are no decimal ones
        self._shown: set[str] = set()  # names of formats that a value could not do without
        self._count = True

    @property
    def kind(self) -> pa.DataType:
        """The narrowest type that fits everything seen."""
        found = self.reading
        return found.kind if isinstance(found, Format) else found

    @property
    def reading(self) -> pa.DataType | Format:
        """The type, or the way of writing it, by which ``convert`` reads the column."""
        if not self.present:
            return pa.null()
        return next((kind for kind in self._live if self._holds(kind)), pa.string())

    def _holds(self, kind: pa.DataType | Format) -> bool:
        return not isinstance(kind, Format) or kind.name in self._shown

    @property
    def format_note(self) -> str:
        """How the values are written, where that is no plain number or date."""
        found = self.reading
        return found.name if isinstance(found, Format) else ""

    @property
    def doubt(self) -> str:
        """The other way in which the whole column could be read, or nothing."""
        found = self.reading
        live = [k for k in self._live if isinstance(k, Format) and k.name in self._shown]
        if self._money:
            return ""
        others = rivals(found, live) if isinstance(found, Format) else []
        return others[0].name if others else ""

    @property
    def mixture(self) -> Mixture | None:
        """The mixture, if numbers and other things share the column."""
        if self._first is None or not self._bad < self.present or self.kind != pa.string():
            return None
        return Mixture(self._bad, self.present, *self._first)

    def add(self, column: pa.Array) -> None:
        """Take in the next chunk of text, missing values as null."""
        if column.null_count < len(column):
            head = column.drop_null().slice(0, _HEAD)
            self._live = [kind for kind in self._live if _fits(column, head, kind)]
            plain = [kind for kind in self._live if not isinstance(kind, Format)]
            if not plain:
                formats = [kind for kind in self._live if isinstance(kind, Format)]
                self._shown |= {kind.name for kind in formats if kind.is_shown_by(column)}
                self._money = self._money or bool(pc.any(pc.starts_with(column, "$")).as_py())
            if self._count and not any(pa.types.is_floating(kind) for kind in plain):
                self._count_words(column)
            self.present += len(column) - column.null_count
        self.rows += len(column)

    def _count_words(self, column: pa.Array) -> None:
        if not self.present:
            head = pc.match_substring_regex(column.slice(0, _SAMPLE), _NUMBER)
            # Words from the start: nobody expects numbers here, so the pattern is spared.
            self._count = bool(pc.any(head).as_py())
        if self._count:
            words = pc.invert(pc.fill_null(pc.match_substring_regex(column, _NUMBER), True))
            count = pc.sum(words).as_py()
            if count and self._first is None:
                at = pc.index(words, True).as_py()
                self._first = (self.rows + at, column[at].as_py())
            self._bad += count


def _named(kind: pa.DataType | Format) -> str:
    return kind.name if isinstance(kind, Format) else ""


def _fits(column: pa.Array, head: pa.Array, kind: pa.DataType | Format) -> bool:
    # Most ways of writing are not that of the first value, which Python finds soonest.
    if isinstance(kind, Format) and not kind.admits(head[0].as_py()):
        return False
    if (
        not isinstance(kind, Format)
        and pa.types.is_integer(kind)
        and pc.any(pc.match_substring(column, "x", ignore_case=True)).as_py()
    ):
        return False  # 0x1F would pass as an integer and fail as a float
    try:
        # Arrow is quick to succeed and slow to fail: a few values tell most columns apart.
        for part in (head, column):
            convert(part, kind)
    except pa.ArrowInvalid:
        return False
    return True
