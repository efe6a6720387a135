"""CSV and TSV files as a stream of typed Arrow batches.

Two passes over the file come first: one for encoding and quotation marks, one over plain text that
finds every ragged line and every column's type. After that it can be streamed with fixed types.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from castalia.data.tables.column_names import check_names
from castalia.data.tables.table_source import TableSource
from castalia.data.tables.text_file import TextFile, inspect
from castalia.data.tables.type_inference import FALSE, MARKERS, TRUE, Guess, Mixture
from castalia.data.tables.value_formats import Format
from castalia.errors import DataWarning, InvalidData
from castalia.utils.text import plural, shorten

__all__ = ["CsvSource"]

_BLOCK = 4 << 20  # bytes; no record may be longer than a block
_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}


class CsvSource(TableSource):
    """A delimited text file.

    Parameters
    ----------
    path
        The file.
    delimiter
        The one its suffix promises; another is taken when the first line holds only that one.
    names
        Column names, for a file without a header line.
    encoding
        Its encoding; None: found out.
    formats
        How columns are written where they could be read in several ways: ``Dataset.formats`` of
        another table.
    """

    def __init__(
        self,
        path: Path,
        delimiter: str = ",",
        *,
        names: Sequence[str] | None = None,
        encoding: str | None = None,
        formats: Mapping[str, str] | None = None,
    ) -> None:
        self.path, self.text, self._wanted = path, str(path), formats or {}
        self.files, self.categorical = [str(path)], set()
        self._file = inspect(path, encoding)
        self._delimiter = _sniff(self._file, delimiter)
        self._headless, self._blank = names is not None, 0
        self._check_quotes()
        self.names = list(names) if names is not None else self._header()
        check_names(self.names, self.text)
        self._look_through()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return pa.schema(list(zip(self.names, self._types, strict=True)))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, these columns only, typed."""
        readings = {name: self._readings[name] for name in columns}
        types = {n: pa.string() if isinstance(r, Format) else r for n, r in readings.items()}
        for batch in self._stream(types, []):
            found = [_typed(batch.column(n), reading) for n, reading in readings.items()]
            yield pa.RecordBatch.from_arrays(found, names=list(columns))

    def _header(self) -> list[str]:
        try:
            start, fields = next(iter(self._file.records(self._delimiter)))
        except StopIteration:
            raise InvalidData(
                f"read: `{self.path}` must start with a line of column names."
            ) from None
        self._blank = start - 1  # lines above the header
        if self._file.lines <= start + sum(field.count("\n") for field in fields):
            raise self._rowless()
        names = [field.strip() or f"unnamed_{i}" for i, field in enumerate(fields, start=1)]
        if len(names) > 1 and all(_is_number(name) for name in names):
            warnings.warn(
                f"read: the first line of `{self.path}` is taken as column names, yet holds "
                "numbers only. Add a header line if it is data.",
                DataWarning,
                stacklevel=4,
            )
        return names

    def _look_through(self) -> None:
        comma = self._delimiter != ","
        guesses = {name: Guess(comma, self._wanted.get(name, "")) for name in self.names}
        ragged: list[Any] = []
        for batch in self._stream(dict.fromkeys(self.names, pa.string()), ragged):
            for guess, column in zip(guesses.values(), batch.columns, strict=True):
                guess.add(column)
        if ragged:
            raise self._ragged(ragged)
        self.rows = guesses[self.names[0]].rows
        if not self.rows:
            raise self._rowless()
        self._types = [guess.kind for guess in guesses.values()]
        self._readings = {name: guess.reading for name, guess in guesses.items()}
        self.notes = {name: guess.format_note for name, guess in guesses.items()}
        mixtures = {name: guess.mixture for name, guess in guesses.items()}
        self.notes |= {name: self._note(mixture) for name, mixture in mixtures.items() if mixture}
        self.notes = {name: note for name, note in self.notes.items() if note}
        self._warn_of_doubts(guesses)

    def _warn_of_doubts(self, guesses: dict[str, Guess]) -> None:
        for name, guess in guesses.items():
            wanted, found = self._wanted.get(name), guess.format_note
            said = f"read: column `{name}` of `{self.path}`"
            if wanted and found and found != wanted:
                said = f"{said} must hold {wanted}, as before; it holds {found} and is read so."
            elif guess.doubt and not wanted:
                said = (
                    f"{said} may hold {guess.doubt}; it is read as {found}. Write dates as "
                    "2020-12-31 and numbers as 1234.5 to be sure."
                )
            else:
                continue
            warnings.warn(said, DataWarning, stacklevel=6)

    def _note(self, mixture: Mixture) -> str:
        record = mixture.row + (1 if self._headless else 2)
        return mixture.note(f"line {self._file.line_of(record, self._delimiter)}")

    def _ragged(self, rows: list[Any]) -> InvalidData:
        first = rows[0]
        records = self._file.records(self._delimiter)
        uneven = (line for line, fields in records if len(fields) != first.expected_columns)
        line = next(uneven, first.number)
        more = f"; {plural(len(rows), 'line')} of the file are like this" if len(rows) > 1 else ""
        return InvalidData(
            f"read: `{self.path}` line {line} must have {plural(first.expected_columns, 'field')} "
            "like the header; "
            f"got {first.actual_columns} ({shorten(repr(first.text), 50)}){more}."
        )

    def _rowless(self) -> InvalidData:
        return InvalidData(
            f"read: `{self.path}` must hold at least one row; it has a header and nothing below it."
        )

    def _check_quotes(self) -> None:
        """Find a quotation mark that is never closed: it would swallow the rest of the file."""
        if self._file.quotes % 2 == 0:
            return
        start = 1
        for start, _ in self._file.records(self._delimiter):  # noqa: B007
            pass
        if self._file.lines - start > 1:
            raise InvalidData(
                f"read: `{self.path}` line {start} opens a quotation mark that is never closed. "
                "Close it, or double it inside a quoted field."
            )

    def _stream(self, types: dict[str, pa.DataType], ragged: list[Any]) -> Iterator[pa.RecordBatch]:
        def collect(row: Any) -> str:
            ragged.append(row)
            return "skip"

        try:
            with (
                self._file.utf8() as stream,
                pacsv.open_csv(stream, *self._options(types, collect)) as reader,
            ):
                yield from reader
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise self._broken(str(error)) from error

    def _options(self, types: dict[str, pa.DataType], handler: Any) -> tuple[Any, Any, Any]:
        reading = pacsv.ReadOptions(
            block_size=_BLOCK,
            skip_rows=self._blank,
            column_names=self.names,
            skip_rows_after_names=0 if self._headless else 1,
        )
        parsing = pacsv.ParseOptions(
            delimiter=self._delimiter,
            newlines_in_values=self._file.quotes > 0,
            invalid_row_handler=handler,
        )
        converting = pacsv.ConvertOptions(
            check_utf8=False,
            column_types=types,
            include_columns=list(types),
            null_values=MARKERS,
            strings_can_be_null=True,
            true_values=TRUE,
            false_values=FALSE,
        )
        return reading, parsing, converting

    def _broken(self, reason: str) -> InvalidData:
        if "conversion error" in reason:
            return InvalidData(f"read: `{self.path}` must not change while it is read.")
        if "Empty CSV" in reason:
            return self._rowless()
        if "straddl" in reason:
            megabytes = _BLOCK >> 20
            return InvalidData(
                f"read: `{self.path}` holds a record longer than {megabytes} MB. Is a quotation "
                "mark left open?"
            )
        return InvalidData(
            f"read: `{self.path}` cannot be parsed as text with delimiters: {shorten(reason, 160)}."
        )


def _typed(column: pa.Array, reading: pa.DataType | Format) -> pa.Array:
    return reading.convert(column) if isinstance(reading, Format) else column


def _sniff(file: TextFile, promised: str) -> str:
    """Return the promised delimiter, or the only other one that the first line holds."""
    line = next(iter(file.head(1)), "")
    if promised in line:
        return promised
    counts = {mark: line.count(mark) for mark in _DELIMITERS}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else promised


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
