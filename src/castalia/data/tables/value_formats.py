"""Numbers and dates as people write them: $1,234, 12 %, 3,14, 31/12/2020."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["DATES", "DECIMAL_COMMA", "FORMATS", "Format", "rivals"]

_SIGN, _MONEY = r"[+-]?", r"(?:[$€£¥]|USD|EUR|GBP)?"


@dataclass(frozen=True)
class Format:
    """A way of writing values of one type.

    Attributes
    ----------
    name
        What notes call it.
    kind
        Type of the values.
    pattern
        What every value matches.
    evidence
        What at least one value of a column holds; without, the column is something else.
    read
        Turns text that matches into values; ``pa.ArrowInvalid`` if it cannot.
    """

    name: str
    kind: pa.DataType
    pattern: str
    evidence: str
    read: Callable[[pa.Array], pa.Array]

    def convert(self, column: pa.Array) -> pa.Array:
        """Return text as values; ``pa.ArrowInvalid`` where it does not fit."""
        text = pc.utf8_trim_whitespace(column)
        if not pc.all(pc.fill_null(pc.match_substring_regex(text, self.pattern), True)).as_py():
            raise pa.ArrowInvalid(f"not {self.name}")
        return self.read(text)

    def admits(self, value: str) -> bool:
        """Whether a value may be written in this way, asked without Arrow."""
        return re.match(self.pattern, value.strip(), re.ASCII) is not None

    def is_shown_by(self, column: pa.Array) -> bool:
        """Whether a value of a column is written in this way and could not be otherwise."""
        return bool(pc.any(pc.match_substring_regex(column, self.evidence)).as_py())


def _number(text: pa.Array, removed: str, comma: bool = False) -> pa.Array:
    """Return numbers after leaving out signs; brackets stand for minus, as in accounts."""
    negative = pc.starts_with(text, "(")
    bare = pc.replace_substring_regex(text, removed, "")
    bare = pc.replace_substring(bare, ",", ".") if comma else bare
    found = pc.cast(bare, pa.float64())
    return pc.if_else(pc.fill_null(negative, False), pc.negate(found), found)


def _written(digits: str) -> str:
    """Return the pattern of a number with a currency before or behind it, or in brackets."""
    plain = rf"{_SIGN}\s?{_MONEY}\s?{_SIGN}(?:{digits})\s?{_MONEY}"
    return rf"^(?:{plain}|\({_MONEY}\s?(?:{digits})\s?{_MONEY}\))$"


THOUSANDS = Format(
    "numbers with a currency or commas between thousands",
    pa.float64(),
    _written(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+"),
    r"[$€£¥,]|USD|EUR|GBP",
    lambda text: _number(text, r"[$€£¥,()\s]|USD|EUR|GBP"),
)
DECIMAL_COMMA = Format(
    "numbers with a decimal comma",
    pa.float64(),
    _written(r"\d{1,3}(?:[. ]\d{3})+(?:,\d*)?|\d+(?:,\d*)?|,\d+"),
    r",",
    lambda text: _number(text, r"[$€£¥.()\s]|USD|EUR|GBP", comma=True),
)
PERCENT = Format(
    "percentages, read as shares (12 % is 0.12)",
    pa.float64(),
    rf"^{_SIGN}(?:\d+(?:[.,]\d*)?|[.,]\d+)\s?%$",
    r"%",
    lambda text: pc.divide(_number(text, r"[%\s]", comma=True), 100.0),
)

_PARTS = {
    "%d": r"\d{1,2}",
    "%m": r"\d{1,2}",
    "%Y": r"\d{4}",
    "%y": r"\d{2}",
    "%b": r"[A-Za-z]{3}",
    "%B": r"[A-Za-z]{3,9}",
    "%H": r"\d{1,2}",
    "%M": r"\d{2}",
    "%S": r"\d{2}",
}
_DAYS = (
    *("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%Y-%m", "%Y/%m", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y"),
    *("%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %Y", "%B %Y", "%b-%Y"),
)


def _date(code: str) -> Format:
    pattern = re.escape(code)
    for part, digits in _PARTS.items():
        pattern = pattern.replace(re.escape(part), digits)
    full = code if "%d" in code else f"%d {code}"  # a month begins with its first day

    def read(text: pa.Array) -> pa.Array:
        whole = text if "%d" in code else pc.binary_join_element_wise("01", text, " ")
        return pc.cast(pc.strptime(whole, full, "s"), pa.timestamp("us"))

    return Format(f"dates written {code}", pa.timestamp("us"), f"^{pattern}$", ".", read)


DATES = [_date(f"{day}{time}") for time in ("", " %H:%M", " %H:%M:%S") for day in _DAYS]
FORMATS = (THOUSANDS, DECIMAL_COMMA, PERCENT, *DATES)


def rivals(chosen: Format, live: list[Format]) -> list[Format]:
    """Return the other ways in which a whole column could be read just as well."""
    if chosen in (THOUSANDS, DECIMAL_COMMA):
        return [f for f in live if f in (THOUSANDS, DECIMAL_COMMA) and f != chosen]
    swap = {"%d": "%m", "%m": "%d"}
    code = re.sub("%[dm]", lambda part: swap[part.group()], chosen.name)
    return [f for f in live if f.name == code != chosen.name]
