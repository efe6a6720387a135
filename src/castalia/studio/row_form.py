"""A row of a table: its answer, what its columns did to that answer, and training rows like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from castalia.data import Dataset, read
from castalia.errors import CastaliaError, InvalidData
from castalia.method.explanations import explain
from castalia.method.fit_table import load_table
from castalia.method.report.plain_values import plain
from castalia.serve.predictors import predictor_of
from castalia.studio.run_files import result_of
from castalia.studio.run_index import RunRow
from castalia.studio.text_form import class_shares

__all__ = ["RowForm", "gower_distances"]

MOST_CHOICES = 200
MOST_COLUMNS = 12  # whose effects are shown
SIMILAR = 5  # rows
MOST_ROWS = 100_000  # that are searched for similar ones
_NUMBERS = ("numeric", "boolean")


class RowForm:
    """Fields for the columns that a model reads."""

    takes = "row"

    def __init__(self, row: RunRow, model: Any) -> None:
        self.row, self.model, self.predictor = row, model, predictor_of(model)
        self.fields = _fields(result_of(row.folder).get("report", {}), self.predictor)

    def schema(self) -> dict[str, Any]:
        """Return the fields: name, kind, choices or range, and a row to begin with."""
        return {"fields": self.fields, "reasons": bool(self._table())}

    def _table(self) -> str:
        """Return the table that the run was trained on; nothing where it does not say."""
        plan = (result_of(self.row.folder).get("summary") or {}).get("plan") or {}
        found = plan.get("data")
        return found if isinstance(found, str) else ""

    def _typed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(body.get("row"), dict):
            raise InvalidData("studio: a row must be an object of columns.")
        return _typed(body["row"], self.fields)

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the prediction, and the likeliest classes with their probabilities."""
        parts = self.predictor.join([self.predictor.parse([self._typed(body)])])
        answer = {key: each.tolist()[0] for key, each in self.predictor.answer(parts).items()}
        found: dict[str, Any] = {"prediction": answer.pop("prediction", None)}
        chances, classes = answer.pop("probability", None), self.predictor.classes
        if isinstance(chances, list) and classes is not None:
            found["classes"] = class_shares(classes, chances)
        return found | {"more": answer}

    def why(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what each column did to the answer, and the training rows most like the row."""
        cells = self._typed(body)
        one = read(pa.table({name: pa.array([cell]) for name, cell in cells.items()}))
        try:
            table = load_table(self._table())[0]
        except (CastaliaError, OSError):
            raise InvalidData(
                "studio: reasons compare a row with the table that was trained on; it is no "
                "longer where it was."
            ) from None
        found = explain(self.row.folder, one, background=table, first=1).rows()[0]
        columns = found.pop("columns")[:MOST_COLUMNS]
        return plain({**found, "columns": columns, "similar": self._similar(cells, table)})

    def _similar(self, cells: Mapping[str, Any], table: Dataset) -> dict[str, Any]:
        """Return the nearest rows of the table, their target first."""
        table = table.take(np.arange(min(len(table), MOST_ROWS)))
        names = [name for name in cells if name in table.columns]
        far = gower_distances(cells, {name: table.column(name) for name in names})
        target = result_of(self.row.folder)["report"].get("target")
        shown = [name for name in (target, *names) if name in table.columns]
        near = np.argsort(far, kind="stable")[:SIMILAR]
        rows = [[table.column(name)[place] for name in shown] for place in near]
        return {"columns": shown, "rows": rows, "distances": far[near]}


def gower_distances(cells: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the distance of a row to rows, from 0 to 1 (1971, Gower, Biometrics 27).

    The mean over columns of |a - b| / range for numbers and of a ≠ b for words; a value that is
    missing on one side counts as different.

    Examples
    --------
    >>> table = {"age": np.array([20.0, 40.0]), "city": np.array(["Pisa", "Bern"], dtype=object)}
    >>> gower_distances({"age": 30.0, "city": "Pisa"}, table)
    array([0.25, 0.75])
    """
    parts = []
    for name, values in columns.items():
        cell = cells[name]
        if values.dtype.kind not in "iufb":
            parts.append(np.array([str(value) != str(cell) for value in values], float))
            continue
        known = values.astype(float)
        width = float(np.nanmax(known) - np.nanmin(known)) or 1.0
        gap = np.abs(known - (np.nan if cell is None else float(cell))) / width
        parts.append(np.nan_to_num(np.minimum(gap, 1.0), nan=1.0))
    return np.mean(parts, axis=0)


def _fields(report: Mapping[str, Any], predictor: Any) -> list[dict[str, Any]]:
    """Return the columns that the model reads, as the run's data had them."""
    known = {each["name"]: each for each in (report.get("data") or {}).get("columns") or []}
    mistakes = [each["row"] for each in report.get("mistakes") or [] if "row" in each]
    first: dict[str, Any] = mistakes[0] if mistakes else {}
    words = getattr(getattr(predictor, "entry", None), "words", {})
    found = []
    for name, kind in predictor.columns.items():
        if kind not in (*_NUMBERS, "categorical", "date", "any"):
            raise InvalidData(
                f"studio: the form takes rows of tables, texts, images and series; this model "
                f"takes {kind}. `castalia predict` answers for files."
            )
        seen = known.get(name, {})
        own = seen.get("kind", "categorical") if kind == "any" else kind
        choices = [str(word) for word in words.get(name, ())][:MOST_CHOICES]
        if own == "categorical" and not choices and "…" not in str(seen.get("detail", "…")):
            choices = [word.strip() for word in str(seen["detail"]).split(",")]
        facts = {"detail": seen.get("detail", ""), "example": first.get(name)}
        found.append({"name": name, "kind": own, "choices": choices, **facts})
    return found


def _typed(row: Mapping[str, Any], fields: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what was typed as values: numbers where the column has numbers, None for nothing."""
    found: dict[str, Any] = {}
    for each in fields:
        text = str(row.get(each["name"]) or "").strip()
        found[each["name"]] = text or None
        if text and each["kind"] in _NUMBERS and text.lower() not in ("true", "false", "yes", "no"):
            try:
                found[each["name"]] = float(text)
            except ValueError:
                raise InvalidData(
                    f"studio: `{each['name']}` must be a number; got {text!r}."
                ) from None
    return found
