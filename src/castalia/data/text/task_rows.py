"""Files of benchmarks as rows: one mapping an example."""

from __future__ import annotations

import csv
import io
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw

from castalia.data.utf8_files import read_text
from castalia.errors import DataWarning, InvalidData
from castalia.utils.text import did_you_mean, listing, plural, shorten

__all__ = ["find_column", "rows_of", "spans_of", "task_rows"]

Row = Mapping[str, Any]


def task_rows(path: str | Path, headless: Sequence[str], wanted: Sequence[str]) -> list[Row]:
    """Return the examples of a file.

    Parameters
    ----------
    path
        ``.tsv``, ``.csv``, ``.json``, ``.jsonl`` or ``.parquet``.
    headless
        Columns of a ``.tsv`` whose first line does not name any of ``wanted``.
    wanted
        Names of which a header has one.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind == ".parquet":
        from pyarrow import parquet

        found: list[Row] = parquet.read_table(path).to_pylist()
        return found
    if kind not in (".tsv", ".csv", ".json", ".jsonl"):
        raise InvalidData(
            f"task: the file must end in .tsv, .csv, .json, .jsonl or .parquet; got `{path}`."
        )
    text = read_text(path, "task")
    if kind == ".json":
        return list(_squad(_parsed(text, path, 1), path))
    if kind == ".jsonl":
        lines = enumerate(text.split("\n"), start=1)
        return [_parsed(line, path, number) for number, line in lines if line.strip()]
    return _separated(text, path, headless, wanted)


def _parsed(text: str, path: Path, line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidData(
            f"task: `{path}` must be JSON; got {error.msg} in line {line + error.lineno - 1}."
        ) from error


def _squad(read: Any, path: Path) -> Iterator[Row]:
    """Yield the questions of SQuAD's articles, each with its text."""
    if not isinstance(read, Mapping) or "data" not in read:
        raise InvalidData(
            f"task: `{path}` must be a file of SQuAD, with `data` and `paragraphs`; got "
            f"{shorten(repr(read), 40)}."
        )
    for article in read["data"]:
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                yield {**asked, "context": paragraph["context"]}


def _separated(text: str, path: Path, headless: Sequence[str], wanted: Sequence[str]) -> list[Row]:
    """Read columns; GLUE's tabs know no quotes, so a quote there is a letter like any other."""
    tabs = path.suffix.lower() == ".tsv"
    lines = io.StringIO(text, newline="")
    quoted = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {}
    cut = list(csv.reader(lines, **quoted))  # type: ignore[arg-type]
    names, first = cut[0], 1
    if headless and not any(name in names for name in wanted):
        names, first = list(headless), 0
    whole = [dict(zip(names, row, strict=True)) for row in cut[first:] if len(row) == len(names)]
    bad = [k for k, row in enumerate(cut[first:], first + 1) if len(row) != len(names)]
    if bad:
        warnings.warn(
            f"task: {plural(len(bad), 'line')} of `{path}` left out, for they do not have the "
            f"{len(names)} columns of the others; the first is line {bad[0]}.",
            DataWarning,
            stacklevel=4,
        )
    return whole  # type: ignore[return-value]


def rows_of(rows: Any, owner: str) -> list[Row]:
    """Return examples as mappings."""
    if hasattr(rows, "columns") or hasattr(rows, "column_names") and hasattr(rows, "schema"):
        return nw.from_native(rows, eager_only=True).rows(named=True)  # type: ignore[return-value]
    found = list(rows)
    wrong = next((k for k, row in enumerate(found) if not isinstance(row, Mapping)), None)
    if wrong is not None:
        raise InvalidData(
            f"{owner}: an example must be a mapping from column to value; got "
            f"{shorten(repr(found[wrong]), 40)} at place {wrong}."
        )
    return found


def find_column(row: Row, aliases: Sequence[str], owner: str) -> str:
    """Return the name under which a row has a text."""
    for name in aliases:
        if name in row:
            return name
    raise InvalidData(
        f"{owner}: examples must have a column {listing(aliases)}; got "
        f"{listing(row, 'and')}.{did_you_mean(aliases[0], map(str, row))}"
    )


def spans_of(row: Row) -> list[tuple[str, int]]:
    """Return the answers to a question of SQuAD and where they begin; none where there is none.

    >>> spans_of({"answers": {"text": ["Rome"], "answer_start": [3]}})
    [('Rome', 3)]
    """
    if row.get("is_impossible"):
        return []
    answers = row.get("answers") or []
    if isinstance(answers, Mapping):  # a column of lists, as Hugging Face has it
        return list(zip(answers["text"], map(int, answers["answer_start"]), strict=True))
    return [(answer["text"], int(answer["answer_start"])) for answer in answers]
