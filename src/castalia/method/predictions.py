"""Predictions of a saved model for new rows."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from castalia.errors import InvalidData, InvalidParameter
from castalia.method.kinds import Asked, NewRows, kind_of
from castalia.method.report.plain_values import plain
from castalia.method.saved_model import (
    find_columns,
    find_formats,
    find_target,
    find_text,
    load_model,
)
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.text import listing

__all__ = ["ENDINGS", "Predictions", "answer_rows", "harmless", "predict", "read_new_rows"]

ENDINGS = (".csv", ".parquet", ".jsonl")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with these spreadsheets begin to compute
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass
class Predictions:
    """One prediction a row.

    Attributes
    ----------
    columns
        Arrays of one entry a row. Of tables: ``prediction``, and ``probability_<class>`` for every
        class; of images: ``path``, ``label`` and its ``probability``; of texts the same as of
        tables; of a translator ``source`` and ``translation``; of a language model ``text``,
        ``tokens`` and ``bits_per_character``.
    notes
        Remarks, such as values never seen in training.
    """

    columns: dict[str, np.ndarray]
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping a row, in plain values."""
        lists = [plain(values) for values in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*lists, strict=True)]

    def write(self, path: str | os.PathLike[str], *, formulas: bool = False) -> Path:
        """Write a CSV, Parquet or JSON-lines file, by its ending.

        Parameters
        ----------
        path
            The file.
        formulas
            Whether text in a CSV that a spreadsheet would run as a formula stays as it is; by
            default it gets an apostrophe before it.
        """
        path = Path(path)
        if path.suffix.lower() not in ENDINGS:
            raise InvalidParameter(
                f"predict: the output must end in {listing(ENDINGS)}; got '{path}'."
            )
        with writing("predict", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            return atomic_write(path, self.to_bytes(path.suffix.lower(), formulas=formulas))

    def to_bytes(self, ending: str, *, formulas: bool = False) -> bytes:
        """Return the table in the format of a file ending; ``formulas`` as for ``write``."""
        if ending == ".jsonl":
            lines = (json.dumps(row, ensure_ascii=False) for row in self.rows())
            return "".join(f"{line}\n" for line in lines).encode()
        if ending == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            sink = io.BytesIO()
            pq.write_table(pa.table({k: pa.array(plain(v)) for k, v in self.columns.items()}), sink)
            return sink.getvalue()
        rows = [self.columns, *zip(*(plain(v) for v in self.columns.values()), strict=True)]
        return _csv(rows if formulas else ([harmless(cell) for cell in row] for row in rows))


def _csv(rows: Iterable[Iterable[Any]]) -> bytes:
    """Return lines of fields; one with a carriage return, which ends a line too, is quoted."""
    text = io.StringIO()
    bare = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    for row in map(tuple, rows):
        odd = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoted if odd else bare).writerow(row)
    return text.getvalue().encode()


def harmless(cell: Any) -> Any:
    """Return text that a spreadsheet shows and does not run; numbers stay numbers.

    >>> [harmless(cell) for cell in ("=1+1", "-12.5", "-x", -3.0, "a=1")]
    ["'=1+1", '-12.5', "'-x", -3.0, 'a=1']
    """
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    return cell if _NUMBER.fullmatch(cell) else f"'{cell}"


def predict(
    model: str | os.PathLike[str],
    data: Any,
    *,
    name: str | None = None,
    text: str | None = None,
    header: bool = True,
    strict: bool = False,
    keep: Sequence[str] = (),
    encoding: str | None = None,
) -> Predictions:
    """Predict every row of a table, every image, or every text, with a saved model.

    Parameters
    ----------
    model
        Folder of a run, whose recommended model is taken, or of a saved model.
    data
        A table as ``castalia.read`` takes it; columns are found by name, others are ignored. Or
        images: a folder, a file, or a list of them. Or a text file, with one text a line.
    name
        Another model of the run, such as ``"boosting"``.
    text
        Column with the texts; None takes the one the run was trained on.
    header
        Whether a text file starts with column names.
    strict
        Refuse values that were never seen in training instead of taking them as missing.
    keep
        Columns of the table to repeat beside the predictions, such as an identifier.
    encoding
        Encoding of a text file; None: found out.
    """
    estimator = load_model(model, name)
    rows = read_new_rows(
        model, estimator, data, text=text, header=header, encoding=encoding, keep=keep
    )
    if strict and rows.unseen:
        raise InvalidData(f"predict: {' '.join(rows.unseen)}")
    return answer_rows(estimator, rows, keep)


def answer_rows(estimator: Any, rows: NewRows, keep: Sequence[str] = ()) -> Predictions:
    """Return what a model answers to rows, beside the columns that are kept."""
    answers = kind_of(estimator).answers(estimator, rows.X)
    _check_kept(keep, rows.names, answers)
    return Predictions({**rows.names, **answers}, [*rows.notes, *rows.unseen])


def read_new_rows(
    model: str | os.PathLike[str],
    estimator: Any,
    data: Any,
    *,
    text: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    keep: Sequence[str] = (),
) -> NewRows:
    """Read rows as the run of a saved model read its own.

    Parameters
    ----------
    model
        The folder that the estimator was loaded from.
    estimator
        The model.
    data, text, header, encoding, keep
        As ``predict`` takes them.
    """
    return kind_of(estimator).new_rows(
        estimator,
        data if isinstance(data, list) else [data],
        Asked(
            target=find_target(model),
            **find_columns(model),
            text=text or find_text(model),
            header=header,
            encoding=encoding,
            keep=tuple(keep),
            formats=find_formats(model),
        ),
    )


def _check_kept(keep: Sequence[str], names: Collection[str], answers: Collection[str]) -> None:
    """Refuse columns that rows do not have, and those that predictions would hide."""
    lost = [name for name in keep if name not in names or name in answers]
    if lost:
        reason = (
            "predictions have a column of that name"
            if lost[0] in answers
            else "rows of a table alone have columns"
        )
        raise InvalidParameter(
            "predict: `keep` must name columns of a table other than those of predictions; got "
            f"`{lost[0]}`, and {reason}."
        )
