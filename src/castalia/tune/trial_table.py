"""Trials in a database: a row each, written by who holds it and by nobody else.

Every change is one statement, so a process can be killed between any two of them: the key admits a
number once, and an update that names its holder changes nothing after the trial was taken over.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from castalia.errors import InvalidParameter, WriteFailed
from castalia.tune.trial_record import RUNNING, Trial
from castalia.utils.imports import require
from castalia.utils.text import public

__all__ = ["TrialTable"]

PATIENCE = 60  # seconds to wait for another process that writes


class TrialTable:
    """The trials of one search, in an SQLite file or a database that many machines share.

    Parameters
    ----------
    storage
        A path, or an address with ``://``.
    study
        Name of the search; a database holds many.
    owner
        Who asks, for messages.
    """

    def __init__(self, storage: str | os.PathLike[str], study: str, owner: str) -> None:
        self.storage, self.study, self.owner = storage, study, owner
        self.sql: Any = require("sqlalchemy", caller=owner, extra="tune")
        try:
            self.engine = self._engine(_address(storage, owner))
            self.rows = self._rows()
            with self.engine.begin() as connection:
                connection.execute(self.sql.schema.CreateTable(self.rows, if_not_exists=True))
        except (self.sql.exc.SQLAlchemyError, sqlite3.Error, ImportError) as error:
            raise InvalidParameter(
                f"{owner}: `study` must be an SQLite file or the address of a database; "
                f"'{public(storage)}' cannot be opened: {public(str(error).splitlines()[0])}."
            ) from error

    def __reduce__(self) -> Any:
        return TrialTable, (self.storage, self.study, self.owner)

    def _engine(self, address: str) -> Any:
        if not address.startswith("sqlite"):
            return self.sql.create_engine(address, pool_pre_ping=True)
        engine = self.sql.create_engine(address, connect_args={"timeout": PATIENCE})
        self.sql.event.listen(engine, "connect", _enter_wal)
        return engine

    def _rows(self) -> Any:
        column, kinds = self.sql.Column, self.sql
        return self.sql.Table(
            "castalia_trials",
            self.sql.MetaData(),
            column("study", kinds.String(128), primary_key=True),
            column("number", kinds.Integer, primary_key=True, autoincrement=False),
            column("state", kinds.String(16), nullable=False),
            column("holder", kinds.String(255), nullable=False),
            column("beat", kinds.Float(53), nullable=False),
            column("record", kinds.Text, nullable=False),
        )

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        try:
            with self.engine.begin() as connection:
                yield connection
        except (self.sql.exc.OperationalError, sqlite3.Error) as error:
            raise WriteFailed(
                f"{self.owner}: the study '{public(self.storage)}' could not be used "
                f"({public(str(error).splitlines()[0])}). Check that the disk has space and that "
                "no process holds it locked."
            ) from error

    def read(self, first: int = 0) -> list[Trial]:
        """Return the trials from a number on, in order."""
        c = self.rows.c
        query = (
            self.sql.select(c.number, c.state, c.holder, c.beat, c.record)
            .where(c.study == self.study, c.number >= first)
            .order_by(c.number)
        )
        with self._connection() as connection:
            return [Trial.read(*row) for row in connection.execute(query)]

    def insert(self, trial: Trial) -> bool:
        """Write a new trial down; False if there is one of this number already."""
        try:
            with self._connection() as connection:
                connection.execute(
                    self.sql.insert(self.rows).values(
                        study=self.study, number=trial.number, **_values(trial)
                    )
                )
        except self.sql.exc.IntegrityError:
            return False
        return True

    def take_over(self, trial: Trial, holder: str) -> bool:
        """Give a running trial another holder; False if somebody was faster."""
        c = self.rows.c
        same = (c.state == RUNNING, c.holder == trial.holder, c.beat == trial.beat)
        now = time.time()
        if not self._update(trial.number, *same, holder=holder, beat=now):
            return False
        trial.holder, trial.beat = holder, now
        return True

    def write(self, trial: Trial) -> bool:
        """Write what a trial has come to; False if its holder has lost it."""
        c = self.rows.c
        trial.beat = time.time()
        mine = (c.state == RUNNING, c.holder == trial.holder)
        return self._update(trial.number, *mine, **_values(trial))

    def _update(self, number: int, *where: Any, **values: Any) -> bool:
        c = self.rows.c
        change = self.sql.update(self.rows).where(c.study == self.study, c.number == number, *where)
        with self._connection() as connection:
            return bool(connection.execute(change.values(**values)).rowcount)

    def beat(self, holder: str) -> None:
        """Say that a worker lives."""
        self._change_held(holder, beat=time.time())

    def release(self, holder: str) -> None:
        """Let go of what a worker holds: others need not wait."""
        self._change_held(holder, holder="")

    def _change_held(self, by: str, **values: Any) -> None:
        c = self.rows.c
        held = (c.study == self.study, c.state == RUNNING, c.holder == by)
        with self._connection() as connection:
            connection.execute(self.sql.update(self.rows).where(*held).values(**values))

    def close(self) -> None:
        """Close the connections; a later use opens new ones."""
        self.engine.dispose()


def _values(trial: Trial) -> dict[str, Any]:
    return {
        "state": trial.state,
        "holder": trial.holder,
        "beat": trial.beat,
        "record": trial.text(),
    }


def _address(storage: str | os.PathLike[str], owner: str) -> str:
    if "://" in str(storage):
        return str(storage)
    path = Path(storage)
    if path.is_dir():
        raise InvalidParameter(f"{owner}: `study` must be a file; got the folder '{path}'.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{path.resolve()}"


def _enter_wal(connection: Any, _: Any) -> None:
    """Append to a log, which is faster; SQLite does not wait for others here, so we do."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
