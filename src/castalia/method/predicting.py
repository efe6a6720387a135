"""Predictions of a saved model for new rows."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from castalia.errors import InvalidData, InvalidParameter
from castalia.method.report.plain import plain
from castalia.method.saved import check_columns, load_model, unseen_categories
from castalia.method.table import load_table
from castalia.utils.files import atomic_write, writing
from castalia.utils.text import listing

__all__ = ["ENDINGS", "Predictions", "predict"]

ENDINGS = (".csv", ".parquet", ".jsonl")


@dataclass
class Predictions:
    """One prediction a row.

    Attributes
    ----------
    columns
        ``prediction``, and ``probability_<class>`` for every class, as arrays of one entry a row.
    notes
        Remarks, such as values never seen in training.
    """

    columns: dict[str, np.ndarray]
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.columns["prediction"])

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping a row, in plain values."""
        lists = [plain(values) for values in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*lists, strict=True)]

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write a CSV, Parquet or JSON-lines file, by its ending."""
        path = Path(path)
        if path.suffix.lower() not in ENDINGS:
            raise InvalidParameter(
                f"predict: the output must end in {listing(ENDINGS)}; got '{path}'."
            )
        with writing("predict", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            return atomic_write(path, self.to_bytes(path.suffix.lower()))

    def to_bytes(self, ending: str) -> bytes:
        """Return the table in the format of a file ending."""
        if ending == ".jsonl":
            lines = (json.dumps(row, ensure_ascii=False) for row in self.rows())
            return "".join(f"{line}\n" for line in lines).encode()
        if ending == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            sink = io.BytesIO()
            pq.write_table(pa.table({k: pa.array(plain(v)) for k, v in self.columns.items()}), sink)
            return sink.getvalue()
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(self.columns)
        out.writerows(zip(*(plain(v) for v in self.columns.values()), strict=True))
        return text.getvalue().encode()


def predict(
    model: str | os.PathLike[str], data: Any, *, header: bool = True, strict: bool = False
) -> Predictions:
    """Predict every row of a table with a saved model.

    Parameters
    ----------
    model
        Folder of a run or of a saved model.
    data
        What ``castalia.read`` takes; columns are found by name, others are ignored.
    header
        Whether a text file starts with column names.
    strict
        Refuse values that were never seen in training instead of taking them as missing.
    """
    estimator = load_model(model)
    table, notes = load_table(data, header=header)
    check_columns(estimator, table)
    unseen = unseen_categories(estimator, table)
    if strict and unseen:
        raise InvalidData(f"predict: {' '.join(unseen)}")
    table = table.select(estimator.adapter_.encoder.used)
    columns = {"prediction": estimator.predict(table)}
    if is_classifier(estimator) and hasattr(estimator, "predict_proba"):
        probability = estimator.predict_proba(table)
        for label, values in zip(estimator.classes_, probability.T, strict=True):
            columns[f"probability_{label}"] = values.astype(np.float64)
    return Predictions(columns, [*notes, *unseen])
