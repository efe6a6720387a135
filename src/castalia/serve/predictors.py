"""How a loaded model answers rows of JSON: by its graph of tensors, or as ``predict`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from castalia.data import read
from castalia.errors import InvalidData
from castalia.export.model_graph import ModelGraph, graph_of
from castalia.export.table_columns import word_codes
from castalia.method.kinds import Table, kind_of
from castalia.method.saved_model import column_kinds
from castalia.serve.json_columns import joined_columns, json_columns
from castalia.utils.text import shorten

__all__ = ["GraphPredictor", "TablePredictor", "predictor_of"]


class GraphPredictor:
    """Answers by the graph that ``castalia export`` would write, evaluated by torch.

    Attributes
    ----------
    columns
        Kind of each column of a table; ``{"X": "array"}`` and the like for other rows.
    """

    def __init__(self, graph: ModelGraph) -> None:
        self.graph, self.entry = graph, graph.entry
        self.columns: dict[str, str] = self.entry.facts().get("columns", {})
        self.columns = self.columns or {self.entry.ports[0].name: self.entry.kind}

    def parse(self, rows: Sequence[Any]) -> Any:
        """Return some rows, checked, for `join`."""
        if self.entry.kind == "table":
            return json_columns(rows, self.columns)
        if self.entry.kind == "text":
            return [_text(row, place) for place, row in enumerate(rows)]
        port = self.entry.ports[0]
        return _array(rows, port.shape, port.dtype)

    def _feeds(self, found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        entry: Any = self.entry
        codes = [word_codes(found[name], words) for name, words in entry.words.items()]
        parts = {"numbers": [found[name] for name in entry.numeric], "codes": codes}
        return {port.name: np.stack(parts[port.name], axis=1) for port in entry.ports}

    def join(self, parts: Sequence[Any]) -> Any:
        """Return the rows of several requests as one, for `answer`."""
        if self.entry.kind == "text":
            return [text for part in parts for text in part]
        if self.entry.kind == "table":
            found = joined_columns(parts, self.columns)
            return found, self._feeds(found)
        return np.concatenate(parts)

    def answer(self, parsed: Any) -> dict[str, np.ndarray]:
        """Return the columns of the predictions."""
        if self.entry.kind == "table":
            feeds = parsed[1]
        else:
            feeds = self.entry.feeds(parsed)
        with torch.inference_mode():
            found = self.graph(*(torch.from_numpy(feed) for feed in feeds.values()))
        return self._columns([part.numpy() for part in found])

    def _columns(self, found: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        named = dict(zip(self.graph.answer.outputs, found, strict=True))
        classes = self.graph.answer.classes
        if classes is not None:
            named["prediction"] = classes[named["prediction"]]
        return {name: named[name] for name in sorted(named, key=lambda n: n != "prediction")}

    @cached_property
    def classes(self) -> list[Any] | None:
        """The classes of a classifier."""
        found = self.graph.answer.classes
        return None if found is None else found.tolist()

    def warm_rows(self, count: int) -> Any:
        """Return joined rows that stand for any."""
        if self.entry.kind == "table":
            return self.join([self.parse([dict.fromkeys(self.columns)] * count)])
        if self.entry.kind == "text":
            return ["a text"] * count
        port = self.entry.ports[0]
        return np.zeros((count, *port.shape), port.dtype)


class TablePredictor:
    """Answers as ``castalia predict`` does, for models of tables without a graph.

    Attributes
    ----------
    columns
        Kind of each column; ``"any"`` is a number, a boolean or a date.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.columns = model, column_kinds(model)

    def parse(self, rows: Sequence[Any]) -> Any:
        """Return the columns of some rows, checked, for `join`."""
        return json_columns(rows, self.columns)

    def join(self, parts: Sequence[Any]) -> Any:
        """Return the rows of several requests as one, for `answer`."""
        return joined_columns(parts, self.columns)

    def answer(self, parsed: Any) -> dict[str, np.ndarray]:
        """Return the columns of the predictions."""
        table = pa.table({name: _cells(parsed[name], kind) for name, kind in self.columns.items()})
        X = read(table)
        found = {"prediction": np.asarray(self.model.predict(X))}
        if hasattr(self.model, "predict_proba") and hasattr(self.model, "classes_"):
            found["probability"] = np.asarray(self.model.predict_proba(X))
        return found

    @cached_property
    def classes(self) -> list[Any] | None:
        """The classes of a classifier."""
        found = getattr(self.model, "classes_", None)
        return None if found is None else np.asarray(found).tolist()

    def warm_rows(self, count: int) -> Any:
        """Return joined rows that stand for any."""
        return self.join([self.parse([dict.fromkeys(self.columns)] * count)])


def predictor_of(model: Any) -> Any:
    """Return what answers rows of JSON with a model, or refuse one that takes other rows."""
    try:
        return GraphPredictor(graph_of(model))
    except InvalidData:
        if kind_of(model) is Table:
            return TablePredictor(model)
    raise InvalidData(
        f"serve: a {type(model).__name__} answers rows that JSON does not hold; tables, arrays, "
        "signals and texts are served."
    )


def _cells(values: np.ndarray, kind: str) -> pa.Array:
    """Return a column of JSON as Arrow has it in a table that was read."""
    if kind == "categorical":
        return pa.array(values, pa.string())
    if kind == "date":  # days since 1970
        values = (86_400e6 * values).astype("datetime64[us]")
    return pa.array(values, from_pandas=True)


def _text(row: Any, place: int) -> str:
    text = row.get("text") if isinstance(row, dict) else row
    if not isinstance(text, str) or not text.strip():
        raise InvalidData(
            f"serve: a row must be a text that is not empty; row {place} is "
            f"{shorten(repr(row), 40)}."
        )
    return text


def _array(rows: Sequence[Any], shape: tuple[int, ...], dtype: str) -> np.ndarray:
    try:
        found = np.array(rows, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise InvalidData(
            f"serve: rows must be numbers of shape {shape} each; a row holds something else."
        ) from None
    if found.shape[1:] != shape:
        raise InvalidData(
            f"serve: rows must be numbers of shape {shape} each; got {found.shape[1:]}."
        )
    if np.isinf(found).any():
        place = int(np.isinf(found).reshape(len(found), -1).any(axis=1).argmax())
        raise InvalidData(f"serve: rows must hold finite numbers; row {place} does not.")
    return found
