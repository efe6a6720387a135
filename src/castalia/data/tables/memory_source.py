"""Tables that are already in memory: numpy, pandas, polars, Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from castalia.data.tables.arrow_columns import normal
from castalia.data.tables.column_names import check_names
from castalia.data.tables.object_columns import from_objects, is_missing
from castalia.data.tables.table_source import TableSource
from castalia.data.tables.type_inference import MARKERS, Guess, Mixture, convert
from castalia.errors import InvalidData, ShapeMismatch

__all__ = ["MemorySource", "array_names", "from_array", "from_frame"]


class WrongType(InvalidData, TypeError):
    """A cell holds an object that is no value of a table."""


class MemorySource(TableSource):
    """An Arrow table whose columns have working types.

    Parameters
    ----------
    table
        The rows.
    text
        What messages call it.
    notes
        Remarks on columns, by name.
    categorical
        Columns their owner declared to be categories.
    named
        Whether the columns have names of their own.
    """

    def __init__(
        self,
        table: pa.Table,
        text: str,
        notes: dict[str, str] | None = None,
        categorical: set[str] | None = None,
        *,
        named: bool = True,
    ) -> None:
        self.table, self.text, self.named, self.files = table, text, named, []
        self.notes, self.categorical = dict(notes or {}), set(categorical or ())
        self.names, self.schema, self.rows = list(table.schema.names), table.schema, table.num_rows
        check_names(self.names, text)
        if not self.names:
            raise InvalidData(
                f"read: {text} must have columns; got 0 feature(s) (shape=({self.rows}, 0)) "
                "while a minimum of 1 is required."
            )
        if not self.rows:
            raise InvalidData(
                f"read: {text} must have rows; got 0 sample(s) (shape=(0, {len(self.names)})) "
                "while a minimum of 1 is required."
            )

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, these columns only."""
        yield from self.table.select(list(columns)).to_batches()


def array_names(columns: int) -> list[str]:
    """Name the columns of an array: x0, x1, …."""
    return [f"x{i}" for i in range(columns)]


def from_array(array: NDArray[Any]) -> MemorySource:
    """Take in a 2-D array of numbers, strings or objects."""
    if array.ndim != 2:
        raise ShapeMismatch(
            f"read: an array must be 2-dimensional (rows, columns); got shape {array.shape}. "
            "Reshape your data: `x.reshape(-1, 1)` makes one column of a vector."
        )
    if array.dtype.kind == "c":
        raise InvalidData("read: an array must hold real numbers. Complex data not supported.")
    if array.dtype.kind not in "biufOUSTMm":
        raise InvalidData(f"read: an array must hold numbers or strings; got dtype {array.dtype}.")
    names = array_names(array.shape[1])
    notes: dict[str, str] = {}
    columns = []
    for name, values in zip(names, array.T, strict=True):
        column, mixture = _from_vector(values, name)
        columns.append(column)
        if mixture:
            notes[name] = mixture.note(f"row {mixture.row}")
    text = f"the {len(array)} x {len(names)} array"
    return MemorySource(pa.table(columns, names=names), text, notes, named=False)


def _from_vector(values: NDArray[Any], name: str) -> tuple[pa.Array, Mixture | None]:
    if values.dtype.kind in "biufMm":
        values = values.astype(np.float64) if values.dtype.itemsize > 8 else values
        return normal(pa.array(np.ascontiguousarray(values), from_pandas=True)), None
    if values.dtype.kind in "UST":
        return _from_text(
            [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in values]
        )
    for row, value in enumerate(values):
        if isinstance(value, (dict, list, tuple, set, np.ndarray)):
            raise WrongType(
                "read: the argument must be a table of strings or numbers; got a "
                f"{type(value).__name__} "
                f"in row {row} of column `{name}`."
            )
    found, mixture = from_objects(list(values))
    if pa.types.is_string(found.type) and all(isinstance(v, str) or is_missing(v) for v in values):
        return _from_text(found.to_pylist())
    return found, mixture


def _from_text(values: list[str | None]) -> tuple[pa.Array, Mixture | None]:
    """Give strings in an array the types they would have in a CSV file."""
    found = pa.array(
        [None if v is None or v.strip() in MARKERS else v for v in values], pa.string()
    )
    guess = Guess()
    guess.add(found)
    return convert(found, guess.reading), guess.mixture


def from_frame(frame: Any) -> MemorySource:
    """Take in a frame of pandas or polars, a lazy one too, or a table of Arrow."""
    if isinstance(frame, pa.RecordBatchReader):
        frame = frame.read_all()
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        table = pa.table(frame) if isinstance(frame, pa.RecordBatch) else frame
        pairs: list[tuple[str, Any]] = [
            (name, table.column(i)) for i, name in enumerate(table.schema.names)
        ]
    else:
        pairs = _frame_columns(frame)
    text = _called(frame)
    check_names([name for name, _ in pairs], text)
    notes, columns, categorical = dict[str, str](), dict[str, Any](), set[str]()
    for name, given in pairs:
        column, mixture = given if isinstance(given, tuple) else (given, None)
        if pa.types.is_dictionary(column.type):
            categorical.add(name)
        columns[name] = normal(column)
        if mixture:
            notes[name] = mixture.note(f"row {mixture.row}")
    return MemorySource(pa.table(columns), text, notes, categorical)


def _frame_columns(frame: Any) -> list[tuple[str, Any]]:
    try:
        known: Any = nw.from_native(frame)
        known = known.collect() if isinstance(known, nw.LazyFrame) else known
    except (TypeError, ValueError, nw.exceptions.NarwhalsError) as error:
        if type(frame).__name__ == "DataFrame":
            check_names([str(name) for name in frame.columns], _called(frame))
        raise InvalidData(
            "read: the data must be a path, a 2-dimensional array, or a table of pandas, polars or "
            f"Arrow; got {type(frame).__name__}."
        ) from error
    check_names([str(name) for name in known.columns], _called(frame))
    # By position: an integer in brackets would mean a row, and pandas' names may be integers.
    named = zip(known.columns, known.iter_columns(), strict=True)
    return [(str(name), _frame_column(series)) for name, series in named]


def _called(frame: Any) -> str:
    return f"the {type(frame).__module__.split('.')[0]} table"


def _frame_column(series: Any) -> Any:
    try:
        return series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError, nw.exceptions.NarwhalsError):
        return from_objects(series.to_list())
