"""The runs of a folder as rows of a table: searched, sorted and paged here, not in the browser."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from castalia.errors import InvalidParameter
from castalia.evaluate import higher_is_better
from castalia.studio.run_files import summary_of, worst_of
from castalia.studio.run_marks import Marks
from castalia.train.runs import RunStore
from castalia.utils.file_locks import FolderLock
from castalia.utils.text import listing

__all__ = ["SORTS", "RunIndex", "RunRow"]

SORTS = ("name", "status", "model", "score", "findings", "created", "updated")
_COLUMNS = "SELECT id, name, status, created, updated, config FROM runs ORDER BY id"
_MARK = "SELECT count(*), max(id), max(updated), sum(updated) FROM runs"
_LAST = (
    "SELECT value FROM metrics WHERE run = ? AND key = (SELECT id FROM keys WHERE name = ?) "
    "ORDER BY step DESC LIMIT 1"
)
_SEVERITY = {"error": 0, "warning": 1, "info": 2, "": 3}


@dataclass
class RunRow:
    """One run of the table."""

    number: int
    name: str
    status: str
    created: float
    updated: float
    config: dict[str, Any]
    folder: Path
    marks: Marks
    words: str = ""
    _score: dict[str, Any] | None = field(default=None, repr=False)
    _asked: bool = False

    @property
    def current(self) -> str:
        """The status as it is now: a run that no living process holds is not running."""
        dead = self.status == "running" and not FolderLock(self.folder).held
        return "interrupted" if dead else self.status

    @property
    def model(self) -> str:
        """What is trained."""
        return str(self.config.get("estimator") or self.config.get("model") or "")

    def score(self, store: RunStore) -> dict[str, Any] | None:
        """Return what the run came to: the score of the recommended model, or the last loss."""
        if not self._asked:
            self._score, self._asked = _score(store, self), True
        return self._score


class RunIndex:
    """Rows of all runs, read again only when the store has changed.

    Parameters
    ----------
    store
        The runs.
    """

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self._rows: dict[int, RunRow] = {}
        self._mark: Any = None
        self._lock = threading.Lock()

    def rows(self) -> list[RunRow]:
        """Return all runs, oldest first."""
        with self._lock:
            mark = self.store.select(_MARK)
            if mark != self._mark:
                self._rows, self._mark = self._read(), mark
            return list(self._rows.values())

    def _read(self) -> dict[int, RunRow]:
        found = {}
        for number, name, status, created, updated, config in self.store.select(_COLUMNS):
            old = self._rows.get(number)
            if old is not None and (old.name, old.updated) == (name, updated):
                old.status = status
                found[number] = old
            elif (row := self._row(number, name, status, created, updated, config)) is not None:
                found[number] = row
        return found

    def _row(
        self, number: int, name: Any, status: Any, created: Any, updated: Any, config: Any
    ) -> RunRow | None:
        """Return a row; None where the database holds something else than a run."""
        try:
            settings = json.loads(config)
            times = float(created), float(updated)
            folder = self.store.root / name
        except (ValueError, TypeError, RecursionError):
            return None
        if not isinstance(settings, dict):
            return None
        row = RunRow(number, name, status, *times, settings, folder, Marks.read(folder))
        row.words = f"{name} {config}".lower()
        return row

    def find(self, name: str) -> RunRow:
        """Return a run by its name."""
        found = next((row for row in self.rows() if row.name == name), None)
        if found is None:
            raise InvalidParameter(f"studio: there is no run {name!r}.")
        return found

    def tags(self) -> list[str]:
        """Return every tag in use."""
        return sorted({tag for row in self.rows() for tag in row.marks.tags})

    def page(
        self,
        search: str = "",
        sort: str = "updated",
        down: bool = True,
        status: str = "",
        archived: bool = False,
        offset: int = 0,
        limit: int = 50,
    ) -> dict[str, Any]:
        """Return some rows, and how many there are.

        Parameters
        ----------
        search
            Words that must all occur in name, settings, tags or note; ``#word`` in the tags.
        sort, down
            Column, and whether from the largest.
        status
            Only runs of this status.
        archived
            Whether archived runs are shown instead of the others.
        offset, limit
            Which rows.
        """
        if sort not in SORTS:
            raise InvalidParameter(f"studio: `sort` must be {listing(SORTS)}; got {sort!r}.")
        words = search.lower().split()
        found = [
            row
            for row in self.rows()
            if row.marks.archived is archived and (not words or _matches(row, words))
        ]
        if status:
            found = [row for row in found if row.current == status]
        shown = self._sorted(found, sort, down)[offset : offset + limit]
        return {"total": len(found), "rows": [self.shown(row) for row in shown]}

    def _sorted(self, rows: list[RunRow], sort: str, down: bool) -> list[RunRow]:
        if sort == "score":
            return _by_score(rows, [row.score(self.store) for row in rows], down)
        if sort == "findings":
            return sorted(rows, key=lambda row: _SEVERITY[worst_of(row.folder)], reverse=not down)
        key = "current" if sort == "status" else sort
        return sorted(rows, key=lambda row: (getattr(row, key), row.number), reverse=down)

    def shown(self, row: RunRow) -> dict[str, Any]:
        """Return a row as the table shows it."""
        return {
            "name": row.name,
            "status": row.current,
            "created": row.created,
            "updated": row.updated,
            "model": row.model or (summary_of(row.folder).get("recommended_name") or ""),
            "score": row.score(self.store),
            "worst": worst_of(row.folder),
            "tags": list(row.marks.tags),
            "note": row.marks.note,
            "archived": row.marks.archived,
        }


def _matches(row: RunRow, words: Sequence[str]) -> bool:
    tags = [tag.lower() for tag in row.marks.tags]
    said = f"{row.words} {' '.join(tags)} {row.marks.note.lower()}"
    return all(word[1:] in tags if word[:1] == "#" else word in said for word in words)


def _by_score(
    rows: list[RunRow], scores: Sequence[dict[str, Any] | None], down: bool
) -> list[RunRow]:
    """Sort by value, best or worst first within a metric; runs without a score come last."""

    def key(pair: tuple[RunRow, dict[str, Any] | None]) -> tuple[Any, ...]:
        found = pair[1]
        if found is None or found["value"] is None:
            return (1, "", 0.0)
        return (0, found["metric"], found["value"] * (-1 if found["higher"] == down else 1))

    pairs = sorted(zip(rows, scores, strict=True), key=key)
    return [row for row, _ in pairs]


def _score(store: RunStore, row: RunRow) -> dict[str, Any] | None:
    found = summary_of(row.folder).get("score")
    if found is not None:
        return found | {"higher": _higher(found["metric"])}
    for metric in ("val_loss", "loss", "validation_loss", "batch_loss"):
        values = store.select(_LAST, (row.number, metric))
        if values and isinstance(values[0][0], float):
            return {"metric": metric, "value": values[0][0], "by": "", "higher": False}
    return None


def _higher(metric: str) -> bool:
    try:
        return bool(higher_is_better(metric))
    except InvalidParameter:
        return False
