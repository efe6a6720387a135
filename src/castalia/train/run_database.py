"""The SQLite file of a folder of runs: its connections, its tables and its transactions."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from castalia.errors import CheckpointMismatch, DamagedFile, WriteFailed

__all__ = ["SCHEMA", "RunDatabase"]

SCHEMA = 1
_PATIENCE = 30.0  # seconds to wait for another process's write
_DAMAGE = ("no such", "decode", "malformed")  # words of errors that no other disk would mend

_TABLES = """
CREATE TABLE schema (version INTEGER NOT NULL);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    created REAL NOT NULL,
    updated REAL NOT NULL,
    fingerprint TEXT NOT NULL,
    config TEXT NOT NULL
);
CREATE TABLE keys (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE metrics (
    run INTEGER NOT NULL,
    key INTEGER NOT NULL,
    step INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    value REAL, -- SQLite keeps NaN as NULL
    PRIMARY KEY (run, key, step)
) WITHOUT ROWID;
CREATE TABLE findings (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    code TEXT NOT NULL,
    name TEXT NOT NULL,
    severity TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX findings_by_run ON findings (run);
"""
_COLUMNS = {
    "runs": {"id", "name", "status", "created", "updated", "fingerprint", "config"},
    "keys": {"id", "name"},
    "metrics": {"run", "key", "step", "epoch", "value"},
    "findings": {"id", "run", "code", "name", "severity", "body"},
}


def _close(connections: dict[tuple[int, int], sqlite3.Connection]) -> None:
    """Close this process's connections; those inherited by a fork are the parent's to close."""
    for key in [key for key in connections if key[0] == os.getpid()]:
        connections.pop(key).close()


class RunDatabase:
    """Runs, metrics and findings in one file; every process and thread has its own connection.

    Parameters
    ----------
    path
        The file; made when missing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connections: dict[tuple[int, int], sqlite3.Connection] = {}
        self._key_ids: dict[str, int] = {}
        self._finalizer = weakref.finalize(self, _close, self._connections)
        self.connection()

    def close(self) -> None:
        """Close the connections of this process; a later use opens a new one."""
        _close(self._connections)

    def connection(self) -> sqlite3.Connection:
        """Return this thread's own connection, opened on first use; a fork opens its own."""
        key = (os.getpid(), threading.get_ident())
        if key not in self._connections:
            with self._explained():
                self._connections[key] = self._open()
        return self._connections[key]

    def _open(self) -> sqlite3.Connection:
        connection = _connect(self.path)
        try:
            connection.execute("PRAGMA synchronous=OFF")  # empty: nothing to lose
            _enter_wal(connection)
            connection.execute("PRAGMA synchronous=NORMAL")
            self._check_schema(connection)
        except sqlite3.OperationalError:
            connection.close()
            if os.access(self.path.parent, os.W_OK) or not self.path.is_file():
                raise
            return self._open_copy()
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_copy(self) -> sqlite3.Connection:
        """Read a database that cannot be written into memory, with what its journal adds."""
        memory = _connect(":memory:")
        with tempfile.TemporaryDirectory() as folder:
            for path in (self.path, self.path.with_name(f"{self.path.name}-wal")):
                if path.is_file():
                    shutil.copy(path, folder)
            with closing(_connect(Path(folder) / self.path.name)) as copy:
                copy.backup(memory)
        self._check_schema(memory)
        memory.execute("PRAGMA query_only=ON")
        return memory

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        """Make the tables in a new database; refuse one that a newer version made."""
        if not _has_schema(connection):
            connection.execute("BEGIN IMMEDIATE")
            try:
                if not _has_schema(connection):  # another process may have been first
                    for statement in filter(str.strip, _TABLES.split(";")):
                        connection.execute(statement)
                    connection.execute("INSERT INTO schema VALUES (?)", (SCHEMA,))
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
        (version,) = connection.execute("SELECT max(version) FROM schema").fetchone()
        if isinstance(version, int) and version > SCHEMA:
            raise CheckpointMismatch(
                f"RunStore: `{self.path}` has schema {version}; this Castalia knows up to "
                f"{SCHEMA}. "
                "Upgrade Castalia to use these runs."
            )
        if version != SCHEMA or not _has_tables(connection):
            raise sqlite3.DatabaseError("tables or columns are missing")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into one sentence that names the file."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if any(word in str(error) for word in _DAMAGE):
                raise self._damaged(error) from error
            raise WriteFailed(
                f"RunStore: `{self.path}` could not be used ({error}). Check that the disk has "
                "space, that the folder can be written and that no process holds it locked."
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: object) -> DamagedFile:
        return DamagedFile(
            f"RunStore: `{self.path}` is not a whole database ({error}). Move it away to start a "
            "new one; the runs' folders stay."
        )

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection; errors name the file."""
        with self._explained():
            yield self.connection()

    def select(self, query: str, values: Any = ()) -> list[Any]:
        """Return the rows of a query that only reads, for tools that show many runs at once."""
        with self.reading() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write everything or nothing."""
        with self._explained():
            connection = self.connection()
            connection.execute("BEGIN IMMEDIATE")  # takes the lock now: no deadlock half-way
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._key_ids.clear()  # some of them may just have been rolled back
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def key_id(self, connection: sqlite3.Connection, key: str) -> int:
        """Return the number of a metric's name, inside a transaction."""
        if key not in self._key_ids:
            connection.execute("INSERT OR IGNORE INTO keys (name) VALUES (?)", (key,))
            (self._key_ids[key],) = connection.execute(
                "SELECT id FROM keys WHERE name = ?", (key,)
            ).fetchone()
        return self._key_ids[key]


def _connect(path: str | Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL; SQLite does not wait for others here, so we do."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _has_schema(connection: sqlite3.Connection) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema'"
    return connection.execute(query).fetchone() is not None


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Say whether every table has its columns."""
    return all(
        columns <= {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for table, columns in _COLUMNS.items()
    )
