"""One pass over a table that finds out what its columns are."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from castalia.data.tables.arrow_columns import floats, is_number
from castalia.data.tables.column_moments import Moments
from castalia.data.tables.schema import Column

__all__ = ["MOST", "Counts", "Profile"]

MOST = 1000  # categories kept
_LIMIT = 100_000  # distinct words counted before giving up
_FEW = 10_000  # distinct numbers counted before giving up
_ID = re.compile(
    r"(^|[_\W])(id|ids|index|key|nr|no|uuid|guid)$|[a-z](Id|ID|Key|Nr|No)$|^unnamed_\d+$|^ID$", re.A
)


class Counts:
    """How often each value occurs, weighted, until there are too many distinct ones."""

    def __init__(self, limit: int = _LIMIT) -> None:
        self.found: dict[Any, float] = {}
        self._limit = limit
        self.distinct, self.many = 0, False

    def add(self, column: pa.Array, weight: NDArray[np.float64] | None = None) -> None:
        """Take in one chunk; missing values and rows of weight 0 are left out."""
        if self.many:
            return
        if weight is not None:
            column, weight = column.filter(pa.array(weight > 0)), weight[weight > 0]
        counted = (
            pc.dictionary_encode(column)
            if weight is not None
            else pc.value_counts(column.drop_null())
        )
        for value, count in _pairs(counted, weight):
            self.found[value] = self.found.get(value, 0) + count
        self.distinct = len(self.found)
        if self.distinct > self._limit:
            self.many, self.distinct = True, self._limit
            self.found.clear()

    def top(self, most: int = MOST) -> dict[Any, float]:
        """Return the most frequent values first; equal counts in the order of the values."""
        ordered = sorted(self.found.items(), key=lambda pair: (-pair[1], pair[0]))
        return dict(ordered[:most])


def _pairs(counted: Any, weight: NDArray[np.float64] | None) -> Any:
    if weight is None:
        return zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)
    codes = pc.fill_null(counted.indices, len(counted.dictionary)).to_numpy(zero_copy_only=False)
    totals = np.bincount(codes, weights=weight, minlength=len(counted.dictionary) + 1)
    return zip(counted.dictionary.to_pylist(), totals.tolist(), strict=False)


class Profile:
    """What one column has shown so far.

    Parameters
    ----------
    name, kind
        The column's name and Arrow type.
    detail
        Whether distinct numbers and words are counted; an encoder needs neither.
    """

    def __init__(self, name: str, kind: pa.DataType, *, detail: bool = True) -> None:
        self.name, self.type, self.rows = name, kind, 0
        self.moments = Moments(1)
        self.counts = Counts(_LIMIT if pa.types.is_string(kind) else _FEW)
        self._missing, self._words, self._letters = 0, 0, 0
        self._detail, self._climbs, self._last = detail, True, -np.inf

    @property
    def missing(self) -> int:
        """Number of missing values."""
        return self._missing if pa.types.is_string(self.type) else int(self.moments.missing[0])

    def add(self, column: pa.Array, weight: NDArray[np.float64] | None = None) -> None:
        """Take in one chunk (an Arrow array)."""
        if pa.types.is_null(self.type):
            self.moments.missing += len(column)
        elif pa.types.is_string(self.type):
            self._add_words(column, weight)
        else:
            self._add_numbers(column, weight)
        self.rows += len(column)

    def _add_words(self, column: pa.Array, weight: NDArray[np.float64] | None) -> None:
        present = pc.is_valid(column).to_numpy(zero_copy_only=False)
        self._missing += int(
            (~present).sum() if weight is None else (~present & (weight > 0)).sum()
        )
        self.counts.add(column, weight)
        if self._detail:
            self._letters += pc.sum(pc.utf8_length(column)).as_py() or 0
            self._words += pc.sum(pc.count_substring(column, " ")).as_py() or 0

    def _add_numbers(self, column: pa.Array, weight: NDArray[np.float64] | None) -> None:
        numbers = floats(column)
        self.moments.add(numbers[None, :], weight)
        if not self._detail:
            return
        if pa.types.is_floating(column.type):
            column = column.filter(pc.is_finite(column))
        elif pa.types.is_timestamp(column.type):
            column = pc.cast(column, pa.int64())
        self.counts.add(column)
        if self._climbs and pa.types.is_integer(self.type):
            self._climbs = bool(numbers[0] > self._last and (np.diff(numbers) > 0).all())
            self._last = numbers[-1]

    def column(self, note: str = "", categorical: bool = False) -> Column:
        """Return the finished record."""
        present, distinct = self.rows - self.missing, self.counts.distinct
        kind, remark = self._judge(present, distinct, categorical)
        numeric = not pa.types.is_string(self.type) and self.moments.weight[0] > 0
        top = self.counts.top()
        date = pa.types.is_timestamp(self.type)
        return Column(
            self.name,
            kind,
            self.missing,
            distinct,
            minimum=float(self.moments.minimum[0]) if numeric else None,
            maximum=float(self.moments.maximum[0]) if numeric else None,
            mean=float(self.moments.centre()[0]) if numeric else None,
            std=float(self.moments.spread()[0]) if numeric else None,
            categories=tuple(top) if pa.types.is_string(self.type) else (),
            counts=MappingProxyType({} if date else {v: int(c) for v, c in top.items()}),
            note="; ".join(filter(None, (remark, note))),
            many=self.counts.many,
            infinite=self.moments.infinite and self.moments.infinite[::2],
        )

    def _judge(self, present: int, distinct: int, categorical: bool) -> tuple[str, str]:
        if not present:
            return "constant", "all values are missing; not used"
        if distinct == 1 and not self.missing and not self.moments.infinite:
            return "constant", "a single value; not used"
        if pa.types.is_boolean(self.type):
            return "boolean", ""
        if pa.types.is_timestamp(self.type):
            return "date", ""
        if is_number(self.type):
            return self._judge_number()
        return ("categorical", "") if categorical else self._judge_words(present, distinct)

    def _judge_number(self) -> tuple[str, str]:
        if self.moments.infinite:
            row, _, value = self.moments.infinite
            return "numeric", f"holds {value}, first in row {row}"
        whole = pa.types.is_integer(self.type) and not self.missing and self.rows > 2
        alone = self._climbs or self.counts.distinct == self.rows
        if whole and alone and _ID.search(self.name):
            return "identifier", "one number a row; not used"
        return "numeric", ""

    def _judge_words(self, present: int, distinct: int) -> tuple[str, str]:
        several = self._words / present >= 1.0
        if not self.counts.many and distinct < present and distinct <= max(20, 0.05 * self.rows):
            return "categorical", ""
        mostly = self.counts.many or distinct > present / 2
        if several and (mostly or self._words / present >= 3) or self._letters / present > 60:
            return "text", "free text; not used by table models"
        if mostly:
            return "identifier", "nearly every row differs; not used"
        return "categorical", "many categories"
