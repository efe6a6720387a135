"""The last steps of a series, typed or in a table, and the steps that follow it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from castalia.data import read
from castalia.errors import InvalidData
from castalia.method.kinds import Asked, SeriesForecast
from castalia.method.predictions import answer_rows, read_new_rows
from castalia.method.saved_model import find_target
from castalia.studio.run_files import result_of
from castalia.studio.run_index import RunRow
from castalia.studio.uploaded_file import uploaded

__all__ = ["SeriesForm"]

MOST_PAST = 500  # steps drawn


class SeriesForm:
    """Numbers one below the other, or a table as the one that was trained on."""

    takes = "series"

    def __init__(self, row: RunRow, model: Any) -> None:
        self.row, self.model = row, model
        self.target = find_target(row.folder)

    def schema(self) -> dict[str, Any]:
        """Return the tested steps of the run to begin with, and how many are needed."""
        shown = result_of(self.row.folder).get("report", {}).get("forecasts")
        least = getattr(getattr(self.model, "features", self.model), "context", 1)
        return {
            "target": self.target or "value",
            "least": int(least),
            "example": [float(step) for step in (shown or {}).get("past", [])],
        }

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return past and forecast of the first series, with the interval where there is one."""
        rows = self._rows(body)
        found = answer_rows(self.model, rows).columns
        past, count = rows.X.steps[0][:, 0][-MOST_PAST:], len(rows.X.steps)
        ahead = len(found["prediction"]) // count
        parts = {name: found[name][:ahead].tolist() for name in found}
        notes = [f"The first of {count:,} series; `castalia predict` answers all."]
        return {
            "past": past.tolist(),
            "forecast": {name: parts.get(name) for name in ("time", "prediction", "low", "high")},
            "target": self.target or "value",
            "notes": notes * (count > 1),
        }

    def _rows(self, body: Mapping[str, Any]) -> Any:
        if body.get("file"):
            ending = ".parquet" if str(body.get("name", "")).endswith(".parquet") else ".csv"
            with uploaded(body, ending) as path:
                return read_new_rows(self.row.folder, self.model, path)
        name = self.target or "value"
        table = read(pa.table({name: pa.array(_numbers(str(body.get("steps", ""))))}))
        return SeriesForecast.new_rows(self.model, [table], Asked(target=name))


def _numbers(text: str) -> list[float]:
    """Return numbers with spaces, commas or line ends between them.

    >>> _numbers("1, 2.5 3")
    [1.0, 2.5, 3.0]
    """
    words = text.replace(",", " ").replace(";", " ").split()
    try:
        found = [float(word) for word in words]
    except ValueError:
        found = []
    if not found:
        raise InvalidData("studio: type numbers, one a line, or choose a table.")
    return found
