"""The table adapter's fitted part: a table becomes one matrix, always in the same way."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Self

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse

from castalia.data.tables.calendar_columns import with_calendar
from castalia.data.tables.column_codes import codes, numbers
from castalia.data.tables.column_moments import Moments, spans
from castalia.data.tables.column_profile import Profile
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.schema import Column
from castalia.data.tables.table_reader import read_table
from castalia.errors import DataWarning, InvalidData, InvalidParameter, ShapeMismatch
from castalia.utils.text import listing, plural

__all__ = ["TableEncoder"]

_COLUMNS = 16  # columns whose moments are gathered together
_THREADED = 2**22  # numbers from which on threads gather them
_BLOCK = 2**18  # numbers standardised at a time: two megabytes of float64 stay in the cache
_EMPTY = "all values are missing"

Floats = NDArray[np.float64]


class TableEncoder:
    """Standardised numbers, then missing indicators, then category codes, as one matrix.

    Numbers, booleans (0/1) and dates (days) are centred by their mean and divided by their standard
    deviation; a missing value becomes exactly 0, and every column that had gaps during `fit` gets a
    0/1 indicator. Categories become codes 1, 2, …; code 0 stands for unseen and missing ones. At
    most 1000 categories, the most frequent, have a code of their own. Free text, identifiers and
    constant columns of named tables are left out.

    Attributes
    ----------
    used
        Names of the columns that are encoded.
    ignored
        Columns left out, with the reason.

    Examples
    --------
    >>> from castalia.data import TableEncoder, datasets
    >>> encoder = TableEncoder().fit(datasets.load("penguins").with_target("species"))
    >>> encoder.inputs, encoder.categories, encoder.names[-2:]
    (11, (4, 3), ['island', 'sex'])
    """

    def __init__(self) -> None:
        self.ignored: dict[str, str] = {}
        self._columns: list[str] | None = None  # every column seen by fit, in order
        self._named = False
        self._numeric: list[str] = []
        self._kinds: list[str] = []
        self._mean, self._scale, self._inverse = np.zeros(0), np.ones(0), np.ones(0)
        self._flagged: list[int] = []  # positions in _numeric
        self._words: dict[str, list[str]] = {}

    # -- what came of it -----------------------------------------------------------------

    @property
    def used(self) -> list[str]:
        """Names of the columns that are encoded."""
        return [*self._numeric, *self._words]

    @property
    def inputs(self) -> int:
        """Width of the encoded matrix."""
        return len(self._numeric) + len(self._flagged) + len(self._words)

    @property
    def numbers(self) -> int:
        """How many leading columns hold standardised numbers."""
        return len(self._numeric)

    @property
    def categories(self) -> tuple[int, ...]:
        """Number of codes of each categorical column, code 0 included."""
        return tuple(len(words) + 1 for words in self._words.values())

    @property
    def names(self) -> list[str]:
        """Name of every encoded column."""
        flags = [f"{self._numeric[i]} is missing" for i in self._flagged]
        return [*self._numeric, *flags, *self._words]

    def __repr__(self) -> str:
        if self._columns is None:
            return "TableEncoder()"
        return f"TableEncoder({plural(len(self.used), 'column')} -> {self.inputs} inputs)"

    # -- fitting -------------------------------------------------------------------------

    def fit(self, data: Any, sample_weight: Any = None) -> Self:
        """Learn means, spreads and categories.

        Parameters
        ----------
        data
            A numeric array, a scipy sparse matrix, anything `castalia.data.read` takes, or a
            `Dataset` (its target is left out).
        sample_weight
            One weight a row, (rows,): 0 is as good as absent, 2 counts twice.
        """
        array = data.tocsc() if issparse(data) else _numeric_array(data)
        if array is not None:
            return self._fit_array(array, _weights(sample_weight, array.shape[0]))
        table = read_table(data).features()
        return self._fit_table(table, _weights(sample_weight, len(table)), _is_named(data))

    def _fit_array(self, array: Any, weight: Floats | None) -> Self:
        _check_size(array)
        moments = _array_moments(array, weight)
        names = [f"x{i}" for i in range(array.shape[1])]
        if moments.infinite:
            row, column, value = moments.infinite
            raise _infinite(names[column], row, value)
        empty = moments.weight <= 0
        self._start(
            names, named=False, empty=[n for n, gone in zip(names, empty, strict=True) if gone]
        )
        kept = np.flatnonzero(~empty)
        self._numeric = [names[i] for i in kept]
        self._kinds = ["numeric"] * len(kept)
        self._set_scale(moments.centre()[kept], moments.spread()[kept], moments.missing[kept])
        return self

    def _fit_table(self, table: Dataset, weight: Floats | None, named: bool) -> Self:
        schema = table.schema
        usable = [column.name for column in schema if column.used]
        found = {
            c.name: c
            for c in (schema if weight is None else _weighted(table.select(usable), weight))
        }
        empty = [
            c.name
            for c in schema
            if c.missing == len(table) or (c.used and _is_empty(found[c.name]))
        ]
        self._start(table.columns, named=named, empty=empty)
        self.ignored |= {c.name: c.kind for c in schema if not c.used and c.name not in empty}
        kinds = {c.name: c.kind for c in schema if c.used and c.name not in empty}
        self._numeric = [name for name, kind in kinds.items() if kind != "categorical"]
        self._kinds = [kinds[name] for name in self._numeric]
        columns = [found[name] for name in self._numeric]
        for column in columns:
            if column.infinite:
                raise _infinite(column.name, *column.infinite)
        self._set_scale(
            *(
                np.array([getattr(c, key) for c in columns], float)
                for key in ("mean", "std", "missing")
            )
        )
        # Codes follow the words, not their frequency: weights and repeated rows leave them alone.
        self._words = {
            name: sorted(found[name].categories)
            for name, kind in kinds.items()
            if kind == "categorical"
        }
        return self

    def _start(self, columns: Sequence[str], *, named: bool, empty: list[str]) -> None:
        self._columns, self._named, self._words = list(columns), named, {}
        self.ignored = dict.fromkeys(empty, _EMPTY)
        if empty:
            verb = "columns hold" if len(empty) > 1 else "column holds"
            warnings.warn(
                f"TableEncoder: the {verb} no values and will not be used: "
                f"{listing(empty, 'and')}.",
                DataWarning,
                stacklevel=4,
            )
        if len(empty) == len(columns):
            raise InvalidData(
                "TableEncoder: the table must have a column with values; all values are missing "
                "(NaN)."
            )

    def _set_scale(self, mean: Floats, spread: Floats, missing: NDArray[Any]) -> None:
        self._mean = mean
        self._scale = np.where(spread > 0, spread, 1.0)
        self._inverse = 1.0 / self._scale
        self._flagged = [int(i) for i in np.flatnonzero(missing)]

    # -- encoding ------------------------------------------------------------------------

    def encode(self, data: Any, dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """Return the matrix (rows, inputs) of a table.

        Columns of named tables are found by name; further columns are ignored.

        Raises
        ------
        InvalidData
            If a column is missing, a number is infinite, or a value does not fit its column's kind.
        """
        columns = self._fitted()
        kind = np.dtype(dtype)
        if kind not in (np.float32, np.float64):
            raise InvalidParameter(
                f"TableEncoder.encode: `dtype` must be float32 or float64; got {kind}."
            )
        array = _numeric_array(data)
        if array is not None and not self._words and "date" not in self._kinds:
            return self._encode_array(array, columns, kind)
        return self._encode_table(self._matched(data, array, columns), kind)

    def _fitted(self) -> list[str]:
        if self._columns is None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                "TableEncoder: it must be fitted first. Call `fit` with training data."
            )
        return self._columns

    def _encode_array(
        self, array: NDArray[Any], columns: list[str], kind: np.dtype[Any]
    ) -> NDArray[Any]:
        _check_size(array)
        _check_width(array.shape[1], len(columns))
        out = np.empty((len(array), self.inputs), kind)
        whole = self._numeric == columns
        places = [columns.index(name) for name in self._numeric]
        for span in spans(len(array), max(1, _BLOCK // max(1, len(columns)))):
            block = array[span] if whole else array[span][:, places]
            self._standardise(block, out[span], span.start)
        return out

    def _standardise(self, block: NDArray[Any], out: NDArray[Any], start: int) -> None:
        """Write the numbers of ``block`` (rows, numeric) and their indicators into ``out``."""
        import torch  # here, so that reading a table does not load it; its loops use every core

        width, flags = len(self._numeric), len(self._flagged)
        out[:, width : width + flags] = 0
        work = block.astype(np.float64)
        scaled = torch.from_numpy(work).sub_(torch.from_numpy(self._mean))
        scaled.mul_(torch.from_numpy(self._inverse))
        if not np.isfinite(float(scaled.sum())):  # a finite sum proves there is neither NaN nor inf
            self._mend(block, work, out, start)
        try:
            with np.errstate(over="raise"):
                out[:, :width] = work
        except FloatingPointError:  # farther from the mean than float32 can say
            most = np.finfo(out.dtype).max
            out[:, :width] = np.clip(work, -most, most)

    def _mend(self, block: NDArray[Any], work: Floats, out: NDArray[Any], start: int) -> None:
        width = len(self._numeric)
        endless = np.isinf(block)
        if endless.any():
            row = int(endless.any(axis=1).argmax())
            column = int(endless[row].argmax())
            raise _infinite(self._numeric[column], start + row, float(block[row, column]))
        absent = np.isnan(block)
        out[:, width : width + len(self._flagged)] = absent[:, self._flagged]
        work[absent] = 0.0

    def _matched(self, data: Any, array: NDArray[Any] | None, columns: list[str]) -> Dataset:
        """Return the used columns of any table, by name where both sides have names."""
        table = read_table(data if array is None else array)
        if self._named and _is_named(data):
            absent = [name for name in self.used if name not in table.columns]
            if absent:  # columns made from dates are made again
                table = with_calendar(table, every=True)
                absent = [name for name in self.used if name not in table.columns]
            if absent:
                raise InvalidData(
                    f"TableEncoder.encode: {table.source} must have every column used in fit; "
                    f"{listing(absent, 'and')} {'is' if len(absent) == 1 else 'are'} missing."
                )
            return table.select(self.used)
        _check_width(len(table.columns), len(columns))
        return table.select([table.columns[columns.index(name)] for name in self.used])

    def _encode_table(self, table: Dataset, kind: np.dtype[Any]) -> NDArray[Any]:
        out = np.empty((len(table), self.inputs), kind)
        start = 0
        for chunk in table.chunks():
            self._encode_chunk(chunk, out[start : start + len(chunk)], start)
            start += len(chunk)
        return out

    def write(self, data: Dataset, file: BinaryIO, dtype: DTypeLike = np.float32) -> None:
        """Encode a data set chunk by chunk into an open file, as raw rows."""
        start, kind = 0, np.dtype(dtype)
        for chunk in self._matched(data, None, self._fitted()).chunks():
            out = np.empty((len(chunk), self.inputs), kind)
            self._encode_chunk(chunk, out, start)
            file.write(out.data)
            start += len(chunk)

    def _encode_chunk(self, chunk: pa.Table, out: NDArray[Any], start: int) -> None:
        if self._numeric:
            block = np.empty((len(chunk), len(self._numeric)))
            for i, (name, kind) in enumerate(zip(self._numeric, self._kinds, strict=True)):
                block[:, i] = numbers(chunk.column(i).combine_chunks(), name, kind, start)
            self._standardise(block, out, start)
        offset, first = self.inputs - len(self._words), len(self._numeric)
        for i, words in enumerate(self._words.values()):
            out[:, offset + i] = codes(chunk.column(first + i).combine_chunks(), words)

    # -- keeping -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return what was learnt as JSON values and arrays, for `from_state`."""
        return {
            "columns": list(self._fitted()),
            "named": self._named,
            "numeric": list(self._numeric),
            "kinds": list(self._kinds),
            "mean": self._mean.copy(),
            "scale": self._scale.copy(),
            "flagged": list(self._flagged),
            "words": [[name, list(words)] for name, words in self._words.items()],
            "ignored": dict(self.ignored),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the encoder whose `state` this is."""
        self = cls()
        self._columns, self._named = [str(name) for name in state["columns"]], bool(state["named"])
        self._numeric, self._kinds = list(state["numeric"]), list(state["kinds"])
        self._mean, self._scale = (np.array(state[key], np.float64) for key in ("mean", "scale"))
        self._inverse = 1.0 / self._scale
        self._flagged = [int(i) for i in state["flagged"]]
        self._words = {str(name): list(words) for name, words in state["words"]}
        self.ignored = dict(state["ignored"])
        return self


def _numeric_array(data: Any) -> NDArray[Any] | None:
    """Return data that are nothing but numbers as an array; None for everything else."""
    if isinstance(data, (list, tuple)):
        try:
            data = np.asarray(data)
        except ValueError:
            return None
    if not isinstance(data, np.ndarray) or data.ndim != 2:
        return None
    if data.dtype.kind in "biuf":
        return data
    if data.dtype.kind == "O" and all(
        isinstance(v, (int, float, np.number)) or v is None for v in data.flat
    ):
        try:
            return data.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            return None
    return None


def _is_named(data: Any) -> bool:
    """Say whether the columns of some data have names of their own."""
    if isinstance(data, Dataset):
        return data.named
    return not isinstance(data, (np.ndarray, list, tuple))


def _is_empty(column: Column) -> bool:
    return not column.categories and column.mean is None


def _weighted(table: Dataset, weight: Floats) -> list[Column]:
    """Return the columns' statistics with weighted rows."""
    profiles = [Profile(field.name, field.type, detail=False) for field in table.arrow_schema]
    start = 0
    for chunk in table.chunks():
        part = weight[start : start + len(chunk)]
        for profile in profiles:
            profile.add(chunk.column(profile.name).combine_chunks(), part)
        start += len(chunk)
    return [profile.column() for profile in profiles]


def _weights(weight: Any, rows: int) -> Floats | None:
    if weight is None:
        return None
    found = np.ascontiguousarray(weight, np.float64)
    if found.ndim == 0:
        found = np.full(rows, float(found))
    if found.shape != (rows,):
        raise ShapeMismatch(
            f"TableEncoder.fit: `sample_weight` must have shape ({rows},); got {found.shape}."
        )
    if not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise InvalidData(
            "TableEncoder.fit: `sample_weight` must be finite, not negative, and not zero "
            "everywhere."
        )
    return found


def _array_moments(array: Any, weight: Floats | None) -> Moments:
    """Gather the moments of an array, a few columns at a time, so that a block stays in cache.

    Columns are summed each on its own, so wide arrays are shared out over threads without changing
    a bit of the result.
    """

    def gather(group: slice) -> Moments:
        found = Moments(group.stop - group.start)
        columns = array[:, group].tocsr() if issparse(array) else array[:, group]
        for span in spans(array.shape[0]):
            part = columns[span].toarray() if issparse(array) else columns[span]
            block = np.ascontiguousarray(part.T, np.float64)  # (columns, rows)
            found.add(block, None if weight is None else weight[span])
        return found

    groups = list(spans(array.shape[1], _COLUMNS))
    if len(groups) == 1 or array.size < _THREADED or issparse(array):
        return Moments.beside([gather(group) for group in groups])
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return Moments.beside(list(pool.map(gather, groups)))


def _check_size(array: Any) -> None:
    for axis, what in enumerate(("sample", "feature")):
        if not array.shape[axis]:
            raise InvalidData(
                f"TableEncoder: the array must not be empty; got 0 {what}(s) (shape={array.shape}) "
                "while a minimum of 1 is required."
            )


def _check_width(found: int, wanted: int) -> None:
    if found != wanted:
        raise ShapeMismatch(
            f"TableEncoder.encode: X has {found} features, but TableEncoder is expecting {wanted} "
            "features as input."
        )


def _infinite(name: str, row: int, value: float) -> InvalidData:
    return InvalidData(
        f"TableEncoder: column `{name}` must hold finite numbers; got {value} in row {row}. "
        "Replace infinity by NaN if it stands for a missing value."
    )
