"""Runs: one SQLite file per runs root for runs, metrics and findings, and one folder per run.

The database is in WAL mode, so several processes may write and read at once, and a commit does not
wait for the disk. Metrics are keyed by (run, key, step) without a row id: about 25 bytes a point,
and reading one curve is one range scan however many other runs there are. Who works in a run's
folder holds its lock, so a run that nobody holds is not running, whatever its row says.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

from castalia.errors import (
    DamagedFile,
    InvalidParameter,
    TrainingWarning,
)
from castalia.train.run_database import RunDatabase
from castalia.utils.atomic_files import atomic_write, sweep_files, writing
from castalia.utils.file_locks import FolderLock
from castalia.utils.text import did_you_mean, listing, plural

__all__ = ["STATUSES", "Run", "RunStore"]

STATUSES = ("running", "finished", "failed", "interrupted")
_BUFFERED = 1024  # points held back before they are written unasked
_LAST = 2.0**36  # seconds since 1970 that calendars know


def _json(value: Any) -> str:
    """Write a configuration for reading; values JSON lacks become numbers or their ``repr``."""
    return json.dumps(value, default=lambda v: v.item() if hasattr(v, "item") else repr(v))


def _config(text: Any) -> dict[str, Any] | None:
    """Read what ``_json`` wrote; None where it is damaged."""
    with suppress(ValueError, TypeError, RecursionError):
        found = json.loads(text)
        return found if isinstance(found, dict) else None
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _is_whole(run: Mapping[str, Any]) -> bool:
    """Say whether a row holds what it should: others may come from a damaged disk."""
    times = [run["created"], run["updated"]]
    return (
        _is_plain(run["name"])
        and run["status"] in STATUSES
        and all(_is_number(seconds) and 0 <= seconds < _LAST for seconds in times)
        and _config(run["config"]) is not None
    )


class RunStore:
    """The runs kept under one folder.

    Safe to use from several processes and threads: each gets its own connection. Close it, or use
    it as a context manager.

    Parameters
    ----------
    root
        The folder; made when missing. The database is ``castalia.db`` inside it.

    Examples
    --------
    >>> import tempfile
    >>> with RunStore(tempfile.mkdtemp()) as store:
    ...     run = store.open_run("titanic", "abc", {"lr": 0.1})
    ...     run.log(1, 0, {"loss": 0.5})
    ...     run.finish("finished")
    ...     run.metric("loss")
    ([1], [0.5])
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self.path = self.root / "castalia.db"
        with writing("RunStore", self.root):
            self.root.mkdir(parents=True, exist_ok=True)
        self.database = RunDatabase(self.path)

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of this process; a later use opens a new one."""
        self.database.close()

    def select(self, query: str, values: Any = ()) -> list[Any]:
        """Return the rows of a query that only reads, for tools that show many runs at once."""
        return self.database.select(query, values)

    def open_run(self, name: str, fingerprint: str, config: Mapping[str, Any]) -> Run:
        """Return the run of this name and fingerprint, or make it.

        When the name belongs to a run with another fingerprint, or to a folder that is not a run,
        ``name-2``, ``name-3`` … is looked for in the same way: nothing is ever overwritten. The
        status of a run found is left as it is; call ``Run.resume`` before working in it.

        Parameters
        ----------
        name
            Name of the run and of its folder under the root.
        fingerprint
            A digest of everything that decides the run's result.
        config
            The settings, for people to read; kept in the database and in the folder's
            ``config.json``.
        """
        _check_name(name)
        with self.database.writing() as connection:
            number, candidate = 1, name
            while (row := self._row(connection, candidate)) is None or row[1] != fingerprint:
                if row is None and not _occupied(self.root / candidate):
                    row = self._insert(connection, candidate, fingerprint, _json(dict(config)))
                    break
                number += 1
                candidate = f"{name}-{number}"
        config_found = _config(row[2])
        if config_found is None:
            raise DamagedFile(
                f"RunStore: the settings of run `{candidate}` in `{self.path}` are damaged. Delete "
                f"it with `RunStore(…).delete({candidate!r})`, or choose another name."
            )
        run = Run(self, row[0], candidate, config_found)
        self._furnish(run)
        return run

    @staticmethod
    def _row(connection: sqlite3.Connection, name: str) -> Any:
        query = "SELECT id, fingerprint, config FROM runs WHERE name = ?"
        return connection.execute(query, (name,)).fetchone()

    @staticmethod
    def _insert(connection: sqlite3.Connection, name: str, fingerprint: str, config: str) -> Any:
        now = time.time()
        made = connection.execute(
            "INSERT INTO runs (name, status, created, updated, fingerprint, config) "
            "VALUES (?, 'running', ?, ?, ?, ?)",
            (name, now, now, fingerprint, config),
        )
        return made.lastrowid, fingerprint, config

    @staticmethod
    def _furnish(run: Run) -> None:
        """Make the run's folder and its ``config.json`` where they are missing."""
        with writing("RunStore", run.folder):
            run.folder.mkdir(parents=True, exist_ok=True)
            if not (run.folder / "config.json").exists():
                atomic_write(run.folder / "config.json", json.dumps(run.config, indent=2) + "\n")

    def runs(self, name: str | None = None) -> list[dict[str, Any]]:
        """Return the runs as plain dicts, oldest first; with a name, only that one."""
        columns = "id, name, status, created, updated, fingerprint, config"
        where, values = ("", ()) if name is None else (" WHERE name = ?", (name,))
        with self.database.reading() as connection:
            rows = connection.execute(
                f"SELECT {columns} FROM runs{where} ORDER BY id", values
            ).fetchall()
        found = [dict(zip(columns.split(", "), row, strict=True)) for row in rows]
        whole = [run | {"config": _config(run["config"])} for run in found if _is_whole(run)]
        if len(whole) < len(found):
            warnings.warn(
                f"RunStore: {plural(len(found) - len(whole), 'damaged row')} of `{self.path}` left "
                "out; the runs' folders stay.",
                TrainingWarning,
                stacklevel=2,
            )
        return [self._current(run | {"folder": self.root / run["name"]}) for run in whole]

    @staticmethod
    def _current(run: dict[str, Any]) -> dict[str, Any]:
        """Return a run as it is now: one that nobody works in was interrupted."""
        running = run["status"] == "running" and FolderLock(run["folder"]).held
        return run if running or run["status"] != "running" else run | {"status": "interrupted"}

    def delete(self, name: str) -> None:
        """Delete a run, its rows and its folder; one that another process works in is refused."""
        _check_name(name)
        lock = FolderLock(self.root / name)
        if lock.folder.is_dir():
            lock.acquire("RunStore")
        try:
            self._delete(name)
        finally:
            lock.release()

    def _delete(self, name: str) -> None:
        with self.database.writing() as connection:
            row = self._row(connection, name)
            if row is None:
                known = [known for (known,) in connection.execute("SELECT name FROM runs")]
                raise InvalidParameter(
                    f"RunStore: `name` must be a run in `{self.root}`; got {name!r}."
                    f"{did_you_mean(str(name), known)}"
                )
            for table in ("metrics", "findings"):
                connection.execute(f"DELETE FROM {table} WHERE run = ?", row[:1])
            connection.execute("DELETE FROM runs WHERE id = ?", row[:1])
        with writing("RunStore", self.root / name), suppress(FileNotFoundError):
            shutil.rmtree(self.root / name)


class Run:
    """One run: its folder, its curves and its findings. Made by ``RunStore.open_run``.

    Attributes
    ----------
    name
        The name it really got: ``titanic``, or ``titanic-2`` when that was taken.
    config
        The settings it was opened with.
    """

    def __init__(self, store: RunStore, number: int, name: str, config: dict[str, Any]) -> None:
        self.store, self.name, self.config = store, name, config
        self._id, self._lock = number, FolderLock(self.folder)
        self._gone = self._refused = False
        self._buffer: list[tuple[int, int, str, float]] = []  # step, epoch, key, value

    def __repr__(self) -> str:
        return f"Run({self.name!r}, folder={str(self.folder)!r})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: status, settings and the last of every metric."""
        last = {key: values[-1] for key in self.keys() if (values := self.metric(key)[1])}
        facts = {"status": self.status, **self.config, **last}
        rows = (
            f"<tr><th>{escape(str(k))}</th><td>{escape(str(v))}</td></tr>" for k, v in facts.items()
        )
        return f"<table><caption>{escape(self.name)}</caption>{''.join(rows)}</table>"

    @property
    def folder(self) -> Path:
        """Where its checkpoints, figures and report lie."""
        return self.store.root / self.name

    @property
    def status(self) -> str:
        """``running``, ``finished``, ``failed`` or ``interrupted``; ``deleted`` when it is gone."""
        with self.store.database.reading() as connection:
            row = connection.execute("SELECT status FROM runs WHERE id = ?", (self._id,)).fetchone()
        run = {"status": row[0] if row else "deleted", "folder": self.folder}
        return self.store._current(run)["status"]

    @property
    def gone(self) -> bool:
        """Whether the folder or the database was deleted, which is reported once.

        Nothing more is written then, so that a training can go on without its record.
        """
        if not self._gone and not (self.folder.is_dir() and self.store.path.exists()):
            self._gone = True
            warnings.warn(
                f"Run: `{self.folder}` was deleted meanwhile; the work goes on, and nothing more "
                "is recorded there. Save its result elsewhere.",
                TrainingWarning,
                stacklevel=3,
            )
        return self._gone

    def resume(self) -> None:
        """Take the run's folder and mark the run as running, until ``finish``.

        Raises
        ------
        WriteFailed
            When another process works in it.
        """
        self._refused = True
        with writing("Run", self.folder):
            self._lock.acquire("Run")
        self._refused = False
        sweep_files(self.folder)
        self._set_status("running")

    def log(self, step: int, epoch: int, values: Mapping[str, float]) -> None:
        """Note values at a step. A value already there for that step and key is replaced.

        Points are held back until ``flush``, ``finish`` or a reading method; flush before writing a
        checkpoint, so that a resumed run has every point up to it.
        """
        step, epoch = int(step), int(epoch)
        self._buffer += [(step, epoch, key, float(value)) for key, value in values.items()]
        if len(self._buffer) >= _BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Write the points held back; they stay held back when that fails."""
        if not self._buffer or self.gone:
            return
        count = len(self._buffer)
        with self.store.database.writing() as connection:
            number = self.store.database.key_id
            connection.executemany(
                "INSERT OR REPLACE INTO metrics (run, key, step, epoch, value) "
                "VALUES (?, ?, ?, ?, ?)",
                [
                    (self._id, number(connection, key), step, epoch, value)
                    for step, epoch, key, value in self._buffer[:count]
                ],
            )
            self._touch(connection)
        del self._buffer[:count]

    def truncate(self, step: int) -> None:
        """Delete the points after a step, because training goes on from there."""
        self._buffer = [point for point in self._buffer if point[0] <= step]
        with self.store.database.writing() as connection:
            connection.execute(
                "DELETE FROM metrics WHERE run = ? AND key IN (SELECT id FROM keys) AND step > ?",
                (self._id, int(step)),
            )

    def keys(self) -> list[str]:
        """Return the names of its metrics."""
        self.flush()
        query = (
            "SELECT name FROM keys WHERE EXISTS "
            "(SELECT 1 FROM metrics WHERE run = ? AND key = keys.id) ORDER BY name"
        )
        with self.store.database.reading() as connection:
            return [name for (name,) in connection.execute(query, (self._id,))]

    def metric(self, key: str) -> tuple[list[int], list[float]]:
        """Return the steps and the values of one metric, in order of step; empty when unknown."""
        self.flush()
        query = (
            "SELECT step, value FROM metrics "
            "WHERE run = ? AND key = (SELECT id FROM keys WHERE name = ?) ORDER BY step"
        )
        with self.store.database.reading() as connection:
            rows = connection.execute(query, (self._id, key)).fetchall()
        steps, values = [step for step, _ in rows], [math.nan if v is None else v for _, v in rows]
        if not all(type(step) is int for step in steps) or not all(map(_is_number, values)):
            raise DamagedFile(
                f"Run: metric `{key}` of `{self.name}` in `{self.store.path}` holds something else "
                "than numbers."
            )
        return steps, values

    def add_finding(self, finding: Mapping[str, Any]) -> None:
        """Keep a finding with at least `code`, `name`, `severity`; the same one is kept once."""
        missing = [key for key in ("code", "name", "severity") if key not in finding]
        if missing:
            raise InvalidParameter(
                f"Run: a finding must have {listing(missing, 'and')}; got {finding!r}."
            )
        if self.gone:
            return
        body = _json(dict(finding))
        labels = (str(finding["code"]), str(finding["name"]), str(finding["severity"]))
        with self.store.database.writing() as connection:
            connection.execute(
                "INSERT INTO findings (run, code, name, severity, body) SELECT ?, ?, ?, ?, ? "
                "WHERE NOT EXISTS (SELECT 1 FROM findings WHERE run = ? AND body = ?)",
                (self._id, *labels, body, self._id, body),
            )
            self._touch(connection)

    def findings(self) -> list[dict[str, Any]]:
        """Return the findings, in the order they were added."""
        query = "SELECT body FROM findings WHERE run = ? ORDER BY id"
        with self.store.database.reading() as connection:
            found = [_config(body) for (body,) in connection.execute(query, (self._id,))]
        return [finding for finding in found if finding is not None]

    def finish(self, status: str = "finished") -> None:
        """Write everything held back, set the final status and give the folder back.

        A run that another process works in is left alone.
        """
        try:
            if self._lock.mine or not (self._refused or self._lock.held):
                self.flush()
                self._set_status(status)
        finally:
            self._lock.release()

    def _set_status(self, status: str) -> None:
        if status not in STATUSES:
            raise InvalidParameter(f"Run: `status` must be {listing(STATUSES)}; got {status!r}.")
        if self.gone:
            return
        with self.store.database.writing() as connection:
            connection.execute("UPDATE runs SET status = ? WHERE id = ?", (status, self._id))
            self._touch(connection)

    def _touch(self, connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE runs SET updated = ? WHERE id = ?", (time.time(), self._id))


def _is_plain(name: Any) -> bool:
    """Say whether a name stays in the root and does not hide in it."""
    return (
        isinstance(name, str)
        and name.strip() == name
        and name[:1] not in ("", ".")
        and not any(c in "/\\:\0" or ord(c) < 32 for c in name)
        and not name.startswith("castalia.db")
    )


def _check_name(name: str) -> None:
    """Refuse names that would leave the root or hide in it."""
    if not _is_plain(name):
        raise InvalidParameter(
            "RunStore: `name` must be a plain folder name, without slashes and not starting with "
            f"a dot; got {name!r}."
        )


def _occupied(folder: Path) -> bool:
    """Say whether something that is not ours lies at a path."""
    if not folder.is_dir():
        return folder.exists() or folder.is_symlink()
    return any(folder.iterdir())
